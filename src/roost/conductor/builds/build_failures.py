"""Counts of failed builds by host; the weigher ``build_failure`` avoids hosts with many.

After too many failures in a row, the service is disabled until an operator enables it.
"""

from contextlib import suppress
from typing import NamedTuple

import msgspec

from roost.engine.columns.state import State
from roost.errors import Unavailable
from roost.fleet.host_writes import writes_of_facts, writes_of_service
from roost.model.evidence.decision import Pick
from roost.model.host import HostFacts
from roost.model.writes import Item, Write
from roost.ports import Commits


def count_in_facts(facts: HostFacts, *, has_failed: bool) -> HostFacts:
    """Return the facts of a host after a build: one more failure in a row, or none after a success."""
    return msgspec.structs.replace(facts, failed_builds=facts.failed_builds + 1 if has_failed else 0)


class BuildCount(NamedTuple):
    """The writes that count a build."""

    writes: tuple[Write, ...]  # empty if the host does not exist, or the count stays
    reason: str = ""  # why the service is disabled; empty: it is not


def plan_count(state: State, pick: Pick, *, has_failed: bool, failures_max: int = 0) -> BuildCount:
    """Plan to count a build on its host, and to disable the service after too many failures.

    After an operator enables the service, the same number of further failures disables it again. A disabled service
    keeps its reason.

    Args:
        failures_max: failures in a row that disable a service; 0: never.
    """
    hosts = state.hosts
    rows = [row for row in hosts.rows_of_name.get(pick.host.lower(), ()) if hosts.alive.each[row]]
    old_facts = [hosts.facts[row] for row in rows]
    facts = [
        count_in_facts(each, has_failed=has_failed) if hosts.nodes[row] == pick.node else each
        for row, each in zip(rows, old_facts, strict=True)
    ]
    count = max((each.failed_builds for each, old in zip(facts, old_facts, strict=True) if each is not old), default=0)
    has_reached_limit = count > 0 and failures_max > 0 and count % failures_max == 0
    if not has_reached_limit or any(each.is_disabled for each in facts):
        return BuildCount(writes_of_facts(state, rows, facts))
    reason = f"Auto-disabled due to {count} build failures"
    changes = {"is_disabled": True, "disabled_reason": reason, "disabled_at_s": state.now_s}
    disabled = [msgspec.structs.replace(each, **changes) for each in facts]
    return BuildCount(writes_of_service(state, rows, disabled), reason)


def count_build(placement: Commits, pick: Pick, *, has_failed: bool, rounds: int) -> None:
    """Count a build on its host.

    A count never changes the result of a build. It is dropped if the host does not exist, the store fails, or too many
    other processes change the same host.

    Args:
        rounds: attempts in all, >= 1; a lost race leads to the next attempt.
    """
    with suppress(Unavailable):
        for _ in range(rounds):
            placement.refresh()
            writes = plan_count(placement.state, pick, has_failed=has_failed).writes
            if not writes or placement.commit([Item(writes=writes)])[0] is None:
                return
