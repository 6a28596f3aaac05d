"""Servers that lose their database at a commit, and successors that continue with the same agents."""

from contextlib import contextmanager
from dataclasses import replace

from roost.errors import Unavailable
from roost.store.audit import audit
from tests.contract.stores import SharedWorld, SqliteWorld
from tests.support.conductors.conductors import OK, TERMS, Server, action, failure
from tests.support.databases.racing_stores import FailingStore
from tests.support.fleets.worlds import FixedClock


@contextmanager
def open_server(world, hands=(), store=None, *, clock=None, look_s=TERMS.parts_check_s):
    """Yield a server on the database, and connect the agents to it.

    Args:
        store: the server's store; None opens a new one.
        clock: None uses a fixed clock.
        look_s: seconds until operations check their parts again.
    """
    server = Server(store or world.open(), clock=clock or FixedClock())
    server.terms = replace(TERMS, owner_s=0.0, parts_check_s=look_s)
    for agent in hands:
        agent.server = server
    try:
        yield server
    finally:
        server.stop()


def run_until_idle(server, hands):
    """Run conductor and agents until all are idle; each first spawn fails."""
    for _ in range(30):
        done = server.turn()
        for agent in hands:
            for order in agent.poll().orders:
                agent.act(order, failure("no network") if (order.number, action(order)) == (1, "spawn") else OK)
                done += 1
        if not done:
            return
    raise AssertionError("the parts never become idle")


def run_with_commit_failure(world, hands, work, *, at, is_made, **options):
    """Run work on a server that loses its database at one commit, then again on a new server.

    Args:
        work: sends a request to a server and runs until all parts are idle.
        at, is_made: see ``FailingStore``.
        options: see ``open_server``.

    Returns:
        Whether that commit was reached, or the database did not answer in time before it, as on a busy machine.
    """
    store = FailingStore(world.open(), at=at, is_made=is_made)
    is_late = False
    try:
        with open_server(world, hands, store, **options) as server:
            work(server)
    except Unavailable:
        is_late = store._left > 0
    with open_server(world, hands, **options) as server:
        work(server)
    return is_late or store._left <= 0


def orders_of(server):
    """Return all orders of all operations."""
    return [order for row in server.reader.operations(limit=9999) for order in server.reader.orders_of(row.id)]


def check_audit(world):
    """Assert that the audit of a durable database has no findings."""
    if isinstance(world, SqliteWorld | SharedWorld):
        assert audit(world.url) == []


def stride(world):
    """Return the distance between tested commits; slow databases test fewer of them."""
    if isinstance(world, SharedWorld):
        return 7
    return 3 if isinstance(world, SqliteWorld) else 1
