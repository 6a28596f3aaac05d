"""A healed instance equals an instance that the scheduler has just placed on its host, on both databases."""

import json
from contextlib import closing, contextmanager

import msgspec
import pytest

from roost import PlacementDirect
from roost.conductor.operation.row_changes import next_version, replace_row
from roost.direct.heal_allocations import HealOptions, HealResult, heal
from roost.direct.rebuild_claim import ClaimPlanner
from roost.model.fleet import Fleet
from roost.model.host import HostFacts
from roost.model.names import uuid_bytes
from roost.model.provider import Inventory, ProviderSpec
from roost.model.request import ResourceGroup
from roost.model.settings.placement_settings import Placement
from roost.model.settings.roost_settings import FilterScheduler, Pci, Scheduler, Settings
from roost.model.settings.roost_settings import Store as StoreSettings
from roost.model.writes import DropProvider, Item
from roost.placement.write_plan import Plan
from roost.store.audit import audit, orphans
from roost.store.backends import open_store
from tests.support.conductors.conductors import failure, server
from tests.support.conductors.group_rules import check_group_policy
from tests.support.conductors.move_servers import run_agents_until_idle
from tests.support.conductors.resize_servers import Copy, instance_summary, request_resize, resize_agents
from tests.support.conductors.work_rows import status
from tests.support.fleets.worlds import aggregate, group, host, hosts, merge_fleets, uuid_named

SHARES = frozenset({"MISC_SHARES_VIA_AGGREGATE"})
POLICIES = ("affinity", "anti-affinity", "fault-domain", "soft-affinity")


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, tmp_path):
    """Return the URL of an empty database."""
    return str(tmp_path / "roost.db") if request.param == "sqlite" else request.getfixturevalue("postgres_url")


@contextmanager
def open_server(url, *fleets, settings=None):
    """Run a server on a database until the block ends."""
    with (
        closing(open_store(url, settings=StoreSettings())) as store,
        server(store, *fleets, settings=settings) as here,
    ):
        yield here


def delete_allocations(here, *names):
    """Delete the allocations of instances, as a client of Placement could."""

    def task(_current):
        placement = here.roost.placement
        assert placement.release([uuid_named(name) for name in names]) == len(names)
        assert placement.flush() == [None] * len(names)

    here.run(task)


def build_unallocated(url, fleet, *, settings=None, **options):
    """Build an instance on h0 and delete its allocations; return them."""
    with open_server(url, fleet, settings=settings) as here:
        hands = resize_agents(here, "h0")
        here.build("one", **{"force_hosts": ("h0",), **options})
        run_agents_until_idle(here, hands)
        assert instance_summary(here, "one") == ("ACTIVE", "h0", "")
        amounts = here.held("one")
        delete_allocations(here, "one")
    return amounts


def run_heal(url, settings=None, **options):
    """Heal; return the result and the messages."""
    messages = []
    return heal(url, settings or Settings(), HealOptions(**options), echo=messages.append), messages


def allocations(url, name="one"):
    """Return the node and the allocations of an instance, or None."""
    with open_server(url) as here:
        return here.held(name)


# --- owners ---


def test_heal_restores_allocations_and_a_second_heal_changes_nothing(url):
    before = build_unallocated(url, hosts(1))
    assert run_heal(url)[0] == HealResult("healed", 1)
    assert allocations(url) == before
    assert run_heal(url) == (HealResult("nothing", 0), [f"instance {uuid_named('one')} already has its allocations"])


def test_configured_project_placeholder_means_no_owner(url):
    build_unallocated(url, hosts(1))
    assert run_heal(url)[0] == HealResult("healed", 1)
    path = f"/allocations/{uuid_named('one')}"
    with PlacementDirect(url) as client:
        body = client.get(path, microversion="1.28").json()
        assert client.put(path, json=body, microversion="1.28").status_code == 204
    assert run_heal(url)[0] == HealResult("nothing", 0)
    renamed = Settings(placement=Placement(incomplete_consumer_project_id="of nobody"))
    assert run_heal(url, renamed)[0] == HealResult("healed", 1)


