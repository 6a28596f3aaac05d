"""Decisions as steps of an operation: one commit stores both, so that no step is decided twice."""

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
from tests.support.fleets.worlds import (
    FixedClock,
    chosen_hosts,
    digest,
    hosts,
    roost_on,
    roost_with,
    small_request,
    uuid_named,
)

DECISION, ME = uuid_named("decision"), uuid_named("me")
OPERATION = operation(1, step="choose")
SEND_STEP = Put(msgspec.structs.replace(OPERATION, step="send", version=2), expected=1)


def named_request(request, *work, uuid=DECISION):
    return NamedRequest(request=request, decision_uuid=uuid, work=work)


def stored_operation(store):
    """Return the stored operation."""
    with closing(store.work_reader(FixedClock(0.0))) as reader:
        return reader.operation(1)


@pytest.fixture(params=[False, True], ids=["alone", "shared"])
def store(request):
    """A store that holds the operation, used by one process or shared by two."""
    new_store = RacyStore()
    if request.param:
        new_store.peer()
    assert new_store.commit([Item((), (), (Put(OPERATION),))]).refusals == [None]
    return new_store


def test_a_granted_decision_takes_its_step(store):
    roost = roost_with(hosts(1), store=store)
    assert chosen_hosts(roost.work([named_request(small_request(), SEND_STEP)])[0]) == ["h0"]
    assert stored_operation(store) == SEND_STEP.row
    assert [row.uuid for row in store.evidence()] == [uuid_bytes(DECISION)]


def test_a_refused_decision_takes_its_step_too(store):
    roost = roost_with(hosts(1, VCPU=1, MEMORY_MB=64), store=store)
    first, second = roost.work([small_request(), named_request(small_request(), SEND_STEP)])
    assert (first.is_granted, second.is_granted) == (True, False)
    assert stored_operation(store) == SEND_STEP.row
    assert len(store.evidence()) == 2


def test_nothing_is_decided_if_the_step_was_already_taken(store):
    roost = roost_with(hosts(1), store=store)
    assert store.commit([Item((), (), (SEND_STEP,))]).refusals == [None]
    other = uuid_named("other")
    results = roost.outcomes(
        [small_request(), named_request(small_request(), SEND_STEP), named_request(small_request(), uuid=other)]
    )
    assert [chosen_hosts(results[0]), chosen_hosts(results[2])] == [["h0"], ["h0"]]
    assert isinstance(results[1], Conflict)
    assert str(results[1]) == "operation 1 was changed meanwhile: nothing was claimed"
    assert len(roost.state.holders) == 2
    assert len(store.evidence()) == 2
    roost.work([])
    assert digest(roost.state) == digest(Current(store.peer()).state)


def test_refusal_is_not_stored_if_its_step_was_already_taken(store):
    roost = roost_with(hosts(1), store=store)
    assert store.commit([Item((), (), (SEND_STEP,))]).refusals == [None]
    (result,) = roost.outcomes([named_request(small_request(vcpus=99), SEND_STEP)])
    assert isinstance(result, Conflict)
    assert store.evidence() == []


def test_decision_after_a_lost_race_for_a_host_takes_its_step_once(store):
    roost = roost_with(hosts(2, VCPU=1, MEMORY_MB=64), store=store)
    rival = roost_on(store.peer(), seed=99)
    store.rivals = [lambda: rival.decide(small_request(force_hosts=("h0",)))]
    (decision,) = roost.work([named_request(small_request(), SEND_STEP)])
    assert (chosen_hosts(decision), decision.conflicts) == (["h1"], ["h0"])
    assert stored_operation(store) == SEND_STEP.row


def test_lost_race_for_the_step_is_a_conflict(store):
    roost = roost_with(hosts(2, VCPU=1, MEMORY_MB=64), store=store)
    rival = roost_on(store.peer(), seed=99)
    cancellation = Put(msgspec.structs.replace(OPERATION, is_cancelled=True, version=2), expected=1)
    store.rivals = [
        lambda: rival.decide(small_request(force_hosts=("h0",))),
        lambda: store.commit([Item((), (), (cancellation,))]),
    ]
    (result,) = roost.outcomes([named_request(small_request(), SEND_STEP)])
    assert isinstance(result, Conflict)
    assert stored_operation(store) == cancellation.row
    assert len(roost.state.holders) == 1


def test_move_changes_nothing_if_its_step_was_already_taken(store):
    roost = roost_with(hosts(2), store=store)
    assert chosen_hosts(roost.decide(small_request(instance_uuids=(ME,)))) == ["h0"]
    before = digest(roost.state)
    assert store.commit([Item((), (), (SEND_STEP,))]).refusals == [None]
    move_request = small_request(move=Move(instance_uuid=ME, migration_uuid=uuid_named("migration")))
    (result,) = roost.outcomes([named_request(move_request, SEND_STEP)])
    assert isinstance(result, Conflict)
    assert digest(roost.state) == before == digest(Current(store.peer()).state)


def test_a_dry_run_takes_no_step(store):
    roost = roost_with(hosts(1), store=store)
    assert chosen_hosts(roost.work([named_request(small_request(), SEND_STEP)], dry_run=True)[0]) == ["h0"]
    assert stored_operation(store) == OPERATION


def test_decisions_without_a_step_commit_no_work():
    groups = []

    class RecordingStore(MemoryStore):
        def commit(self, items):
            groups.append([bool(item.work) for item in items])
            return super().commit(items)

    roost = roost_with(hosts(1), store=RecordingStore())
    roost.work([small_request(), NamedRequest(request=small_request(), decision_uuid=DECISION)])
    assert not any(any(group) for group in groups)
