"""Decisions that are steps of an operation: the step is taken in their commit, and nothing is decided twice."""

from contextlib import closing

import msgspec
import pytest

from roost.errors import Conflict
from roost.model.fleet import NamedRequest
from roost.model.names import uuid_bytes
from roost.model.request import Move
from roost.model.work.work_rows import Put
from roost.model.writes import Item
from roost.placement.current import Current
from roost.store.memory_store import MemoryStore
from tests.support.conductors.work_rows import operation
from tests.support.databases.racing_stores import RacyStore
from tests.support.fleets.worlds import FixedClock, chosen, digest, hosts, roost_on, roost_with, uuid_named, wish

DECISION, ME = uuid_named("decision"), uuid_named("me")
OPEN = operation(1, step="choose")
SENT = Put(msgspec.structs.replace(OPEN, step="send", version=2), expected=1)


def named(request, *work, uuid=DECISION):
    return NamedRequest(request=request, decision_uuid=uuid, work=work)


def known(store):
    """Give the operation as it is stored."""
    with closing(store.work_reader(FixedClock(0.0))) as reader:
        return reader.operation(1)


@pytest.fixture(params=[False, True], ids=["alone", "shared"])
def store(request):
    """Give a store with the operation, of one process or of several."""
    made = RacyStore()
    if request.param:
        made.peer()
    assert made.commit([Item((), (), (Put(OPEN),))]).refusals == [None]
    return made


def test_a_granted_decision_takes_its_step(store):
    roost = roost_with(hosts(1), store=store)
    assert chosen(roost.work([named(wish(), SENT)])[0]) == ["h0"]
    assert known(store) == SENT.row
    assert [row.uuid for row in store.evidence()] == [uuid_bytes(DECISION)]


def test_a_refused_decision_takes_its_step_too(store):
    roost = roost_with(hosts(1, VCPU=1, MEMORY_MB=64), store=store)
    first, second = roost.work([wish(), named(wish(), SENT)])
    assert (first.is_granted, second.is_granted) == (True, False)
    assert known(store) == SENT.row
    assert len(store.evidence()) == 2


def test_where_the_step_was_taken_already_nothing_is_decided(store):
    roost = roost_with(hosts(1), store=store)
    assert store.commit([Item((), (), (SENT,))]).refusals == [None]
    other = uuid_named("other")
    results = roost.outcomes([wish(), named(wish(), SENT), named(wish(), uuid=other)])
    assert [chosen(results[0]), chosen(results[2])] == [["h0"], ["h0"]]
    assert isinstance(results[1], Conflict)
    assert str(results[1]) == "operation 1 was changed meanwhile: nothing was claimed"
    assert len(roost.state.holders) == 2
    assert len(store.evidence()) == 2
    roost.work([])
    assert digest(roost.state) == digest(Current(store.peer()).state)


def test_a_refusal_whose_step_was_taken_already_is_not_stored(store):
    roost = roost_with(hosts(1), store=store)
    assert store.commit([Item((), (), (SENT,))]).refusals == [None]
    (result,) = roost.outcomes([named(wish(vcpus=99), SENT)])
    assert isinstance(result, Conflict)
    assert store.evidence() == []


def test_a_race_for_the_host_is_decided_anew_and_the_step_is_taken_once(store):
    roost = roost_with(hosts(2, VCPU=1, MEMORY_MB=64), store=store)
    rival = roost_on(store.peer(), seed=99)
    store.rivals = [lambda: rival.decide(wish(force_hosts=("h0",)))]
    (decision,) = roost.work([named(wish(), SENT)])
    assert (chosen(decision), decision.conflicts) == (["h1"], ["h0"])
    assert known(store) == SENT.row


def test_a_race_for_the_step_is_lost_for_good(store):
    roost = roost_with(hosts(2, VCPU=1, MEMORY_MB=64), store=store)
    rival = roost_on(store.peer(), seed=99)
    cancelled = Put(msgspec.structs.replace(OPEN, is_cancelled=True, version=2), expected=1)
    store.rivals = [lambda: rival.decide(wish(force_hosts=("h0",))), lambda: store.commit([Item((), (), (cancelled,))])]
    (result,) = roost.outcomes([named(wish(), SENT)])
    assert isinstance(result, Conflict)
    assert known(store) == cancelled.row
    assert len(roost.state.holders) == 1


def test_who_was_to_move_for_a_step_that_was_taken_stays_where_it_was(store):
    roost = roost_with(hosts(2), store=store)
    assert chosen(roost.decide(wish(instance_uuids=(ME,)))) == ["h0"]
    before = digest(roost.state)
    assert store.commit([Item((), (), (SENT,))]).refusals == [None]
    moved = wish(move=Move(instance_uuid=ME, migration_uuid=uuid_named("migration")))
    (result,) = roost.outcomes([named(moved, SENT)])
    assert isinstance(result, Conflict)
    assert digest(roost.state) == before == digest(Current(store.peer()).state)


def test_a_dry_run_takes_no_step(store):
    roost = roost_with(hosts(1), store=store)
    assert chosen(roost.work([named(wish(), SENT)], dry_run=True)[0]) == ["h0"]
    assert known(store) == OPEN


def test_decisions_without_work_are_committed_as_ever():
    groups = []

    class Watched(MemoryStore):
        def commit(self, items):
            groups.append([bool(item.work) for item in items])
            return super().commit(items)

    roost = roost_with(hosts(1), store=Watched())
    roost.work([wish(), NamedRequest(request=wish(), decision_uuid=DECISION)])
    assert not any(any(group) for group in groups)