# --- moves and groups ---


def racks(count):
    """Return hosts, each in its own rack."""
    return [host(f"h{number}", facts=HostFacts(rack=f"r{number}")) for number in range(count)]


@pytest.mark.parametrize("policy", POLICIES)
def test_healed_instance_counts_on_its_host_and_in_its_group_and_moves(url, policy):
    build_unallocated(url, merge_fleets(*racks(3), group("g", policy)), in_group="g", hints={"fault_domain": "a"})
    assert run_heal(url)[0] == HealResult("healed", 1)
    assert (audit(url), orphans(url)) == ([], [])
    with open_server(url) as here:
        state = here.run(lambda current: current.state)
        assert state.hosts.columns["num_instances"].view.tolist()[:3] == [1, 0, 0]
        assert sum(state.groups_by_uuid[uuid_named("g")].members.values()) == 1
        hands = resize_agents(here, "h0", "h1", "h2")
        hands["h0"].copies[uuid_named("one")] = Copy("running")
        here.build("two", key="two", in_group="g", hints={"fault_domain": "b"})
        run_agents_until_idle(here, hands)
        assert (instance_summary(here, "two")[1] == "h0") == (policy in {"affinity", "soft-affinity"})
        request_resize(here, "migrate", "one")
        run_agents_until_idle(here, hands)
        assert instance_summary(here, "one")[0] == "ACTIVE"
        if policy != "affinity":
            assert instance_summary(here, "one")[1] != "h0"
        if policy != "soft-affinity":
            check_group_policy(here, policy, 1)
    assert audit(url) == []


def heal_outside_group(url, policy, *, count, fellow):
    """Heal an instance after another member of its group took its slot; return the message."""
    build_unallocated(url, merge_fleets(*racks(count), group("g", policy)), in_group="g", hints={"fault_domain": "a"})
    with open_server(url) as here:
        hands = resize_agents(here, fellow)
        here.build("two", key="two", in_group="g", force_hosts=(fellow,), hints={"fault_domain": "b"})
        run_agents_until_idle(here, hands)
        assert instance_summary(here, "two")[:2] == ("ACTIVE", fellow)
    result, (one, _) = run_heal(url)
    assert result == HealResult("healed", 1)
    assert audit(url) == []
    return one


def test_instance_without_a_group_slot_is_outside_its_group_until_it_moves(url):
    one = heal_outside_group(url, "anti-affinity", count=3, fellow="h0")
    reason = "outside of its server group: the policy anti-affinity of its server group has no place for it on h0"
    assert one.endswith(reason)
    with open_server(url) as here:
        hands = resize_agents(here, "h0", "h1")
        hands["h0"].copies[uuid_named("one")] = Copy("running")
        request_resize(here, "migrate", "one")
        run_agents_until_idle(here, hands)
        assert instance_summary(here, "one") == ("ACTIVE", "h1", "")
        check_group_policy(here, "anti-affinity", 1)


def test_instance_away_from_its_affinity_group_is_outside_the_group(url):
    one = heal_outside_group(url, "affinity", count=2, fellow="h1")
    assert one.endswith("the policy affinity of its server group has no place for it on h0")
    with open_server(url) as here:
        check_group_policy(here, "affinity", 1)


@pytest.mark.parametrize("end", ["confirm", "revert"])
@pytest.mark.parametrize(("policy", "fellow"), [("affinity", "h1"), ("anti-affinity", "h0"), ("fault-domain", "h0")])
def test_outside_instance_joins_its_group_on_confirm_and_not_on_revert(url, policy, fellow, end):
    heal_outside_group(url, policy, count=2, fellow=fellow)
    with open_server(url) as here:
        hands = resize_agents(here, "h0", "h1")
        hands["h0"].copies[uuid_named("one")] = Copy("running")
        request_resize(here, "migrate", "one", is_verified=True)
        run_agents_until_idle(here, hands)
        assert instance_summary(here, "one") == ("VERIFY_RESIZE", "h1", "")
        check_group_policy(here, policy, 1)
        request_resize(here, end, "one")
        run_agents_until_idle(here, hands)
        assert instance_summary(here, "one") == ("ACTIVE", "h1" if end == "confirm" else "h0", "")
        check_group_policy(here, policy, 1)
    assert (audit(url), orphans(url)) == ([], [])


