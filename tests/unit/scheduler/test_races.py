"""Commits that lose a race to another process, or that fail in the store."""

import pytest

from roost.errors import Conflict, StoreBroken
from roost.model.fleet import Departure
from roost.placement.current import Current
from roost.store.memory_store import MemoryStore
from tests.support.databases.racing_stores import BreakableStore, RacyStore
from tests.support.fleets.worlds import (
    chosen_hosts,
    digest,
    group,
    host,
    hosts,
    roost_on,
    roost_with,
    small_request,
    uuid_named,
)


def roost_and_rival(*fleets):
    """Return a Roost, its store, and a rival Roost on the same rows."""
    store = RacyStore()
    roost = roost_with(*fleets, store=store)
    return roost, store, roost_on(store.peer(), seed=99)


def agrees_with_store(roost, store) -> bool:
    """Return whether the columns equal the stored rows."""
    roost.work([])  # reads the commits of other processes
    return digest(roost.state) == digest(Current(store.peer()).state)


@pytest.mark.shows("S171")
def test_a_lost_race_moves_on_to_the_next_best_host():
    roost, store, rival = roost_and_rival(host("best", VCPU=1, MEMORY_MB=64), host("next", VCPU=1, MEMORY_MB=32))
    store.rivals = [lambda: rival.decide(small_request(force_hosts=("best",)))]
    decision = roost.decide(small_request())
    assert chosen_hosts(decision) == ["next"]
    assert decision.conflicts == ["best"]
    assert [refusal.kind for refusal in store.refusals] == ["capacity"]
    assert agrees_with_store(roost, store)


def test_lost_race_stores_nothing_twice():
    roost, store, rival = roost_and_rival(hosts(3, VCPU=2, MEMORY_MB=8))
    store.rivals = [lambda: rival.decide(small_request(vcpus=2)), lambda: rival.decide(small_request(vcpus=2))]
    decision = roost.decide(small_request(vcpus=2, instance_uuids=(uuid_named("mine"),)))
    assert (decision.is_granted, len(decision.conflicts)) == (True, 2)
    assert len(store.evidence(newest=10)) == 3  # one for each acknowledged decision, none for the two lost races
    assert sum(holder.uuid == uuid_bytes("mine") for holder in roost.state.holders.values()) == 1
    assert agrees_with_store(roost, store)
    assert len(roost.state.holders) == 3


def uuid_bytes(name):
    return bytes.fromhex(uuid_named(name).replace("-", ""))


@pytest.mark.shows("S171")
def test_lost_race_for_the_last_host_is_a_refusal():
    roost, store, rival = roost_and_rival(hosts(1, VCPU=1, MEMORY_MB=8))
    store.rivals = [lambda: rival.decide(small_request())]
    decision = roost.decide(small_request())
    assert (decision.outcome, decision.reason) == ("refused", "0 of 1 hosts: 1 lacks 1 VCPU or more")
    assert decision.conflicts == ["h0"]
    assert agrees_with_store(roost, store)


def test_request_for_many_is_retried_after_a_lost_race():
    roost, store, rival = roost_and_rival(hosts(150, VCPU=1, MEMORY_MB=8))
    store.rivals = [lambda: rival.decide(small_request())]
    decision = roost.decide(small_request(count=120))
    assert (decision.is_granted, len(decision.picks)) == (True, 120)
    assert agrees_with_store(roost, store)


def test_request_that_loses_every_race_fails_and_changes_nothing():
    roost, store, rival = roost_and_rival(hosts(1))
    before = digest(roost.state)
    instance_uuids = []

    def take_everything():
        instance_uuids.append(rival.decide(small_request(vcpus=8)).picks[0].instance_uuid)

    store.rivals = [take_everything] * 100
    store.afterwards = [lambda: rival.work([Departure(instance_uuids=(instance_uuids.pop(),))])] * 100
    with pytest.raises(Conflict, match="lost 96 races"):
        roost.decide(small_request())
    assert agrees_with_store(roost, store)
    assert {**digest(roost.state), "generations": {}} == {**before, "generations": {}}


def test_concurrent_members_of_a_group_obey_anti_affinity():
    roost, store, rival = roost_and_rival(hosts(3), group("g", "anti-affinity"))
    store.rivals = [lambda: rival.decide(small_request(in_group="g"))]
    decision = roost.decide(small_request(in_group="g"))
    assert (chosen_hosts(decision), decision.conflicts) == (["h1"], ["h0"])
    assert [refusal.kind for refusal in store.refusals] == ["place"]
    assert agrees_with_store(roost, store)


