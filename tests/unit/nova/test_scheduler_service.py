import json

import msgspec
import pytest

from roost.errors import Unavailable
from roost.fleet.group_writes import group_creation
from roost.model.fleet import Fleet
from roost.model.group import ServerGroup
from roost.model.host import Aggregate, HostFacts
from roost.model.names import uuid_bytes
from roost.model.settings.roost_settings import Settings
from roost.nova import scheduler_service
from roost.nova.database.nova_fleet import NovaInstance
from roost.nova.fleet_sync import PREPARATIONS_MAX, plan_group, plan_instances
from roost.placement.write_plan import Plan
from tests.support.fleets.named_uuids import uuid_named
from tests.support.fleets.worlds import host, hosts, merge_fleets
from tests.support.nova_conductors import claim, conductor, hosts_of, reason_of
from tests.support.nova_messages import destination, flavor, instance_group, nova_object

ME, OTHER, THIRD = uuid_named("me"), uuid_named("other"), uuid_named("third")
CELL = uuid_named("cell")


def cell_hosts(count, **totals):
    totals = totals or {"VCPU": 8, "MEMORY_MB": 4096}
    return merge_fleets(*(host(f"h{number}", facts=HostFacts(cell=CELL), **totals) for number in range(count)))


def test_selection_has_the_claim_the_cell_and_the_zone_of_the_host():
    east = Fleet(aggregates=[Aggregate(uuid=uuid_named("east"), name="e", metadata={"availability_zone": "east"})])
    one = host("h0", aggregates=["east"], facts=HostFacts(cell=CELL), VCPU=8, MEMORY_MB=4096)
    with conductor(east, one) as nova:
        ((chosen,),) = nova.select(ME)
        assert nova.vcpus() == {"h0": 1}
    allocations = {uuid_named("h0"): {"resources": {"VCPU": 1, "MEMORY_MB": 64}}}
    assert json.loads(chosen.pop("allocation_request")) == {
        "allocations": allocations,
        "mappings": {"": [uuid_named("h0")]},
    }
    limits = chosen.pop("limits")
    assert limits["nova_object.name"] == "SchedulerLimits"
    assert limits["nova_object.data"] == {"numa_topology": None, "vcpu": None, "disk_gb": None, "memory_mb": None}
    assert chosen == {
        "compute_node_uuid": uuid_named("h0"),
        "service_host": "h0",
        "nodename": "h0",
        "cell_uuid": CELL,
        "allocation_request_version": "1.36",
        "availability_zone": "east",
    }


def test_zone_without_an_aggregate_accepts_every_host_as_in_nova():
    east = Fleet(aggregates=[Aggregate(uuid=uuid_named("east"), name="e", metadata={"availability_zone": "east"})])
    fleets = (east, host("h0", aggregates=["east"], VCPU=8, MEMORY_MB=4096), host("h1", VCPU=8, MEMORY_MB=4096))
    with conductor(*fleets) as nova:
        for zone in ("nova", "nowhere", "east"):
            assert hosts_of(nova.select(uuid_named(zone), availability_zone=zone, ignore_hosts=["h1"])) == [["h0"]]
        refusal = nova.refuse(ME, availability_zone="east", ignore_hosts=["h0"])
        assert reason_of(refusal) == "There are not enough hosts available."


def test_each_instance_gets_its_host_and_the_same_alternates():
    with conductor(cell_hosts(5)) as nova:
        selections = hosts_of(nova.select(ME, OTHER))
        assert nova.vcpus() == {"h0": 1, "h1": 1, "h2": 0, "h3": 0, "h4": 0}
    assert selections == [["h0", "h2", "h3"], ["h1", "h2", "h3"]]


def test_alternates_are_left_out_unless_they_are_requested():
    with conductor(cell_hosts(3)) as nova:
        assert hosts_of(nova.select(ME, alternates=False)) == [["h0"]]
        assert nova.select(OTHER, objects=False) == [{"host": "h1", "nodename": "h1", "limits": {}}]


def test_refusals_have_the_reasons_of_nova():
    with conductor(cell_hosts(2)) as nova:
        assert reason_of(nova.refuse(ME, flavor=flavor(vcpus=99))) == ""
        assert reason_of(nova.refuse(ME, ignore_hosts=["h0", "h1"])) == "There are not enough hosts available."
        unknown = nova.refuse(ME, requested_destination=destination(host="nowhere", node=None))
        assert reason_of(unknown) == "No such host - host: nowhere node: None "
        uuids = [uuid_named(str(number)) for number in range(3)]
        assert reason_of(nova.refuse(*uuids, flavor=flavor(vcpus=8))) == "There are not enough hosts available."
        assert nova.vcpus() == {"h0": 0, "h1": 0}


def test_refusal_of_a_request_filter_has_its_text():
    settings = msgspec.convert(
        {"scheduler": {"limit_tenants_to_placement_aggregate": True, "placement_aggregate_required_for_tenants": True}},
        Settings,
    )
    with conductor(cell_hosts(1), settings=settings) as nova:
        assert reason_of(nova.refuse(ME)) == "Scheduling failed: No hosts available for tenant"


def test_fault_points_to_the_decision_if_the_setting_allows_it():
    with conductor(cell_hosts(1), shows_decision=True) as nova:
        reason = reason_of(nova.refuse(ME, ignore_hosts=["h0"]))
        (decision,) = nova.serving.run(lambda _: nova.product.decisions(1))
    assert reason == f"There are not enough hosts available. (roost why {decision.uuid})"


def test_malformed_request_is_refused_and_claims_nothing():
    with conductor(cell_hosts(1)) as nova:
        assert "must contain an object Flavor" in reason_of(nova.refuse(ME, flavor=None))
        assert "must be a list of up to 10,000 UUIDs" in reason_of(nova.refuse(5))
        assert "is not a valid UUID" in reason_of(nova.refuse("nonsense"))
        assert nova.vcpus() == {"h0": 0}