@pytest.mark.parametrize("policy", ["anti-affinity", "fault-domain"])
def test_outside_instance_leaves_no_slot_on_a_failed_target(url, policy):
    heal_outside_group(url, policy, count=3, fellow="h0")
    with open_server(url) as here:
        hands = resize_agents(here, "h0", "h1", "h2")
        hands["h0"].copies[uuid_named("one")] = Copy("running")
        request_resize(here, "migrate", "one", is_verified=True)
        once = [failure("no room")]  # for the target that is tried first
        run_agents_until_idle(here, hands, {("h1", "prepare"): once, ("h2", "prepare"): once})
        assert not once
        target = instance_summary(here, "one")[1]
        assert instance_summary(here, "one") == ("VERIFY_RESIZE", target, "")
        assert target != "h0"
        check_group_policy(here, policy, 1)
        request_resize(here, "revert", "one")
        run_agents_until_idle(here, hands)
        assert instance_summary(here, "one") == ("ACTIVE", "h0", "")
        check_group_policy(here, policy, 1)
    assert (audit(url), orphans(url)) == ([], [])


def test_healed_instance_in_verify_resize_closes_its_group_to_new_members(url):
    with open_server(url, hosts(2), group("g", "affinity")) as here:
        hands = resize_agents(here, "h0", "h1")
        here.build("one", in_group="g", force_hosts=("h0",))
        run_agents_until_idle(here, hands)
        request_resize(here, "migrate", "one", is_verified=True)
        run_agents_until_idle(here, hands)
        assert instance_summary(here, "one") == ("VERIFY_RESIZE", "h1", "")
        before = here.held("one")
        delete_allocations(here, "one")
    assert run_heal(url)[0] == HealResult("healed", 1)
    assert allocations(url) == before
    with open_server(url) as here:
        for name in ("h0", "h1"):
            resize_agents(here, name)
        here.build("two", key="two", in_group="g")
        here.turn()
        assert "accept no member of the server group while its only member moves" in instance_summary(here, "two")[2]
    assert (audit(url), orphans(url)) == ([], [])


def write_to_placement(url, *, of="h0", **amounts):
    """Write the allocation of the instance on one provider through the Placement API."""
    with PlacementDirect(url) as client:
        allocation = {"allocations": {uuid_named(of): {"resources": amounts}}}
        body = {**allocation, "project_id": "p", "user_id": "u", "consumer_generation": None}
        answer = client.put(f"/allocations/{uuid_named('one')}", json=body, microversion="1.28")
        assert answer.status_code == 204


def test_heal_keeps_allocations_of_clients_and_links_the_instance(url):
    build_unallocated(url, hosts(2))
    write_to_placement(url, VCPU=3)
    assert run_heal(url)[0] == HealResult("healed", 1)
    assert amounts_by_provider(url) == {"h0": {"VCPU": 3}}
    with open_server(url) as here:
        (holder,) = here.run(lambda current: current.state).holders.values()
        assert (holder.instance.flavor_id, holder.project_id) == (here.status("one").flavor_id, "")
    assert run_heal(url)[0] == HealResult("nothing", 0)


# --- allocations ---


