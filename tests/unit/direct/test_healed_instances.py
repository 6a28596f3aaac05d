"""An instance that is healed is as it would be if the scheduler had chosen its host just then, on either database."""

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
from tests.support.conductors.conductors import failed, server
from tests.support.conductors.group_rules import rule_holds
from tests.support.conductors.move_servers import at_rest
from tests.support.conductors.resize_servers import Copy, ask, keepers, told
from tests.support.conductors.work_rows import status
from tests.support.fleets.worlds import aggregate, group, host, hosts, joined, uuid_named

SHARES = frozenset({"MISC_SHARES_VIA_AGGREGATE"})
POLICIES = ("affinity", "anti-affinity", "fault-domain", "soft-affinity")


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, tmp_path):
    """Give an empty database."""
    return str(tmp_path / "roost.db") if request.param == "sqlite" else request.getfixturevalue("postgres_url")


@contextmanager
def serving(url, *fleets, settings=None):
    """Give a server on a database, which ends with the block."""
    with (
        closing(open_store(url, settings=StoreSettings())) as store,
        server(store, *fleets, settings=settings) as here,
    ):
        yield here


def lose(here, *names):
    """Let instances hold nothing any more, as if somebody had deleted their allocations."""

    def task(_current):
        placement = here.roost.placement
        assert placement.release([uuid_named(name) for name in names]) == len(names)
        assert placement.flush() == [None] * len(names)

    here.run(task)


def lost(url, fleet, *, settings=None, **asked):
    """Let an instance run on h0 that holds nothing; give what it held there."""
    with serving(url, fleet, settings=settings) as here:
        hands = keepers(here, "h0")
        here.build("one", **{"force_hosts": ("h0",), **asked})
        at_rest(here, hands)
        assert told(here, "one") == ("ACTIVE", "h0", "")
        held = here.held("one")
        lose(here, "one")
    return held


def healed(url, settings=None, **asked):
    """Heal; give what came of it, and the sentences that were told."""
    said = []
    return heal(url, settings or Settings(), HealOptions(**asked), echo=said.append), said


def held(url, name="one"):
    """Give the node of an instance with all that it holds, or None."""
    with serving(url) as here:
        return here.held(name)


# --- whose it is ---


def test_an_instance_of_nobody_is_whole_and_is_healed_as_placement_shows_it(url):
    before = lost(url, hosts(1))
    assert healed(url)[0] == HealResult("healed", 1)
    assert held(url) == before
    assert healed(url) == (HealResult("nothing", 0), [f"instance {uuid_named('one')} holds what it needs"])


def test_who_is_shown_as_nobody_is_nobody_however_that_is_written(url):
    lost(url, hosts(1))
    assert healed(url)[0] == HealResult("healed", 1)
    path = f"/allocations/{uuid_named('one')}"
    with PlacementDirect(url) as client:
        shown = client.get(path, microversion="1.28").json()
        assert client.put(path, json=shown, microversion="1.28").status_code == 204
    assert healed(url)[0] == HealResult("nothing", 0)
    renamed = Settings(placement=Placement(incomplete_consumer_project_id="of nobody"))
    assert healed(url, renamed)[0] == HealResult("healed", 1)


# --- moves and groups ---


def racks(count):
    """Give hosts, each in a rack of its own."""
    return [host(f"h{number}", facts=HostFacts(rack=f"r{number}")) for number in range(count)]


@pytest.mark.parametrize("policy", POLICIES)
def test_it_is_counted_on_its_host_is_in_its_group_and_may_move(url, policy):
    lost(url, joined(*racks(3), group("g", policy)), in_group="g", hints={"fault_domain": "a"})
    assert healed(url)[0] == HealResult("healed", 1)
    assert (audit(url), orphans(url)) == ([], [])
    with serving(url) as here:
        state = here.run(lambda current: current.state)
        assert state.hosts.columns["num_instances"].view.tolist()[:3] == [1, 0, 0]
        assert sum(state.groups_by_uuid[uuid_named("g")].members.values()) == 1
        hands = keepers(here, "h0", "h1", "h2")
        hands["h0"].copies[uuid_named("one")] = Copy("running")
        here.build("two", key="two", in_group="g", hints={"fault_domain": "b"})
        at_rest(here, hands)
        assert (told(here, "two")[1] == "h0") == (policy in {"affinity", "soft-affinity"})
        ask(here, "migrate", "one")
        at_rest(here, hands)
        assert told(here, "one")[0] == "ACTIVE"
        if policy != "affinity":
            assert told(here, "one")[1] != "h0"
        if policy != "soft-affinity":
            rule_holds(here, policy, 1)
    assert audit(url) == []


