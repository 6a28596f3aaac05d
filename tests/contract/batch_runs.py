"""Runs of drains and applied plans on one database, with a failure at any commit."""

import time

from roost.model.names import uuid_bytes
from tests.contract.commit_failures import check_audit, open_server, orders_of, run_with_commit_failure, stride
from tests.contract.stores import SharedWorld
from tests.support.conductors.move_servers import advance_clock, movers, nodes_by_consumer, run_agents_until_idle
from tests.support.fleets.named_uuids import uuid_named
from tests.support.fleets.worlds import FixedClock, hosts

COMMITS_MAX = 80
# Seconds until parts are checked again, and the number of idle rounds after which a run ends: the database is gone.
LOOK_S, IDLE_MAX = 0.1, 5
NAMES = ("one", "two", "three")


class BatchRun:
    """Successive servers on one database, and the agents that connect to each.

    Args:
        world: the database.
        accept: accepts an operation that moves all instances: (server, uuid, source, target) -> its row.
    """

    def __init__(self, world, accept):
        self.world, self.accept, self.clock, self.hands = world, accept, FixedClock(), {}

    def open_server(self):
        """Return a server on the database with all agents connected."""
        return open_server(self.world, self.hands.values(), clock=self.clock, look_s=LOOK_S)

    def prepare(self):
        """Create two hosts, and three instances on the first of them, one of them stopped."""
        with self.open_server() as server:
            server.run(lambda _current: server.roost.install(hosts(2, VCPU=9, MEMORY_MB=99)))
            self.hands = movers(server, ("h0", "h1"))
            for name in NAMES:
                server.build(name, key=name, force_hosts=("h0",))
            run_agents_until_idle(server, self.hands)
            server.power("three", "stop")
            run_agents_until_idle(server, self.hands)

    def work(self, server, key, source, target):
        """Move the instances until the operation ends or nothing happens."""
        operation = self.accept(server, uuid_bytes(uuid_named(key)), source, target)
        idle = 0
        while idle < IDLE_MAX and not server.reader.operation(operation.id).outcome:
            done = server.turn() + sum(each.work() for each in self.hands.values())
            idle = 0 if done else idle + 1
            if not done:
                advance_clock(server, self.hands, 1.0)
            if not done and isinstance(self.world, SharedWorld):
                time.sleep(LOOK_S)  # This database has a clock of its own.

    def run_with_commit_failure(self, key, source, target, *, at, is_made):
        """Move the instances with a failure at one commit, then check; return whether that commit was reached."""
        has_failed = run_with_commit_failure(
            self.world,
            self.hands.values(),
            lambda server: self.work(server, key, source, target),
            at=at,
            is_made=is_made,
            clock=self.clock,
            look_s=LOOK_S,
        )
        with self.open_server() as server:
            self.check(server, source)
        return has_failed

    def check(self, server, source):
        """Assert that all instances run once on another host, with their old status."""
        assert server.open_operations() == []
        for name, status in zip(NAMES, ("ACTIVE", "ACTIVE", "SHUTOFF"), strict=True):
            row = server.status(name)
            assert (row.status, row.task, row.operation_id) == (status, "", 0), row
            assert row.host != source
            assert server.held(name)[0] == row.host
            guest_hosts = [each.host for each in self.hands.values() if uuid_named(name) in each.guests]
            assert guest_hosts == [row.host]
        assert (server.used()["VCPU"], len(nodes_by_consumer(server))) == (3, 3)
        assert all(order.state in {"answered", "withdrawn"} for order in orders_of(server))

    def fail_at_each_commit(self, *, is_made):
        """Move the instances there and back, with a failure at a later commit each time; return the failures."""
        failures = 0
        source, target = "h0", "h1"
        for at in range(1, COMMITS_MAX, stride(self.world)):
            has_failed = self.run_with_commit_failure(f"move {at}", source, target, at=at, is_made=is_made)
            failures += has_failed
            source, target = target, source
            if not has_failed:
                break
        check_audit(self.world)
        return failures
