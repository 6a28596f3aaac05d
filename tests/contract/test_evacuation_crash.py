"""After a crash at any commit of a live migration or evacuation, the next server continues and nothing is lost."""

import pytest

from tests.contract.commit_failures import check_audit, open_server, run_with_commit_failure
from tests.contract.stores import MemoryWorld
from tests.support.conductors.builders import ladder
from tests.support.conductors.conductors import failure
from tests.support.conductors.move_servers import (
    advance_clock,
    migrations,
    movers,
    nodes_by_consumer,
    request_move,
    run_agents_until_idle,
)
from tests.support.fleets.named_uuids import uuid_named
from tests.support.fleets.worlds import FixedClock

pytestmark = pytest.mark.long

COMMITS_MAX = 60
HOSTS = ("h0", "h1", "h2", "h3")


class Stage:
    """A database, its successive servers, and the agents of all hosts."""

    def __init__(self, world):
        self.world, self.clock, self.hands = world, FixedClock(), {}
        with self.open_server() as server:
            server.run(lambda _current: server.roost.install(ladder(len(HOSTS))))
            self.hands = movers(server, HOSTS)

    def open_server(self):
        """Return a server on the database with all agents connected."""
        return open_server(self.world, self.hands.values(), clock=self.clock)

    def act(self, act, script=None):
        """Run an act on a new server until all parts are idle."""
        with self.open_server() as server:
            self.work(server, act, script)

    def run_with_commit_failure(self, act, script=None, *, at, is_made):
        """Run an act with a failure at one commit; return whether that commit was reached."""
        return run_with_commit_failure(
            self.world,
            self.hands.values(),
            lambda server: self.work(server, act, script),
            at=at,
            is_made=is_made,
            clock=self.clock,
        )

    def work(self, server, act, script):
        """Run an act on a server until all parts are idle."""
        act(server)
        run_agents_until_idle(server, self.hands, script)

    def guests(self):
        """Return the guests by host."""
        return {name: [*hand.guests] for name, hand in self.hands.items() if hand.guests}

    def check(self, name, *, host, kind, status):
        """Assert that guest, allocations and migration of an instance are right, and that the audit is clean."""
        with self.open_server() as server:
            row = server.status(name)
            assert (row.status, row.task, row.host) == ("ACTIVE", "", host)
            assert self.guests() == {host: [uuid_named(name)]}
            assert nodes_by_consumer(server) == {uuid_named(name): [host]}
            assert [each[:2] for each in migrations(server, name)] == [(kind, status)]
            assert server.open_operations() == []
            assert {server.reader.agent(each).state for each in HOSTS} == {"ready"}
        check_audit(self.world)


def first_failure(*actions):
    """Return a script in which the first order of each action fails, on any host."""
    answers = {action: [failure(f"no {action}")] for action in actions}
    return {(host, action): left for host in HOSTS for action, left in answers.items()}


def live_migrate(stage, name, *, at, is_made, failing):
    """Live-migrate an instance with a crash; return whether it occurred."""
    stage.act(lambda server: server.build(name, key=name))
    (source,) = stage.guests()
    has_crashed = stage.run_with_commit_failure(
        lambda server: request_move(server, "live_migrate", name, key=f"move {name}"),
        first_failure(*failing),
        at=at,
        is_made=is_made,
    )
    (host,) = stage.guests()
    assert host != source or "live_migrate" in failing  # A retry may answer after a lost reply.
    stage.check(name, host=host, kind="live", status="failed" if host == source else "confirmed")
    stage.act(lambda server: server.delete(name))
    return has_crashed


def evacuate(stage, name, *, at, is_made, failing):
    """Evacuate an instance and bring its host back, each with a crash; return whether one occurred."""
    stage.act(lambda server: server.build(name, key=name))
    (source,) = stage.guests()
    leaver = stage.hands[source]

    def rescue(server):
        """Stop the agent of the host and evacuate its instance."""
        if server.reader.agent(source).state != "gone":
            leaver.leave()
        request_move(server, "evacuate", name, key=f"move {name}")

    has_crashed = stage.run_with_commit_failure(rescue, first_failure(*failing), at=at, is_made=is_made)
    host = next(each for each in stage.guests() if each != source)
    with stage.open_server() as server:
        assert sorted(map(tuple, nodes_by_consumer(server).values())) == sorted([(source,), (host,)])
    has_crashed |= stage.run_with_commit_failure(lambda _server: leaver.register(), at=at, is_made=is_made)
    with stage.open_server() as server:
        advance_clock(server, stage.hands, 31)
        run_agents_until_idle(server, stage.hands)
    stage.check(name, host=host, kind="evacuate", status="confirmed")
    stage.act(lambda server: server.delete(name))
    return has_crashed


WAYS = [
    (live_migrate, ()),
    (live_migrate, ("prepare",)),
    (live_migrate, ("live_migrate",)),
    (evacuate, ()),
    (evacuate, ("spawn",)),
]


def count_crashes(world, way, *, is_made, failing, steps):
    """Crash at one commit after another until the last one; return the number of crashes."""
    stage = Stage(world)
    for crashes, at in enumerate(steps):
        if not way(stage, f"i{at}", at=at, is_made=is_made, failing=failing):
            return crashes
    raise AssertionError("the last commit was never reached")


@pytest.mark.parametrize(("way", "failing"), WAYS)
@pytest.mark.parametrize("is_made", [False, True], ids=["before", "after"])
def test_live_migration_and_evacuation_survive_a_crash_at_every_commit(way, failing, is_made):
    assert count_crashes(MemoryWorld(), way, is_made=is_made, failing=failing, steps=range(1, COMMITS_MAX)) >= 6


@pytest.mark.parametrize(("way", "failing"), [(live_migrate, ("live_migrate",)), (evacuate, ("spawn",))])
@pytest.mark.parametrize("is_made", [False, True], ids=["before", "after"])
def test_crash_during_a_move_is_survived_on_durable_databases(durable, way, failing, is_made):
    assert count_crashes(durable, way, is_made=is_made, failing=failing, steps=range(1, COMMITS_MAX, 4)) >= 3