def nested(*, wide=2, traits=("", "CUSTOM_FAST")):
    """Return h0, with one child with cards for each trait."""
    providers = [
        ProviderSpec(
            uuid=uuid_named(f"card{number}"),
            name=f"card{number}",
            parent_uuid=uuid_named("h0"),
            inventories={"CUSTOM_CARD": Inventory(total=wide)},
            traits=frozenset(filter(None, [trait])),
        )
        for number, trait in enumerate(traits)
    ]
    return merge_fleets(host("h0"), Fleet(providers=providers))


def amounts_by_provider(url, name="one"):
    """Return the amounts of an instance by provider name."""
    with open_server(url) as here:
        state = here.run(lambda current: current.state)
        providers, by_name = state.providers, {}
        for inventory_id, amount in state.holders[uuid_bytes(uuid_named(name))].takes:
            row = providers.row_of_id[inventory_id >> 16]
            by_name.setdefault(providers.names[row], {})[state.class_ids.name_of(inventory_id & 0xFFFF)] = amount
        return by_name


FAST = {"resources1:CUSTOM_CARD": "1", "trait1:CUSTOM_FAST": "required"}
BOTH = {"resources1:CUSTOM_CARD": "1", "resources2:CUSTOM_CARD": "1", "group_policy": "isolate"}


@pytest.mark.parametrize(
    ("extra_specs", "cards"),
    [
        (FAST, {"card1": {"CUSTOM_CARD": 1}}),
        (BOTH, {"card0": {"CUSTOM_CARD": 1}, "card1": {"CUSTOM_CARD": 1}}),
        (
            {**BOTH, "group_policy": "none", "trait1:CUSTOM_FAST": "required", "trait2:CUSTOM_FAST": "required"},
            {"card1": {"CUSTOM_CARD": 2}},
        ),
    ],
)
def test_heal_serves_each_flavor_group_from_a_matching_provider(url, extra_specs, cards):
    before = build_unallocated(url, nested(), extra_specs=extra_specs)
    assert run_heal(url)[0] == HealResult("healed", 1)
    assert amounts_by_provider(url) == {"h0": {"VCPU": 1, "MEMORY_MB": 1}, **cards}
    assert allocations(url) == before


def test_heal_restores_the_resource_groups_of_the_request(url):
    port = ResourceGroup(suffix="_port", resources={"CUSTOM_CARD": 1}, required=(frozenset({"CUSTOM_FAST"}),))
    build_unallocated(url, nested(), groups=(port,))
    assert run_heal(url)[0] == HealResult("healed", 1)
    assert amounts_by_provider(url) == {"h0": {"VCPU": 1, "MEMORY_MB": 1}, "card1": {"CUSTOM_CARD": 1}}


def test_heal_refuses_groups_that_the_host_cannot_serve(url):
    build_unallocated(url, nested(wide=1), extra_specs=BOTH)
    with open_server(url) as here:
        here.build("two", key="two", extra_specs=FAST, force_hosts=("h0",))
        run_agents_until_idle(here, resize_agents(here, "h0"))
        assert instance_summary(here, "two")[0] == "ACTIVE"
    result, _ = run_heal(url)
    assert (result.verdict, result.healed) == ("refused", 0)
    assert result.problem == (
        f"instance {uuid_named('one')} cannot hold its requested amounts: "
        "h0 is among the hosts that lack 1 CUSTOM_CARD or more on 2 providers"
    )
    assert allocations(url) is None


def test_heal_restores_disk_on_a_sharing_provider(url):
    pool = host("pool", DISK_GB=100, aggregates=["near"]).providers[0]
    pool = Fleet(providers=[msgspec.structs.replace(pool, traits=SHARES)])
    fleet = merge_fleets(aggregate("near"), host("h0", VCPU=8, MEMORY_MB=32, aggregates=["near"]), pool)
    build_unallocated(url, fleet, extra_specs={"resources:DISK_GB": "7"}, force_hosts=())
    assert run_heal(url)[0] == HealResult("healed", 1)
    assert amounts_by_provider(url) == {"h0": {"VCPU": 1, "MEMORY_MB": 1}, "pool": {"DISK_GB": 7}}