def healed_outside(url, policy, *, count, fellow):
    """Heal one whose group has a fellow on a host by now, so that there is no place for it; give what is said."""
    lost(url, joined(*racks(count), group("g", policy)), in_group="g", hints={"fault_domain": "a"})
    with serving(url) as here:
        hands = keepers(here, fellow)
        here.build("two", key="two", in_group="g", force_hosts=(fellow,), hints={"fault_domain": "b"})
        at_rest(here, hands)
        assert told(here, "two")[:2] == ("ACTIVE", fellow)
    done, (one, _) = healed(url)
    assert done == HealResult("healed", 1)
    assert audit(url) == []
    return one


def test_where_its_group_has_no_place_for_it_any_more_it_is_outside_until_it_moves(url):
    one = healed_outside(url, "anti-affinity", count=3, fellow="h0")
    reason = "outside of its server group: the policy anti-affinity of its server group has no place for it on h0"
    assert one.endswith(reason)
    with serving(url) as here:
        hands = keepers(here, "h0", "h1")
        hands["h0"].copies[uuid_named("one")] = Copy("running")
        ask(here, "migrate", "one")
        at_rest(here, hands)
        assert told(here, "one") == ("ACTIVE", "h1", "")
        rule_holds(here, "anti-affinity", 1)


def test_where_the_others_of_its_group_are_elsewhere_by_now_it_is_outside(url):
    one = healed_outside(url, "affinity", count=2, fellow="h1")
    assert one.endswith("the policy affinity of its server group has no place for it on h0")
    with serving(url) as here:
        rule_holds(here, "affinity", 1)


@pytest.mark.parametrize("end", ["confirm", "revert"])
@pytest.mark.parametrize(("policy", "fellow"), [("affinity", "h1"), ("anti-affinity", "h0"), ("fault-domain", "h0")])
def test_one_outside_of_its_group_is_a_member_where_it_moves_and_outside_where_it_goes_back(url, policy, fellow, end):
    healed_outside(url, policy, count=2, fellow=fellow)
    with serving(url) as here:
        hands = keepers(here, "h0", "h1")
        hands["h0"].copies[uuid_named("one")] = Copy("running")
        ask(here, "migrate", "one", is_verified=True)
        at_rest(here, hands)
        assert told(here, "one") == ("VERIFY_RESIZE", "h1", "")
        rule_holds(here, policy, 1)
        ask(here, end, "one")
        at_rest(here, hands)
        assert told(here, "one") == ("ACTIVE", "h1" if end == "confirm" else "h0", "")
        rule_holds(here, policy, 1)
    assert (audit(url), orphans(url)) == ([], [])


@pytest.mark.parametrize("policy", ["anti-affinity", "fault-domain"])
def test_one_outside_of_its_group_that_goes_on_to_an_alternate_keeps_no_place_elsewhere(url, policy):
    healed_outside(url, policy, count=3, fellow="h0")
    with serving(url) as here:
        hands = keepers(here, "h0", "h1", "h2")
        hands["h0"].copies[uuid_named("one")] = Copy("running")
        ask(here, "migrate", "one", is_verified=True)
        once = [failed("no room")]  # whichever is asked first
        at_rest(here, hands, {("h1", "prepare"): once, ("h2", "prepare"): once})
        assert not once
        target = told(here, "one")[1]
        assert told(here, "one") == ("VERIFY_RESIZE", target, "")
        assert target != "h0"
        rule_holds(here, policy, 1)
        ask(here, "revert", "one")
        at_rest(here, hands)
        assert told(here, "one") == ("ACTIVE", "h0", "")
        rule_holds(here, policy, 1)
    assert (audit(url), orphans(url)) == ([], [])


