"""The result of each fault, and all results as one table."""

from collections.abc import Sequence

import msgspec
from rich.table import Table

from tests.ha.cluster import Target

_DETAILS_MAX = 8
# What Roost may add to an outage without errors: a new connection, its checks, and the first commit.
_ADDED_S = 0.5


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """The measurements of one fault.

    Args:
        outage_s: the longest time in which one client had no successful answer.
        database_s: the longest time in which a plain client of the database could not write.
        unknown: consumers with a write without an answer.
        columns: differences between the processes and the tables.
        audit: findings.
        recovery: the problem of a cluster that did not recover.
        impossible: the reason why this machine cannot have the fault.
    """

    cluster: str
    fault: str
    target: Target
    outage_s: float = 0.0
    database_s: float = 0.0
    longest_wait_s: float = 0.0
    errors: dict[str, int] = {}
    acknowledged: int = 0
    unknown: int = 0
    lost: int = 0
    doubled: int = 0
    resurrected: int = 0
    different: int = 0
    columns: int = 0
    audit: int = 0
    wrong_answers: int = 0
    recovery: str = ""
    impossible: str = ""
    details: list[str] = []


def problems_of(result: Result) -> list[str]:
    """Return the problems of a result, one sentence each."""
    if result.impossible:
        return []
    counts = {
        "acknowledged writes lost": result.lost,
        "writes doubled": result.doubled,
        "releases undone": result.resurrected,
        "consumers different": result.different,
        "differences in columns": result.columns,
        "findings of the audit": result.audit,
        "wrong answers": result.wrong_answers,
    }
    found = [f"{count} {name}" for name, count in counts.items() if count]
    found += [result.recovery] if result.recovery else []
    if not result.acknowledged:
        found.append("no write was acknowledged")
    if result.outage_s > result.target.outage_s:
        of_database = f" (of the database itself: {result.database_s:.1f} s)"
        found.append(f"an outage of {result.outage_s:.1f} s, more than {result.target.outage_s:g} s{of_database}")
    added_s = result.outage_s - result.database_s
    if result.target.is_silent and added_s > _ADDED_S:
        found.append(f"Roost adds {added_s:.1f} s to the outage of the database")
    if result.target.is_silent and result.errors:
        found.append(f"{sum(result.errors.values())} errors instead of none")
    return [f"{result.cluster}, {result.fault}: {each}" for each in found]


def table_of(results: Sequence[Result]) -> Table:
    """Return the table of all results."""
    table = Table(title="Faults of a database cluster under Roost, with 8 clients on 2 servers", title_justify="left")
    table.add_column("cluster")
    table.add_column("fault")
    for name in ("outage s", "database s", "target s", "errors", "longest wait s", "acknowledged", "unknown"):
        table.add_column(name, justify="right")
    for name in ("lost", "doubled", "resurrected", "different", "columns", "audit"):
        table.add_column(name, justify="right")
    for each in results:
        table.add_row(*_row(each), style="red" if problems_of(each) else None)
    return table


def _row(result: Result) -> list[str]:
    target = f"{result.target.outage_s:g}" + (", no error" if result.target.is_silent else "")
    if result.impossible:
        return [result.cluster, result.fault, f"not possible here: {result.impossible}", "", target, *[""] * 10]
    errors = ", ".join(f"{count} × {name}" for name, count in sorted(result.errors.items())) or "0"
    counts = (result.lost, result.doubled, result.resurrected, result.different, result.columns, result.audit)
    return [
        result.cluster,
        result.fault,
        f"{result.outage_s:.1f}",
        f"{result.database_s:.1f}",
        target,
        errors,
        f"{result.longest_wait_s:.1f}",
        f"{result.acknowledged:,}",
        f"{result.unknown:,}",
        *map(str, counts),
    ]


def details_of(results: Sequence[Result]) -> list[str]:
    """Return the first details of each result with problems."""
    return [
        f"{each.cluster}, {each.fault}: {text}"
        for each in results
        if problems_of(each)
        for text in each.details[:_DETAILS_MAX]
    ]
