"""States rebuilt from lagging columns equal those rebuilt from snapshots."""

import random
from contextlib import closing

import pytest

from roost.app import Roost
from roost.engine.columns.state import State
from roost.errors import StateLost
from roost.model.stored_decision import moment_of
from roost.placement import past_base
from roost.placement.current import Current
from roost.placement.decision_past import rebuild_state
from roost.placement.past_base import PastBase
from roost.scheduler.explain import decision_rows
from roost.simulator.traces.generated_workload import Recipe, generate
from roost.simulator.workload import Options
from roost.store import snapshot_program
from roost.store.backends import open_follower
from tests.contract.replays import keep_no_feed
from tests.contract.stores import MemoryWorld
from tests.support.fleets.worlds import digest, hosts, settings_of, small_request

pytestmark = pytest.mark.long


class CopyingBase(PastBase):
    """Columns for several uses in one process."""

    uses = 0

    def take(self) -> State:
        """Return a copy of the columns."""
        state = super().take()
        self._state = state.fork()
        self.uses += 1
        return state


@pytest.fixture
def follower(durable):
    """A store that follows the database."""
    with closing(durable.open()):  # It creates the tables.
        pass
    with closing(open_follower(durable.url)) as found:
        yield found


@pytest.fixture(autouse=True)
def _short_lag(monkeypatch):
    monkeypatch.setattr(past_base, "_LAG_MIN", 60)
    monkeypatch.setattr(past_base, "_LAG_MAX", 150)
    monkeypatch.setattr(past_base, "_STEP", 10)


def state_before(roost, uuid, base=None):
    """Return the state before a decision in a comparable form; None: it is lost."""
    decision, moment = roost.decision(uuid), moment_of(decision_rows.find_row(uuid, roost._store))
    try:
        return digest(rebuild_state(roost._store, decision, moment, base=base))
    except StateLost:
        return None


@pytest.mark.parametrize("seed", [1, 2])
def test_states_from_lagging_columns_equal_those_from_snapshots(durable, follower, seed):
    draw = random.Random(seed)
    workload = generate(Recipe(hosts=20, requests=200, seed=seed), Options())
    roost = Roost(durable.open(), settings_of())
    roost.install(workload.fleet)
    reader = Current(follower)
    base, moved, compared = CopyingBase(reader), set(), 0
    acts = [event.act for event in workload.events]
    uuids = []
    while acts:
        size = draw.choice((1, 2, 7, 20))
        roost.placement.refresh()  # As a server does before each group.
        uuids += [decision.uuid for decision in roost.work(acts[:size]) if decision is not None]
        acts = acts[size:]
        if draw.random() < 0.1:
            snapshot_program.write_snapshot(durable.url)
        reader.refresh()
        base.follow()
        base.advance()
        moved.add(base.mark)
        for uuid in draw.sample(uuids[-40:], min(3, len(uuids))):
            uses, found = base.uses, state_before(roost, uuid, base)
            assert found == state_before(roost, uuid)
            compared += base.uses > uses
    assert compared > 20
    assert len(moved) > 3


def test_base_is_not_used_for_older_decisions(durable, follower):
    roost = Roost(durable.open(), settings_of())
    roost.install(hosts(3))
    old = roost.decide(small_request()).uuid
    base = CopyingBase(Current(follower))
    roost.placement.refresh()  # As a server does before each group.
    new = roost.decide(small_request()).uuid
    assert state_before(roost, old, base) == state_before(roost, old)
    assert base.uses == 0
    assert state_before(roost, new, base) == state_before(roost, new)
    assert base.uses == 1


def test_base_restarts_with_columns_that_were_loaded_again(durable, follower):
    roost = Roost(durable.open(), settings_of())
    roost.install(hosts(3))
    reader = Current(follower)
    base = CopyingBase(reader)
    before = base.mark
    roost.decide(small_request())
    reader._is_stale = True
    reader.refresh()
    base.follow()
    assert base.mark.position > before.position
    assert digest(base.take()) == digest(reader.state)


def test_base_without_the_changes_since_is_not_used(durable, follower, monkeypatch):
    keep_no_feed(monkeypatch)
    roost = Roost(durable.open(), settings_of())
    roost.install(hosts(3))
    reader = Current(follower)
    base = CopyingBase(reader)
    for _ in range(20):
        roost.decide(small_request())
    snapshot_program.write_snapshot(durable.url)
    while roost._store.prune(older_than_s=1e12, max_bytes=10**12):
        pass
    uuid = roost.decide(small_request()).uuid
    assert state_before(roost, uuid, base) == state_before(roost, uuid)
    assert base.uses == 0


def test_taken_columns_are_gone():
    roost = Roost(MemoryWorld().open(), settings_of())
    base = PastBase(roost._current)
    base.take()
    assert base.mark is None
    base.advance()
    assert base.mark is None