def test_one_that_may_go_back_lets_nobody_join_its_group_and_goes_back(url):
    with serving(url, hosts(2), group("g", "affinity")) as here:
        hands = keepers(here, "h0", "h1")
        here.build("one", in_group="g", force_hosts=("h0",))
        at_rest(here, hands)
        ask(here, "migrate", "one", is_verified=True)
        at_rest(here, hands)
        assert told(here, "one") == ("VERIFY_RESIZE", "h1", "")
        before = here.held("one")
        lose(here, "one")
    assert healed(url)[0] == HealResult("healed", 1)
    assert held(url) == before
    with serving(url) as here:
        for name in ("h0", "h1"):
            keepers(here, name)
        here.build("two", key="two", in_group="g")
        here.turn()
        assert "accept no member of the server group while its only one moves" in told(here, "two")[2]
    assert (audit(url), orphans(url)) == ([], [])


def write_to_placement(url, *, of="h0", **amounts):
    """Let somebody write by the Placement API what the instance holds of a provider."""
    with PlacementDirect(url) as client:
        held = {"allocations": {uuid_named(of): {"resources": amounts}}}
        body = {**held, "project_id": "p", "user_id": "u", "consumer_generation": None}
        answer = client.put(f"/allocations/{uuid_named('one')}", json=body, microversion="1.28")
        assert answer.status_code == 204


def test_what_somebody_wrote_to_placement_stays_and_is_known_as_an_instance(url):
    lost(url, hosts(2))
    write_to_placement(url, VCPU=3)
    assert healed(url)[0] == HealResult("healed", 1)
    assert taken(url) == {"h0": {"VCPU": 3}}
    with serving(url) as here:
        (holder,) = here.run(lambda current: current.state).holders.values()
        assert (holder.instance.flavor_id, holder.project_id) == (here.status("one").flavor_id, "")
    assert healed(url)[0] == HealResult("nothing", 0)


# --- what it holds ---


def nested(*, wide=2, traits=("", "CUSTOM_FAST")):
    """Give h0, with a child a trait that offers cards."""
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
    return joined(host("h0"), Fleet(providers=providers))


def taken(url, name="one"):
    """Give what an instance holds, by the name of the provider."""
    with serving(url) as here:
        state = here.run(lambda current: current.state)
        providers, found = state.providers, {}
        for inventory_id, amount in state.holders[uuid_bytes(uuid_named(name))].takes:
            row = providers.row_of_id[inventory_id >> 16]
            found.setdefault(providers.names[row], {})[state.class_ids.name_of(inventory_id & 0xFFFF)] = amount
        return found


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
def test_each_group_of_its_flavor_is_served_by_a_provider_that_may(url, extra_specs, cards):
    before = lost(url, nested(), extra_specs=extra_specs)
    assert healed(url)[0] == HealResult("healed", 1)
    assert taken(url) == {"h0": {"VCPU": 1, "MEMORY_MB": 1}, **cards}
    assert held(url) == before


def test_groups_that_came_with_the_request_are_held_too(url):
    port = ResourceGroup(suffix="_port", resources={"CUSTOM_CARD": 1}, required=(frozenset({"CUSTOM_FAST"}),))
    lost(url, nested(), groups=(port,))
    assert healed(url)[0] == HealResult("healed", 1)
    assert taken(url) == {"h0": {"VCPU": 1, "MEMORY_MB": 1}, "card1": {"CUSTOM_CARD": 1}}


def test_groups_that_its_host_cannot_serve_are_refused_with_the_reason(url):
    lost(url, nested(wide=1), extra_specs=BOTH)
    with serving(url) as here:
        here.build("two", key="two", extra_specs=FAST, force_hosts=("h0",))
        at_rest(here, keepers(here, "h0"))
        assert told(here, "two")[0] == "ACTIVE"
    done, _ = healed(url)
    assert (done.verdict, done.healed) == ("refused", 0)
    assert done.problem == (
        f"instance {uuid_named('one')} cannot hold what it asks for: "
        "h0 is among the hosts that lack 1 CUSTOM_CARD or more on 2 providers"
    )
    assert held(url) is None


def test_a_disk_that_hosts_share_gives_its_part(url):
    pool = host("pool", DISK_GB=100, aggregates=["near"]).providers[0]
    pool = Fleet(providers=[msgspec.structs.replace(pool, traits=SHARES)])
    fleet = joined(aggregate("near"), host("h0", VCPU=8, MEMORY_MB=32, aggregates=["near"]), pool)
    lost(url, fleet, extra_specs={"resources:DISK_GB": "7"}, force_hosts=())
    assert healed(url)[0] == HealResult("healed", 1)
    assert taken(url) == {"h0": {"VCPU": 1, "MEMORY_MB": 1}, "pool": {"DISK_GB": 7}}


