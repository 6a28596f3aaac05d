"""Lookups of plug-ins while they run: Nova's objects, read from the columns."""

import pytest

from roost.compat import exception, objects
from roost.compat.adapter import adapt
from roost.compat.context import get_admin_context, target_cell
from roost.compat.objects import current_fleet
from roost.compat.scheduler.filters import BaseHostFilter
from roost.compat.servicegroup import API
from roost.engine.columns.apply import apply
from roost.model.host import HostFacts
from roost.model.writes import Claim, ConsumerRow, InstanceRow
from roost.scheduler.framework.plugin import NoOptions
from tests.support.fleets.fleets import fleet, group, host_view, spec, uuid_of, uuid_text

CONTEXT = get_admin_context()


def look_up(look, *, now_s=0.0):
    """Run a lookup within a filter on a small fleet; return its result."""
    results = []

    class LookupFilter(BaseHostFilter):
        def host_passes(self, host_state, spec_obj):
            results.append(look(host_state, spec_obj))
            return True

    state = fleet(
        HostFacts(vcpus_total=8, reported_at_s=100.0),
        HostFacts(is_forced_down=True),
        aggregates=[({"failure_domain": "a"}, [0]), ({"failure_domain": "b", "ssd": "yes"}, [0, 1])],
    )
    members = group("anti-affinity", {1: 1})
    state.groups[1] = members
    apply(state, Claim([ConsumerRow(1, uuid_of(7), "p", "")], [], [InstanceRow(1, 102, 0, group_id=1)]))
    adapt(LookupFilter)(NoOptions()).keep(host_view(state, [0]), spec(group=members, now_s=now_s))
    return results[0]


def test_aggregates_are_found_by_host_by_key_and_by_value():
    def look(host_state, _spec):
        lists = objects.AggregateList
        return [
            [each.name for each in some]
            for some in (
                lists.get_by_host(CONTEXT, host_state.host),
                lists.get_by_host(CONTEXT, host_state.host, key="ssd"),
                lists.get_by_host(CONTEXT, "host-2"),
                lists.get_by_metadata_key(CONTEXT, "failure_domain", hosts={"host-2"}),
                lists.get_by_metadata(CONTEXT, value="a"),
                lists.get_all(CONTEXT),
            )
        ]

    both, second = ["aggregate-1", "aggregate-2"], ["aggregate-2"]
    assert look_up(look) == [both, second, second, second, ["aggregate-1"], both]


def test_aggregate_lists_its_hosts():
    assert look_up(lambda *_: objects.Aggregate.get_by_uuid(CONTEXT, uuid_text(1002)).hosts) == ["host-1", "host-2"]


def test_instances_are_found_on_hosts_outside_the_view():
    def look(*_):
        lists = objects.InstanceList
        return (
            [each.project_id for each in lists.get_by_host(CONTEXT, "host-2")],
            lists.get_by_host_and_node(CONTEXT, "host-2", "node-1"),
            lists.get_uuids_by_host(CONTEXT, "host-2"),
            objects.Instance.get_by_uuid(CONTEXT, uuid_text(7)).host,
        )

    assert look_up(look) == (["p"], [], [uuid_text(7)], "host-2")


def test_groups_have_members_and_hosts():
    def look(_host, spec_obj):
        by_uuid = objects.InstanceGroup.get_by_uuid(CONTEXT, spec_obj.instance_group.uuid)
        by_member = objects.InstanceGroup.get_by_instance_uuid(CONTEXT, uuid_text(7))
        hosts = by_uuid.get_hosts(), by_uuid.get_hosts(exclude=[uuid_text(7)])
        return by_uuid.members, by_member.policy, hosts, len(objects.InstanceGroupList.get_all(CONTEXT))

    assert look_up(look) == ([uuid_text(7)], "anti-affinity", (["host-2"], []), 1)


def test_nodes_and_services_are_found_by_host():
    def look(*_):
        node = objects.ComputeNode.get_by_host_and_nodename(CONTEXT, "host-1", "node-1")
        first = objects.ComputeNode.get_first_node_by_host_for_old_compat(CONTEXT, "host-2")
        service = objects.Service.get_by_compute_host(CONTEXT, "host-2")
        up = {
            each.host: API().service_is_up(each) for each in objects.ServiceList.get_by_binary(CONTEXT, "nova-compute")
        }
        amounts = (node.vcpus, node.memory_mb_used, node.local_gb_used, node.free_disk_gb, node.pci_device_pools)
        return amounts, first.running_vms, service.forced_down, up, len(objects.ComputeNodeList.get_all(CONTEXT))

    assert look_up(look, now_s=150.0) == ((8, 0, 0, 0, []), 1, True, {"host-1": True, "host-2": False}, 2)
    assert look_up(look, now_s=161.0)[3] == {"host-1": False, "host-2": False}


@pytest.mark.parametrize(
    ("look", "error"),
    [
        (lambda *_: objects.Aggregate.get_by_uuid(CONTEXT, "x"), exception.AggregateNotFound),
        (lambda *_: objects.Instance.get_by_uuid(CONTEXT, "x"), exception.InstanceNotFound),
        (lambda *_: objects.InstanceGroup.get_by_uuid(CONTEXT, "x"), exception.InstanceGroupNotFound),
        (lambda *_: objects.InstanceGroup.get_by_instance_uuid(CONTEXT, "x"), exception.InstanceGroupNotFound),
        (lambda *_: objects.ComputeNodeList.get_all_by_host(CONTEXT, "x"), exception.ComputeHostNotFound),
        (lambda *_: objects.ComputeNode.get_by_host_and_nodename(CONTEXT, "x", "y"), exception.ComputeHostNotFound),
        (lambda *_: objects.Service.get_by_compute_host(CONTEXT, "x"), exception.ServiceNotFound),
    ],
)
def test_missing_object_raises_the_error_of_nova(look, error):
    with pytest.raises(error, match="x"):
        look_up(look)


def test_lookup_outside_of_a_rule_is_an_error():
    look_up(lambda *_: None)
    assert current_fleet.decision_time_s() is None
    with pytest.raises(exception.NovaException, match="while a filter or weigher runs"):
        objects.AggregateList.get_all(CONTEXT)


def test_context_is_of_an_administrator_in_every_cell():
    with target_cell(CONTEXT, objects.CellMapping.get_by_uuid(CONTEXT, "c")) as context:
        assert context.elevated().is_admin
