"""Requests for many instances, server groups, and dry runs."""

from collections import Counter

import msgspec
import pytest

from roost.engine.columns.apply import occupy, undo_claim
from roost.errors import BadRequest, NotFound
from roost.model.fleet import Departure
from roost.model.host import HostFacts
from roost.placement.current import Current
from roost.scheduler import registry
from roost.scheduler.select import Scheduler
from roost.store.memory_store import MemoryStore
from tests.support.fleets.worlds import (
    FixedClock,
    SeededRandom,
    chosen_hosts,
    digest,
    group,
    host,
    hosts,
    roost_with,
    settings_of,
    small_request,
    uuid_named,
)

# --- requests for many instances -------------------------------------------------------------------------------------


@pytest.mark.shows("S005", "S006", "S168")
def test_each_instance_sees_the_claims_of_earlier_ones():
    roost = roost_with(host("h0", VCPU=8, MEMORY_MB=10), host("h1", VCPU=8, MEMORY_MB=9))
    assert chosen_hosts(roost.decide(small_request(count=4))) == ["h0", "h1", "h0", "h1"]


@pytest.mark.shows("S006", "S168")
@pytest.mark.parametrize("count", [2, 9, 1000])
def test_request_for_many_equals_many_requests_for_one(count):
    fleets = [hosts(230, VCPU=6, MEMORY_MB=40), host("large", VCPU=20, MEMORY_MB=300)]
    # Only instances of the same request count as operations in flight.
    settings = settings_of(options={"io_ops_weight_multiplier": 0.0})
    together = roost_with(*fleets, settings=settings).decide(small_request(count=count))
    one_by_one = roost_with(*fleets, settings=settings).work([small_request()] * count)
    assert chosen_hosts(together) == [each.picks[0].host for each in one_by_one]


def test_refused_request_for_many_changes_nothing():
    store = MemoryStore()
    roost = roost_with(hosts(200, VCPU=4, MEMORY_MB=100), group("g", "anti-affinity", limit=3), store=store)
    roost.decide(small_request(count=7, in_group="g"))
    before = digest(roost.state)
    decision = roost.decide(small_request(count=794))
    assert decision.reason == "0 of 200 hosts: 200 lack 1 VCPU or more; room for 793 of 794 instances"
    group_decision = roost.decide(small_request(count=600, in_group="g"))
    assert "200 hold 3 members of the server group; room for 593 of 600 instances" in group_decision.reason
    assert digest(roost.state) == before
    assert digest(Current(store).state) == before
    assert roost.decide(small_request(count=793)).is_granted


def test_request_for_many_has_one_evidence_record():
    store = MemoryStore()
    roost = roost_with(hosts(5), store=store)
    decision = roost.decide(small_request(count=10))
    (row,) = store.evidence(newest=10)
    assert row.hosts.split() == sorted(set(chosen_hosts(decision)))
    assert decision.stages[0].before == 5
    assert len(decision.best) == 5


@pytest.mark.shows("S015", "S177")
def test_alternates_of_many_are_unused_hosts():
    decision = roost_with(hosts(6)).decide(small_request(count=3))
    assert (chosen_hosts(decision), [pick.host for pick in decision.alternates[""]]) == (
        ["h0", "h1", "h2"],
        ["h3", "h4"],
    )


def test_departures_release_all_resources():
    store = MemoryStore()
    roost = roost_with(hosts(7), group("g", "affinity"), group("f", "fault-domain"), store=store)
    before = {**digest(roost.state), "generations": {}}
    decisions = roost.work([small_request(count=5), small_request(in_group="g", count=2), small_request(vcpus=3)])
    roost.work([Departure(instance_uuids=tuple(pick.instance_uuid for pick in each.picks)) for each in decisions])
    assert {**digest(roost.state), "generations": {}} == before
    assert digest(Current(store).state) == digest(roost.state)


# --- server groups ---------------------------------------------------------------------------------------------------


def hosts_in_racks(*racks):
    return [host(f"h{number}", facts=HostFacts(rack=rack)) for number, rack in enumerate(racks)]


