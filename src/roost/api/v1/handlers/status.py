"""The overview of a fleet: sums of columns, counts of rows, and recent refusals."""

from collections import Counter

from roost.api.http import Response
from roost.api.v1.call import Call, json_response
from roost.api.v1.host_uptime import Uptime, down_time_of
from roost.api.v1.product_port import RowCounts
from roost.api.v1.schemas.status import (
    AgentCounts,
    ClassUse,
    FleetStatus,
    HostCounts,
    LastRun,
    OperationCounts,
    RefusalCount,
    RefusalCounts,
)
from roost.engine.columns import totals
from roost.model.stored_decision import DecisionQuery
from roost.scheduler.framework.reasons import bare_reason

_PERIOD_S = 3_600.0
# Decisions to search for refusals, newest first, and refusals to count.
_DECISIONS_MAX = 20_000
_REFUSALS_MAX = 2_000
_REASONS_MAX = 10


def show(call: Call) -> Response:
    """Show the state of the fleet in numbers.

    Hosts and resources are those of the columns. Counts of instances, agents and operations are null if the database is
    in memory. Failures and refusals are those of the last hour.
    """
    call.require_thread()
    now_s, state = call.agents.reader(call.current).now_s(), call.current.state
    since_s = now_s - _PERIOD_S
    rows = call.product.count_rows(contact_since_s=now_s - down_time_of(call.product.settings), failed_since_s=since_s)
    resources = {
        name: ClassUse(used=used, capacity=capacity, share=round(used / capacity, 4) if capacity else 0.0)
        for name, (used, capacity) in totals.utilisation(state).items()
    }
    return json_response(
        FleetStatus(
            now_s=now_s,
            since_s=since_s,
            hosts=_count_hosts(call),
            resources=resources,
            consumers=len(state.holders_by_id),
            instances=None if rows is None else dict(sorted(rows.instances.items())),
            agents=None if rows is None else _count_agents(rows),
            operations=None if rows is None else _count_operations(rows),
            refusals=_count_refusals(call, since_s),
            audit=_last_run(rows, "audit"),
            backup=_last_run(rows, "backup"),
        )
    )


def _count_hosts(call: Call) -> HostCounts:
    """Count the hosts by state. Hosts share few distinct facts, but not their times; so this is a loop."""
    hosts, uptime = call.current.state.hosts, Uptime(call)
    up = down = disabled = 0
    for row in call.request.while_active(hosts.alive.view.nonzero()[0].tolist()):
        facts = hosts.facts[row]
        if not uptime.is_up(facts):
            down += 1
        elif facts.is_disabled:
            disabled += 1
        else:
            up += 1
    return HostCounts(up=up, down=down, disabled=disabled)


def _count_agents(rows: RowCounts) -> AgentCounts:
    present = sum(count for state, count in rows.agents.items() if state != "gone")
    gone = rows.agents.get("gone", 0)
    return AgentCounts(reporting=rows.agents_reporting, silent=max(0, present - rows.agents_reporting), gone=gone)


def _count_operations(rows: RowCounts) -> OperationCounts:
    return OperationCounts(
        open={kind: each.count for kind, each in sorted(rows.operations.items())},
        oldest_at_s=min((each.oldest_s for each in rows.operations.values()), default=None),
        failed=rows.failures,
    )


def _count_refusals(call: Call, since_s: float) -> RefusalCounts:
    """Count refusals among the newest decisions; an index by time does not exist."""
    newest = call.product.find_decisions(DecisionQuery(newest=1))
    after = newest[0][0] - _DECISIONS_MAX if newest else 0
    query = DecisionQuery(outcome="refused", since_s=since_s, after=after, newest=_REFUSALS_MAX)
    refused = [decision for _, decision in call.product.find_decisions(query)]
    reasons = Counter(bare_reason(decision.reason) for decision in refused)
    oldest = call.product.find_decisions(DecisionQuery(before=after + 1, newest=1)) if after > 0 else []
    is_complete = len(refused) < _REFUSALS_MAX and not any(each.decided_at_s >= since_s for _, each in oldest)
    return RefusalCounts(
        count=len(refused),
        is_complete=is_complete,
        reasons=[RefusalCount(reason=reason, count=count) for reason, count in reasons.most_common(_REASONS_MAX)],
    )


def _last_run(rows: RowCounts | None, name: str) -> LastRun | None:
    run = None if rows is None else rows.upkeep.get(name)
    return None if run is None else LastRun(at_s=run.at_s, findings=run.findings, size_bytes=run.size_bytes)