def test_rebuild_checks_the_host_of_the_instance_and_claims_nothing():
    fields = {"scheduler_hints": {"_nova_check_type": ["rebuild"]}, "force_hosts": ["h1"], "force_nodes": ["h1"]}
    with conductor(cell_hosts(2, VCPU=1, MEMORY_MB=64)) as nova:
        nova.select(ME, OTHER)
        ((chosen,),) = nova.select(**fields)
        assert (chosen["service_host"], chosen["allocation_request"]) == ("h1", "null")
        assert chosen["allocation_request_version"] is None
        assert reason_of(nova.refuse(**{**fields, "force_hosts": ["h9"]})) == "There are not enough hosts available."
        assert nova.vcpus() == {"h0": 1, "h1": 1}


def test_instance_with_allocations_holds_both_as_during_an_evacuation():
    with conductor(cell_hosts(2)) as nova:
        nova.select(ME)
        assert hosts_of(nova.select(ME, ignore_hosts=["h0"])) == [["h1"]]
        assert nova.vcpus() == {"h0": 1, "h1": 1}
        holder = nova.serving.state.holders[uuid_bytes(ME)]
        assert (holder.generation, len(holder.takes)) == (2, 4)


def test_server_group_of_a_message_is_enforced():
    fields = {"scheduler_hints": {"group": [THIRD]}}
    with conductor(cell_hosts(2)) as nova:
        for at, uuid in enumerate((ME, OTHER)):
            group = instance_group(THIRD, "anti-affinity", ME, OTHER)
            assert hosts_of(nova.select(uuid, instance_group=group, **fields))[0][0] == f"h{at}"
        group = instance_group(THIRD, "anti-affinity", ME, OTHER, uuid_named("new"))
        refusal = nova.refuse(uuid_named("new"), instance_group=group, **fields)
        assert reason_of(refusal) == "There are not enough hosts available."


def test_members_that_nova_placed_itself_count_in_their_group():
    with conductor(cell_hosts(2)) as nova:
        claim(nova.serving, ME, h1=1)
        instance = NovaInstance(uuid=ME, host="h1", node="h1", cell=CELL, project_id="p", user_id="u")
        nova.serving.run(lambda current: Plan(answer=None, writes=plan_instances(current, [instance])))
        group = instance_group(THIRD, "affinity", ME, OTHER)
        assert hosts_of(nova.select(OTHER, instance_group=group)) == [["h1"]]


def test_groups_of_ports_get_their_providers_in_the_mappings():
    port = nova_object("RequestGroup", "1.3", use_same_provider=True, requester_id=THIRD, resources={"VGPU": 1})
    with conductor(cell_hosts(1, VCPU=8, MEMORY_MB=4096, VGPU=2)) as nova:
        ((chosen,),) = nova.select(ME, requested_resources=[port])
    body = json.loads(chosen["allocation_request"])
    assert body["mappings"] == {"": [uuid_named("h0")], THIRD: [uuid_named("h0")]}
    assert body["allocations"][uuid_named("h0")]["resources"] == {"VCPU": 1, "MEMORY_MB": 64, "VGPU": 1}


@pytest.mark.parametrize(
    ("method", "part"),
    [("update_aggregates", "aggregates"), ("delete_aggregate", "aggregates"), ("sync_instance_info", "instances")],
)
def test_cast_is_a_hint_to_read_the_databases(method, part):
    with conductor(hosts(1)) as nova:
        nova.send(method, is_call=False)
        assert nova.hints == [part]


def test_record_of_a_decision_names_the_client():
    with conductor(cell_hosts(1)) as nova:
        nova.select(ME)
        (decision,) = nova.serving.run(lambda _: nova.product.decisions(1))
        assert (decision.project_id, decision.user_id) == ("a-project", "a-user")


def test_failure_between_group_and_decision_leaves_only_facts_of_nova(monkeypatch):
    group = instance_group(uuid_named("group"), "anti-affinity", ME, OTHER)
    with conductor(cell_hosts(2)) as nova:
        nova.select(ME)
        submit, tasks = nova.serving.submit, []

        def submit_only_the_preparations(task, outcome):
            tasks.append(task)
            if len(tasks) > 2:
                raise Unavailable("the queue is full")
            submit(task, outcome)

        with monkeypatch.context() as patch:
            patch.setattr(nova.serving, "submit", submit_only_the_preparations)
            assert "the queue is full" in reason_of(nova.refuse(OTHER, instance_group=group))
        assert len(tasks) == 3
        state = nova.serving.state
        (known,) = state.groups_by_uuid.values()
        assert {state.hosts.names[row]: count for row, count in known.members.items()} == {"h0": 1}
        assert nova.vcpus() == {"h0": 1, "h1": 0}
        assert hosts_of(nova.select(OTHER, instance_group=group, alternates=False)) == [["h1"]]
        assert reason_of(nova.refuse(THIRD, instance_group=group)) == "There are not enough hosts available."


def test_group_that_never_matches_does_not_delay_a_decision_for_ever(monkeypatch):
    plans = []

    def plan_always(current, wanted):
        plans.append(wanted)
        name = str(len(plans))
        other = ServerGroup(uuid=uuid_named(name), name=name, policy="affinity")
        return plan_group(current, wanted) or (group_creation(current, other),)

    monkeypatch.setattr(scheduler_service, "plan_group", plan_always)
    with conductor(cell_hosts(2)) as nova:
        group = instance_group(THIRD, "affinity", ME)
        assert hosts_of(nova.select(ME, instance_group=group, alternates=False)) == [["h0"]]
    assert len(plans) == PREPARATIONS_MAX
