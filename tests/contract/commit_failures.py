"""Servers that die at a commit, one after the other on a database, and the agents that turn to each."""

from contextlib import contextmanager, suppress
from dataclasses import replace

from roost.errors import Unavailable
from roost.store.audit import audit
from tests.contract.stores import PostgresWorld, SqliteWorld
from tests.support.conductors.conductors import TERMS, Server
from tests.support.databases.racing_stores import Dying
from tests.support.fleets.worlds import FixedClock


@contextmanager
def opened(world, hands=(), store=None, *, clock=None, look_s=TERMS.look_s):
    """Give a server on the database, to which agents turn now.

    Args:
        store: that it has; None: a new one of the database.
        clock: None: one that stands still.
        look_s: after so many seconds operations look at their parts again.
    """
    made = Server(store or world.open(), clock=clock or FixedClock())
    made.terms = replace(TERMS, owner_s=0.0, look_s=look_s)
    for agent in hands:
        agent.server = made
    try:
        yield made
    finally:
        made.stop()


def survived(world, hands, work, *, at, is_made, **options):
    """Let the database be gone at one commit, and everybody go on with the next server; say whether it came so far.

    Args:
        work: lets somebody ask a server, and everybody do what there is to do.
        at, is_made: see ``Dying``.
        options: see ``opened``.
    """
    dying = Dying(world.open(), at=at, is_made=is_made)
    with suppress(Unavailable), opened(world, hands, dying, **options) as server:
        work(server)
    with opened(world, hands, **options) as server:
        work(server)
    return dying._left <= 0


def orders_of(server):
    """Give all orders that there are."""
    return [order for row in server.reader.operations(most=9999) for order in server.reader.orders_of(row.id)]


def audited(world):
    """See that nothing is wrong in the database, if it lasts."""
    if isinstance(world, SqliteWorld | PostgresWorld):
        assert audit(world.url) == []


def pace(world):
    """Give which part of all commits is looked at: on databases that take long, one of several."""
    return {SqliteWorld: 3, PostgresWorld: 7}.get(type(world), 1)
