"""The filter of stored decisions: a condition for both databases, and an equal function for the memory store."""

from typing import Literal

from roost.model.stored_decision import DecisionQuery
from roost.model.writes import EvidenceRow

Value = int | float | str | bytes


def where(
    query: DecisionQuery,
    *,
    mark: str,
    uuid_mark: str,
    position: Literal["instr", "strpos"],
    hosts: str = "' ' || hosts || ' '",
) -> tuple[str, tuple[Value, ...]]:
    """Return the condition of a statement that reads decisions, and its values.

    Args:
        mark: placeholder of a value.
        uuid_mark: placeholder of the bytes of a uuid.
        position: the SQL function for the position of one text in another.
        hosts: the hosts of a decision, between blanks.
    """
    parts: list[tuple[str, Value]] = [(f"id < {mark}", query.before)]
    if query.after >= 0:
        parts.append((f"id > {mark}", query.after))
    if query.since_s:
        parts.append((f"decided_at_s >= {mark}", query.since_s))
    if query.outcome:
        parts.append((f"outcome = {mark}", query.outcome))
    if query.project_id is not None:
        parts.append((f"project_id = {mark}", query.project_id))
    if query.host:
        parts.append((f"{position}({hosts}, {mark}) > 0", f" {query.host} "))
    if query.reason:
        parts.append((f"{position}(reason, {mark}) > 0", query.reason))
    if query.uuids is not None:
        first, last = query.uuids
        parts += [(f"uuid >= {uuid_mark}", first), (f"uuid <= {uuid_mark}", last)]
    conditions = " AND ".join(condition for condition, _ in parts)
    return f"WHERE {conditions} ORDER BY id DESC LIMIT {mark}", (*(value for _, value in parts), query.newest)


def is_wanted(row: EvidenceRow, query: DecisionQuery) -> bool:
    """Return whether a decision matches a query."""
    return (
        query.after < row.id < query.before
        and row.decided_at_s >= query.since_s
        and query.outcome in {"", row.outcome}
        and query.project_id in {None, row.project_id}
        and (not query.host or f" {query.host} " in f" {row.hosts} ")
        and query.reason in row.reason
        and (query.uuids is None or query.uuids[0] <= row.uuid <= query.uuids[1])
    )