@pytest.mark.shows("S215")
def test_affinity_keeps_all_members_on_one_host():
    roost = roost_with(hosts(4, VCPU=4, MEMORY_MB=40), group("g", "affinity"))
    first = chosen_hosts(roost.decide(small_request(in_group="g", count=2)))
    roost.decide(small_request(count=3))
    assert {*first, *chosen_hosts(roost.decide(small_request(in_group="g")))} == {"h0"}
    full = roost.decide(small_request(in_group="g", count=2))
    assert full.outcome == "refused"
    assert "3 hold no member of the server group" in full.reason


def test_empty_affinity_group_may_use_any_host():
    roost = roost_with(hosts(2), group("g", "affinity"))
    uuid = roost.decide(small_request(in_group="g", force_hosts=("h1",))).picks[0].instance_uuid
    roost.work([Departure(instance_uuids=(uuid,))])
    assert chosen_hosts(roost.decide(small_request(in_group="g"))) == ["h0"]


@pytest.mark.shows("S038", "S215")
@pytest.mark.parametrize(("limit", "room"), [(1, 3), (2, 6), (3, 9)])
def test_anti_affinity_limits_the_members_per_host(limit, room):
    roost = roost_with(hosts(3), group("g", "anti-affinity", limit=limit))
    assert roost.decide(small_request(in_group="g", count=room + 1)).outcome == "refused"
    decisions = [roost.decide(small_request(in_group="g")) for _ in range(room - 2)] + [
        roost.decide(small_request(in_group="g", count=2))
    ]
    assert set(Counter(host for each in decisions for host in chosen_hosts(each)).values()) == {limit}
    assert roost.decide(small_request(in_group="g")).outcome == "refused"


def in_domain(name, **request):
    return small_request(in_group="g", hints={"fault_domain": name}, **request)


@pytest.mark.parametrize("filters", [("compute", "fault_domain"), ("compute",)], ids=["enabled", "not enabled"])
def test_fault_domains_share_no_rack(filters):
    settings = settings_of(enabled_filters=filters)
    roost = roost_with(*hosts_in_racks("r1", "r1", "r2", "r3", ""), group("g", "fault-domain"), settings=settings)
    first = roost.decide(in_domain("a", count=2))
    second = roost.decide(in_domain("b", count=3))
    assert (chosen_hosts(first), chosen_hosts(second)) == (["h0", "h1"], ["h2", "h3", "h2"])
    assert chosen_hosts(roost.decide(in_domain("a"))) == ["h0"]
    third = roost.decide(in_domain("c"))
    assert "5 share a rack with another fault domain of the server group, or are in no known rack" in third.reason


def test_forced_host_obeys_the_server_group_policy():
    roost = roost_with(hosts(2), group("g", "anti-affinity"))
    roost.decide(small_request(in_group="g", force_hosts=("h1",)))
    again = roost.decide(small_request(in_group="g", force_hosts=("h1",)))
    assert (again.outcome, again.conflicts) == ("refused", [])
    assert "1 holds a member of the server group" in again.reason


@pytest.mark.shows("S103", "S104")
def test_soft_policies_prefer_or_avoid_hosts_with_members():
    options = {"soft_affinity_weight_multiplier": 10.0, "soft_anti_affinity_weight_multiplier": 10.0}
    together, apart = group("t", "soft-affinity"), group("a", "soft-anti-affinity")
    roost = roost_with(hosts(3, VCPU=4, MEMORY_MB=40), together, apart, settings=settings_of(options=options))
    assert chosen_hosts(roost.decide(small_request(in_group="t", count=4))) == ["h0"] * 4
    assert chosen_hosts(roost.decide(small_request(in_group="t"))) == ["h1"]  # h0 is full, so the soft policy yields.
    assert sorted(chosen_hosts(roost.decide(small_request(in_group="a", count=4)))) == ["h1", "h1", "h2", "h2"]


# --- dry runs --------------------------------------------------------------------------------------------------------


