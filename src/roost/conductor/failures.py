"""Builds that fail are counted on their host, so that the weigher ``build_failure`` avoids it."""

from contextlib import suppress

import msgspec

from roost.engine.state import State
from roost.errors import Unavailable
from roost.fleet.hosts import writes_of_facts
from roost.model.decision import Pick
from roost.model.host import HostFacts
from roost.model.journal import Item, Write
from roost.ports import Commits


def counted(facts: HostFacts, *, has_failed: bool) -> HostFacts:
    """Return the facts of a host after a build: failures in a row, which a success ends."""
    return msgspec.structs.replace(facts, failed_builds=facts.failed_builds + 1 if has_failed else 0)


def counting(state: State, pick: Pick, *, has_failed: bool) -> tuple[Write, ...]:
    """Plan that a build is counted on its host; where that is gone or has counted so far, nothing is written."""
    hosts = state.hosts
    rows = [
        row for row in hosts.rows_of_name.get(pick.host.lower(), ())
        if hosts.nodes[row] == pick.node and hosts.alive.each[row]
    ]  # fmt: skip
    return writes_of_facts(state, rows, [counted(hosts.facts[row], has_failed=has_failed) for row in rows])


def count(placement: Commits, pick: Pick, *, has_failed: bool, rounds: int) -> None:
    """Count a build on its host.

    A count is a hint, and no build ends otherwise for it: where the host is gone, the store fails, or others change the
    same host again and again, it is left out.

    Args:
        rounds: how often others may be faster, >= 1.
    """
    with suppress(Unavailable):
        for _ in range(rounds):
            placement.refresh()
            writes = counting(placement.state, pick, has_failed=has_failed)
            if not writes or placement.commit([Item(writes=writes)])[0] is None:
                return