def test_first_member_of_an_affinity_group_binds_both_processes():
    roost, store, rival = roost_and_rival(hosts(3), group("g", "affinity"))
    store.rivals = [lambda: rival.decide(small_request(in_group="g", force_hosts=("h2",)))]
    decision = roost.decide(small_request(in_group="g", count=2))
    assert (chosen_hosts(decision), decision.conflicts) == (["h2", "h2"], ["h0"])
    assert agrees_with_store(roost, store)


def test_lost_race_of_one_act_does_not_affect_the_batch():
    roost, store, rival = roost_and_rival(host("big", VCPU=1, MEMORY_MB=64), hosts(4, VCPU=1, MEMORY_MB=8))
    store.rivals = [lambda: rival.decide(small_request(force_hosts=("big",)))]
    decisions = roost.work([small_request() for _ in range(4)])
    assert sorted(pick.host for each in decisions for pick in each.picks) == ["h0", "h1", "h2", "h3"]
    assert [each.conflicts for each in decisions] == [["big"], [], [], []]
    assert agrees_with_store(roost, store)


def test_instance_ends_even_if_its_claim_lost_the_first_race():
    roost, store, rival = roost_and_rival(hosts(2, VCPU=1, MEMORY_MB=8))
    store.rivals = [lambda: rival.decide(small_request())]
    short = small_request(instance_uuids=(uuid_named("short"),))
    decision, _ = roost.work([short, Departure(instance_uuids=(uuid_named("short"),))])
    assert decision.conflicts == ["h0"]
    assert uuid_bytes("short") not in roost.state.holders
    assert agrees_with_store(roost, store)


def test_a_uuid_taken_by_another_process_is_a_conflict():
    roost, store, rival = roost_and_rival(hosts(2))
    request = small_request(instance_uuids=(uuid_named("both"),))
    store.rivals = [lambda: rival.decide(request)]
    with pytest.raises(Conflict, match="exists already"):
        roost.decide(request)
    assert agrees_with_store(roost, store)
    assert len(roost.state.holders) == 1


def test_claims_and_releases_of_another_process_are_seen():
    roost, store, rival = roost_and_rival(hosts(1, VCPU=1, MEMORY_MB=8))
    rival_decision = rival.decide(small_request())
    assert roost.decide(small_request()).outcome == "refused"
    rival.work([Departure(instance_uuids=(rival_decision.picks[0].instance_uuid,))])
    assert roost.decide(small_request()).outcome == "granted"
    assert agrees_with_store(roost, store)


def test_both_processes_may_end_the_same_instance():
    roost, store, rival = roost_and_rival(hosts(1), group("g", "anti-affinity"))
    uuid = roost.decide(small_request(in_group="g")).picks[0].instance_uuid
    departure = Departure(instance_uuids=(uuid,))
    rival.work([])
    roost.work([departure])
    assert rival.work([departure]) == [None]
    assert agrees_with_store(roost, store)
    assert agrees_with_store(rival, store)
    assert roost.state.holders == {}


def test_store_failure_is_raised_and_nothing_is_stored():
    store = BreakableStore()
    roost = roost_with(hosts(2), store=store)
    before = digest(roost.state)
    store.is_broken = True
    with pytest.raises(StoreBroken, match="disk is full"):
        roost.work([small_request(), small_request()])
    assert store.evidence(newest=10) == []
    store.is_broken = False
    assert roost.work([]) == []
    assert digest(roost.state) == before


def test_call_after_a_failed_commit_uses_the_stored_state():
    store = BreakableStore()
    roost = roost_with(hosts(2, VCPU=2, MEMORY_MB=8), store=store)
    roost.decide(small_request(vcpus=2))
    store.is_broken = True
    with pytest.raises(StoreBroken):
        roost.decide(small_request(vcpus=2))
    store.is_broken = False
    decision = roost.decide(small_request(vcpus=2))
    assert chosen_hosts(decision) == ["h1"]
    assert digest(roost.state) == digest(Current(store.peer()).state)
    assert len(store.evidence(newest=10)) == 2


def test_refused_decision_is_stored():
    store = MemoryStore()
    roost = roost_with(hosts(1), store=store)
    decision = roost.decide(small_request(vcpus=100))
    (row,) = store.evidence(newest=10)
    assert (row.outcome, row.reason) == ("refused", decision.reason)