class ForkLedger:
    """A ledger for dry runs: a fork of the columns without a store."""

    is_shared = False
    ahead = 0
    visible_changes = ""

    lessons = None  # no weigher learns
    part = None

    def __init__(self, state, next_id):
        self.state = state.fork()
        self.staged_count = 0
        self._next = next_id

    def group_size(self, maximum):
        """Return the maximum, because nothing waits for locks."""
        return maximum

    def refresh(self):
        """Return False, because no other process writes."""
        return False

    def new_id(self, kind):
        """Return a new identity."""
        self._next += 1
        return self._next

    def occupy(self, claim):
        """Add the amounts of a claim to the columns."""
        occupy(self.state, claim)

    def withdraw(self, claims, left=None):
        """Undo claims, the last one first."""
        assert left is None
        for claim in reversed(claims):
            undo_claim(self.state, claim, was_counted=False)

    def stage(self, item, left=None):
        """Count an item and return its index."""
        self.staged_count += 1
        return self.staged_count - 1

    def release(self, consumer_uuids):
        """Raise an error."""
        raise BadRequest("a dry run ends no instance")

    def flush(self):
        """Accept all items."""
        count, self.staged_count = self.staged_count, 0
        return [None] * count

    def drop(self):
        """Do nothing."""

    def document(self, kind, body):
        """Return a number without storing the document."""
        return 1


def dry_run(roost, settings, requests, *, seed):
    ledger = ForkLedger(roost.state, 10**6)
    scheduler = Scheduler(
        placement=ledger,
        documents=ledger,
        rules=registry.build(settings),
        settings=settings.scheduler,
        filter_settings=settings.filter_scheduler,
        default_zone="nova",
        settings_body=settings.body(),
        group_max=10**6,
        clock=FixedClock(),
        random=SeededRandom(seed),
    )
    return scheduler.work(requests), ledger.state


def bits(decisions):
    """Return decisions as bytes, without document numbers, feed position and durations."""
    comparable = [
        msgspec.structs.replace(each, request_id=0, settings_id=0, position=0, search_s=0.0, rank_s=0.0)
        for each in decisions
    ]
    return msgspec.msgpack.encode(comparable)


@pytest.mark.parametrize("draw_settings", [{}, {"host_subset_size": 3}, {"shuffle": True}], ids=str)
def test_dry_run_equals_the_real_decisions_bit_for_bit(draw_settings):
    settings = settings_of(options={"ram_weight_multiplier": -1.0}, **draw_settings)
    fleets = [
        hosts(30),
        host("large", VCPU=64, MEMORY_MB=256),
        group("g", "anti-affinity"),
        group("s", "soft-affinity"),
    ]
    roost = roost_with(*fleets, settings=settings, seed=3)
    roost.work([small_request(count=20), small_request(vcpus=3, in_group="g"), small_request()])
    requests = [
        small_request(),
        small_request(count=9),
        small_request(in_group="g", count=4),
        small_request(in_group="s", count=3),
        small_request(count=900),
        small_request(vcpus=8),
    ] * 2
    before = digest(roost.state)
    dry, fork = dry_run(roost, settings, requests, seed=11)
    assert digest(roost.state) == before
    roost.scheduler._random = SeededRandom(11)
    real = roost.work(requests)
    assert bits(dry) == bits(real)
    for part in ("used", "columns", "best", "groups"):
        assert digest(fork)[part] == digest(roost.state)[part]


@pytest.mark.shows("S012")
@pytest.mark.parametrize("hint", [uuid_named("g"), [uuid_named("g").upper()]], ids=["text", "list"])
def test_group_hint_selects_a_server_group(hint):
    roost = roost_with(hosts(2), group("g", "anti-affinity"))
    request = small_request(hints={"group": hint})
    assert [chosen_hosts(roost.decide(request)) for _ in range(2)] == [["h0"], ["h1"]]
    refusal = roost.decide(request)
    assert "2 hold a member of the server group" in refusal.reason
    assert [change.kind for change in roost.explain(request).changes if change.kind == "server_group"]
    with pytest.raises(NotFound, match="no such server group: nobody"):
        roost.decide(small_request(hints={"group": "nobody"}))
