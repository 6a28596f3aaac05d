"""Builds that fail are counted on their host, so that the weigher ``build_failure`` avoids it.

Where very many fail one after the other, the service is disabled until an operator has looked at it.
"""

from contextlib import suppress
from typing import NamedTuple

import msgspec

from roost.engine.columns.state import State
from roost.errors import Unavailable
from roost.fleet.host_writes import writes_of_facts
from roost.model.evidence.decision import Pick
from roost.model.host import HostFacts
from roost.model.writes import Item, Write
from roost.ports import Commits


def count_in_facts(facts: HostFacts, *, has_failed: bool) -> HostFacts:
    """Return the facts of a host after a build: failures in a row, which a success ends."""
    return msgspec.structs.replace(facts, failed_builds=facts.failed_builds + 1 if has_failed else 0)


class BuildCount(NamedTuple):
    """What comes of a build on its host."""

    writes: tuple[Write, ...]  # nothing where the host is gone, or has counted so far
    reason: str = ""  # why the service is disabled with it; empty: it stays as it is


def plan_count(state: State, pick: Pick, *, has_failed: bool, failures_max: int = 0) -> BuildCount:
    """Plan that a build is counted on its host, and that a service with too many failures takes no more instances.

    An operator enables it again; as many failures more disable it once more. One that is disabled keeps its reason.

    Args:
        failures_max: after so many in a row a service is disabled; 0: never.
    """
    hosts = state.hosts
    rows = [row for row in hosts.rows_of_name.get(pick.host.lower(), ()) if hosts.alive.each[row]]
    known = [hosts.facts[row] for row in rows]
    facts = [
        count_in_facts(each, has_failed=has_failed) if hosts.nodes[row] == pick.node else each
        for row, each in zip(rows, known, strict=True)
    ]
    count = max((each.failed_builds for each, old in zip(facts, known, strict=True) if each is not old), default=0)
    is_too_many = count > 0 and failures_max > 0 and count % failures_max == 0
    if not is_too_many or any(each.is_disabled for each in facts):
        return BuildCount(writes_of_facts(state, rows, facts))
    reason = f"Auto-disabled due to {count} build failures"
    disabled = [msgspec.structs.replace(each, is_disabled=True, disabled_reason=reason) for each in facts]
    return BuildCount(writes_of_facts(state, rows, disabled), reason)


def count_build(placement: Commits, pick: Pick, *, has_failed: bool, rounds: int) -> None:
    """Count a build on its host.

    A count is a hint, and no build ends otherwise for it: where the host is gone, the store fails, or others change the
    same host again and again, it is left out.

    Args:
        rounds: how often others may be faster, >= 1.
    """
    with suppress(Unavailable):
        for _ in range(rounds):
            placement.refresh()
            writes = plan_count(placement.state, pick, has_failed=has_failed).writes
            if not writes or placement.commit([Item(writes=writes)])[0] is None:
                return