def test_pci_devices_that_placement_counts_are_held_again(url):
    alias = json.dumps({"name": "card", "resource_class": "CUSTOM_CARD", "traits": "CUSTOM_FAST"})
    settings = Settings(
        filter_scheduler=FilterScheduler(enabled_filters=(), pci_in_placement=True), pci=Pci(alias=(alias,))
    )
    lost(url, nested(), settings=settings, extra_specs={"pci_passthrough:alias": "card:2"})
    assert healed(url, settings)[0] == HealResult("healed", 1)
    assert taken(url) == {"h0": {"VCPU": 1, "MEMORY_MB": 1}, "card1": {"CUSTOM_CARD": 2}}


def test_rules_of_where_new_instances_may_go_keep_none_from_what_it_has(url):
    lost(url, hosts(1))
    strict = Scheduler(limit_tenants_to_placement_aggregate=True, placement_aggregate_required_for_tenants=True)
    assert healed(url, Settings(scheduler=strict))[0] == HealResult("healed", 1)


@pytest.mark.parametrize("has_children", [False, True])
def test_a_place_that_others_took_meanwhile_is_refused(url, has_children):
    lost(url, nested() if has_children else hosts(1), vcpus=5)
    with serving(url) as here:
        here.build("two", key="two", vcpus=4, force_hosts=("h0",))
        at_rest(here, keepers(here, "h0"))
    done, _ = healed(url)
    assert (done.verdict, done.healed) == ("refused", 0)
    assert f"provider {uuid_named('h0')} has less than 5 VCPU left" in done.problem


def test_by_force_it_holds_what_it_asked_for_in_place_of_what_it_holds_and_in_its_room(url):
    lost(url, nested(wide=1), vcpus=5, extra_specs=FAST)
    write_to_placement(url, of="card1", CUSTOM_CARD=1)
    forced = {"instance": uuid_named("one"), "is_forced": True}
    assert healed(url, **forced)[0] == HealResult("healed", 1)
    assert taken(url) == {"h0": {"VCPU": 5, "MEMORY_MB": 1}, "card1": {"CUSTOM_CARD": 1}}
    assert healed(url, **forced)[0] == HealResult("nothing", 0)
    assert (audit(url), orphans(url)) == ([], [])


def test_an_instance_is_on_the_very_node_that_it_is_said_to_be_on(url):
    nodes = joined(host("n0"), host("n1"))
    fleet = msgspec.structs.replace(nodes, hosts=[msgspec.structs.replace(each, host="h0") for each in nodes.hosts])
    with serving(url, fleet) as here:
        reclaiming = ClaimPlanner(here.roost, here.store.document)
        row = reclaiming.find_row(status(host="H0", node="n1"))
        assert here.roost.state.hosts.nodes[row] == "n1"
        assert reclaiming.find_row(status(host="h0", node="n2")) is None
        assert reclaiming.find_row(status(host="n1", node="n1")) is None
        providers = here.roost.state.providers
        gone = DropProvider(providers.ids[providers.row_of_uuid[uuid_named("n1")]])
        here.run(lambda _current: Plan(answer=None, writes=(gone,)))
        assert reclaiming.find_row(status(host="h0", node="n1")) is None


def test_an_instance_that_changes_meanwhile_is_left_alone(url):
    lost(url, hosts(1))
    uuid = uuid_bytes(uuid_named("one"))
    with closing(open_store(url, settings=StoreSettings())) as store, server(store) as here:
        one, reclaiming = here.status("one"), ClaimPlanner(here.roost, store.document)
        shape = here.roost.scheduler.shape(reclaiming.read_request(one))
        found = reclaiming.plan(shape, one, 0, allocations=reclaiming.find_allocations(shape, one, 0))
        assert here.roost.placement.commit([Item((), work=(replace_row(next_version(one, name="other")),))]) == [None]
        (refusal,) = here.roost.placement.commit([found.item])
        assert refusal.is_final
        assert uuid not in here.roost.state.holders
