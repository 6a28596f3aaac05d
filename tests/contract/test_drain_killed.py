"""Whoever dies at whichever commit while a host is drained: the next one goes on, and nobody is lost or doubled."""

import time
from dataclasses import replace

import pytest

from roost.conductor import draining
from roost.errors import Unavailable
from roost.model.names import uuid_bytes
from roost.store.audit import audit
from tests.conducting import TERMS, Server
from tests.contract.stores import PostgresWorld, SqliteWorld
from tests.contract.test_conductor_killed import orders_of
from tests.identities import uuid_named
from tests.migrating import holders, movers, pass_time
from tests.racing import Dying
from tests.worlds import FixedClock, hosts

COMMITS_MAX = 80
# A second in which nothing happens may pass, as parts are waited for; after more of them the database is gone.
IDLE_MAX = 3
NAMES = ("one", "two", "three")


class Life:
    """Servers one after the other on a database, and the agents that turn to each."""

    def __init__(self, world):
        self.world, self.clock, self.hands = world, FixedClock(), {}

    def begin(self, store=None):
        """Give the next server."""
        server = Server(store or self.world.open(), clock=self.clock)
        server.terms = replace(TERMS, owner_s=0.0)
        for each in self.hands.values():
            each.server = server
        return server

    def work(self, server, key, source):
        """Let a host be left, as long as anything goes on."""
        asked = server.run(
            lambda current: draining.drain(
                current, server.reader, source, at_once=2, is_disabling=False, now_s=self.clock.now_s(),
                operation_uuid=uuid_bytes(uuid_named(key)),
            )
        )  # fmt: skip
        idle = 0
        while idle < IDLE_MAX and not server.reader.operation(asked.id).outcome:
            done = server.turn() + sum(each.work() for each in self.hands.values())
            idle = 0 if done else idle + 1
            if not done:
                pass_time(server, self.hands, 1.0)
            if not done and isinstance(self.world, PostgresWorld):
                time.sleep(1.0)  # This database has a clock of its own.

    def survived(self, key, source, *, at, is_made):
        """Let the database be gone at one commit, and the next server go on; say whether it came so far."""
        dying = Dying(self.world.open(), at=at, is_made=is_made)
        server = self.begin(dying)
        try:
            self.work(server, key, source)
        except Unavailable:
            pass
        finally:
            server.stop()
        server = self.begin()
        try:
            self.work(server, key, source)
            self.check(server, source)
        finally:
            server.stop()
        return dying._left <= 0

    def check(self, server, source):
        """See that all are elsewhere, once, and as they were."""
        assert server.open_operations() == []
        for name, status in zip(NAMES, ("ACTIVE", "ACTIVE", "SHUTOFF"), strict=True):
            row = server.status(name)
            assert (row.status, row.task, row.operation_id) == (status, "", 0), row
            assert row.host != source
            assert server.held(name)[0] == row.host
            there = [each.host for each in self.hands.values() if uuid_named(name) in each.guests]
            assert there == [row.host]
        assert (server.used()["VCPU"], len(holders(server))) == (3, 3)
        assert all(order.state in {"answered", "withdrawn"} for order in orders_of(server))


def pace(world):
    """Give which part of all commits is looked at: on databases that take long, one of several."""
    return {SqliteWorld: 3, PostgresWorld: 7}.get(type(world), 1)


@pytest.mark.parametrize("is_made", [False, True], ids=["before", "after"])
def test_a_drain_survives_a_death_at_every_commit(world, is_made):
    life = Life(world)
    server = life.begin()
    server.run(lambda _current: server.roost.install(hosts(2, VCPU=9, MEMORY_MB=99)))
    life.hands = movers(server, ("h0", "h1"))
    for name in NAMES:
        server.build(name, key=name, force_hosts=("h0",))
    for _ in range(4):
        server.turn()
        for each in life.hands.values():
            each.work()
    server.power("three", "stop")
    for _ in range(4):
        server.turn()
        for each in life.hands.values():
            each.work()
    server.stop()
    deaths = 0
    source, target = "h0", "h1"
    for at in range(1, COMMITS_MAX, pace(world)):
        is_dead = life.survived(f"drain {at}", source, at=at, is_made=is_made)
        deaths += is_dead
        source, target = target, source
        if not is_dead:
            break
    if isinstance(world, SqliteWorld | PostgresWorld):
        assert audit(str(world.path) if isinstance(world, SqliteWorld) else world.url) == []
    assert deaths * pace(world) >= 15, deaths