def test_heal_restores_pci_devices_tracked_in_placement(url):
    alias = json.dumps({"name": "card", "resource_class": "CUSTOM_CARD", "traits": "CUSTOM_FAST"})
    settings = Settings(
        filter_scheduler=FilterScheduler(enabled_filters=(), pci_in_placement=True), pci=Pci(alias=(alias,))
    )
    build_unallocated(url, nested(), settings=settings, extra_specs={"pci_passthrough:alias": "card:2"})
    assert run_heal(url, settings)[0] == HealResult("healed", 1)
    assert amounts_by_provider(url) == {"h0": {"VCPU": 1, "MEMORY_MB": 1}, "card1": {"CUSTOM_CARD": 2}}


def test_heal_ignores_tenant_isolation_rules(url):
    build_unallocated(url, hosts(1))
    strict = Scheduler(limit_tenants_to_placement_aggregate=True, placement_aggregate_required_for_tenants=True)
    assert run_heal(url, Settings(scheduler=strict))[0] == HealResult("healed", 1)


@pytest.mark.parametrize("has_children", [False, True])
def test_heal_is_refused_when_the_capacity_was_taken(url, has_children):
    build_unallocated(url, nested() if has_children else hosts(1), vcpus=5)
    with open_server(url) as here:
        here.build("two", key="two", vcpus=4, force_hosts=("h0",))
        run_agents_until_idle(here, resize_agents(here, "h0"))
    result, _ = run_heal(url)
    assert (result.verdict, result.healed) == ("refused", 0)
    assert f"provider {uuid_named('h0')} has less than 5 VCPU left" in result.problem


def test_forced_heal_replaces_existing_allocations(url):
    build_unallocated(url, nested(wide=1), vcpus=5, extra_specs=FAST)
    write_to_placement(url, of="card1", CUSTOM_CARD=1)
    forced = {"instance": uuid_named("one"), "is_forced": True}
    assert run_heal(url, **forced)[0] == HealResult("healed", 1)
    assert amounts_by_provider(url) == {"h0": {"VCPU": 5, "MEMORY_MB": 1}, "card1": {"CUSTOM_CARD": 1}}
    assert run_heal(url, **forced)[0] == HealResult("nothing", 0)
    assert (audit(url), orphans(url)) == ([], [])


def test_claim_planner_finds_the_row_of_the_exact_node(url):
    nodes = merge_fleets(host("n0"), host("n1"))
    fleet = msgspec.structs.replace(nodes, hosts=[msgspec.structs.replace(each, host="h0") for each in nodes.hosts])
    with open_server(url, fleet) as here:
        planner = ClaimPlanner(here.roost, here.store.document)
        row = planner.find_row(status(host="H0", node="n1"))
        assert here.roost.state.hosts.nodes[row] == "n1"
        assert planner.find_row(status(host="h0", node="n2")) is None
        assert planner.find_row(status(host="n1", node="n1")) is None
        providers = here.roost.state.providers
        drop = DropProvider(providers.ids[providers.row_of_uuid[uuid_named("n1")]])
        here.run(lambda _current: Plan(answer=None, writes=(drop,)))
        assert planner.find_row(status(host="h0", node="n1")) is None


def test_planned_claim_is_refused_after_the_instance_changed(url):
    build_unallocated(url, hosts(1))
    uuid = uuid_bytes(uuid_named("one"))
    with closing(open_store(url, settings=StoreSettings())) as store, server(store) as here:
        one, planner = here.status("one"), ClaimPlanner(here.roost, store.document)
        shape = here.roost.scheduler.shape(planner.read_request(one))
        plan = planner.plan(shape, one, 0, allocations=planner.find_allocations(shape, one, 0))
        assert here.roost.placement.commit([Item((), work=(replace_row(next_version(one, name="other")),))]) == [None]
        (refusal,) = here.roost.placement.commit([plan.item])
        assert refusal.is_final
        assert uuid not in here.roost.state.holders
