"""Whoever dies at whichever commit of a live migration or an evacuation: the next one goes on, and nothing is lost."""

import pytest

from tests.contract.commit_failures import check_audit, open_server, run_with_commit_failure
from tests.contract.stores import MemoryWorld
from tests.support.conductors.builders import ladder
from tests.support.conductors.conductors import failed
from tests.support.conductors.move_servers import ask, at_rest, holders, migrations, movers, pass_time
from tests.support.fleets.named_uuids import uuid_named
from tests.support.fleets.worlds import FixedClock

pytestmark = pytest.mark.long

COMMITS_MAX = 60
HOSTS = ("h0", "h1", "h2", "h3")


class Stage:
    """A database with whoever works on it, one server after the other."""

    def __init__(self, world):
        self.world, self.clock, self.hands = world, FixedClock(), {}
        with self.open_server() as server:
            server.run(lambda _current: server.roost.install(ladder(len(HOSTS))))
            self.hands = movers(server, HOSTS)

    def open_server(self):
        """Give a server on the database, to which agents turn now."""
        return open_server(self.world, self.hands.values(), clock=self.clock)

    def acted(self, act, script=None):
        """Let somebody ask, and everybody do what there is to do."""
        with self.open_server() as server:
            self.work(server, act, script)

    def run_with_commit_failure(self, act, script=None, *, at, is_made):
        """Let the database be gone at one commit, and all go on with the next server; say whether it came so far."""
        return run_with_commit_failure(
            self.world,
            self.hands.values(),
            lambda server: self.work(server, act, script),
            at=at,
            is_made=is_made,
            clock=self.clock,
        )

    def work(self, server, act, script):
        """Let somebody ask a server, and everybody do what there is to do."""
        act(server)
        at_rest(server, self.hands, script)

    def running(self):
        """Give which guests are on which hosts."""
        return {name: [*hand.guests] for name, hand in self.hands.items() if hand.guests}

    def checked(self, name, *, host, kind, status):
        """See that an instance is on a host with all that there is of it, and that nothing is wrong in the database."""
        with self.open_server() as server:
            row = server.status(name)
            assert (row.status, row.task, row.host) == ("ACTIVE", "", host)
            assert self.running() == {host: [uuid_named(name)]}
            assert holders(server) == {uuid_named(name): [host]}
            assert [each[:2] for each in migrations(server, name)] == [(kind, status)]
            assert server.open_operations() == []
            assert {server.reader.agent(each).state for each in HOSTS} == {"ready"}
        check_audit(self.world)


def first_fails(*actions):
    """Give a script by which the first order of each action fails, wherever it goes."""
    answers = {action: [failed(f"no {action}")] for action in actions}
    return {(host, action): left for host in HOSTS for action, left in answers.items()}


def migrated(stage, name, *, at, is_made, failing):
    """Let an instance migrate while it runs, with a death; say whether there was one."""
    stage.acted(lambda server: server.build(name, key=name))
    (source,) = stage.running()
    is_dead = stage.run_with_commit_failure(
        lambda server: ask(server, "live_migrate", name, key=f"move {name}"),
        first_fails(*failing),
        at=at,
        is_made=is_made,
    )
    (host,) = stage.running()
    assert host != source or "live_migrate" in failing  # An answer that was lost is given by who tries again.
    stage.checked(name, host=host, kind="live", status="failed" if host == source else "confirmed")
    stage.acted(lambda server: server.delete(name))
    return is_dead


def evacuated(stage, name, *, at, is_made, failing):
    """Let an instance be evacuated, and its host come back, each with a death; say whether there was one."""
    stage.acted(lambda server: server.build(name, key=name))
    (source,) = stage.running()
    leaver = stage.hands[source]

    def rescue(server):
        """Let the host be gone, and ask for what it had."""
        if server.reader.agent(source).state != "gone":
            leaver.leave()
        ask(server, "evacuate", name, key=f"move {name}")

    is_dead = stage.run_with_commit_failure(rescue, first_fails(*failing), at=at, is_made=is_made)
    host = next(each for each in stage.running() if each != source)
    with stage.open_server() as server:
        assert sorted(map(tuple, holders(server).values())) == sorted([(source,), (host,)])
    is_dead |= stage.run_with_commit_failure(lambda _server: leaver.register(), at=at, is_made=is_made)
    with stage.open_server() as server:
        pass_time(server, stage.hands, 31)
        at_rest(server, stage.hands)
    stage.checked(name, host=host, kind="evacuate", status="confirmed")
    stage.acted(lambda server: server.delete(name))
    return is_dead


WAYS = [
    (migrated, ()),
    (migrated, ("prepare",)),
    (migrated, ("live_migrate",)),
    (evacuated, ()),
    (evacuated, ("spawn",)),
]


def lives_on(world, way, *, is_made, failing, steps):
    """Let there be a death at one commit after the other, until there is none; give how many that were."""
    stage = Stage(world)
    for deaths, at in enumerate(steps):
        if not way(stage, f"i{at}", at=at, is_made=is_made, failing=failing):
            return deaths
    raise AssertionError("they never come to the end")


@pytest.mark.parametrize(("way", "failing"), WAYS)
@pytest.mark.parametrize("is_made", [False, True], ids=["before", "after"])
def test_those_who_leave_survive_a_death_at_every_commit(way, failing, is_made):
    assert lives_on(MemoryWorld(), way, is_made=is_made, failing=failing, steps=range(1, COMMITS_MAX)) >= 6


@pytest.mark.parametrize(("way", "failing"), [(migrated, ("live_migrate",)), (evacuated, ("spawn",))])
@pytest.mark.parametrize("is_made", [False, True], ids=["before", "after"])
def test_on_a_database_that_lasts_too(durable, way, failing, is_made):
    assert lives_on(durable, way, is_made=is_made, failing=failing, steps=range(1, COMMITS_MAX, 4)) >= 3
