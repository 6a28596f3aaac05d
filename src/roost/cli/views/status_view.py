"""The overview of a fleet as sections."""

from collections.abc import Mapping
from typing import Any

from roost.cli.output.age import format_time_and_age
from roost.cli.output.list_view import Column, ListView, field
from roost.cli.output.sections import field_lines, table_section
from roost.cli.text.reason_words import reason_words

_CLASSES = ListView(
    nouns="resource classes",
    columns=(
        field("class"),
        field("used"),
        field("capacity"),
        Column(name="share", value=lambda row: row["share"], text=lambda row: f"{100 * row['share']:.1f}%"),
    ),
)
_REASONS = ListView(
    nouns="refusals",
    columns=(
        field("count", head="refused"),
        Column(
            name="reason", value=lambda row: row["reason"], text=lambda row: reason_words(row["reason"]), kind="prose"
        ),
    ),
)


def status_lines(status: Mapping[str, Any]) -> list[str]:
    """Return the overview of a fleet: one line per kind of object, then resources and refusals."""
    refusals = status["refusals"]
    summary = {
        "hosts": _counts_text(status["hosts"]),
        "agents": _counts_text(status["agents"]),
        "instances": _counts_text(status["instances"]),
        "consumers": status["consumers"],
        "operations": _operations_text(status["operations"]),
        "refusals": f"{'' if refusals['is_complete'] else 'at least '}{refusals['count']:,} in the last hour",
        "backup": _run_text(status["backup"], "size_bytes", "bytes"),
        "audit": _run_text(status["audit"], "findings", "findings"),
    }
    classes = [{"class": name, **use} for name, use in status["resources"].items()]
    return [
        *field_lines(summary),
        *table_section("resources", _CLASSES, classes),
        *table_section("refusals of the last hour", _REASONS, refusals["reasons"]),
    ]


def _counts_text(counts: Mapping[str, int] | None) -> str:
    """Return a total and its parts, as in "3: 2 up, 1 down"."""
    if counts is None:
        return "unknown"
    parts = ", ".join(f"{count:,} {name}" for name, count in counts.items() if count)
    return f"{sum(counts.values()):,}" + (f": {parts}" if parts else "")


def _operations_text(operations: Mapping[str, Any] | None) -> str:
    if operations is None:
        return "unknown"
    oldest = operations["oldest_at_s"]
    since = "" if oldest is None else f", the oldest since {format_time_and_age(oldest)}"
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in operations["open"].items())
    listed = f" ({kinds})" if kinds else ""
    return f"{sum(operations['open'].values()):,} open{listed}{since}; {operations['failed']:,} failed in the last hour"


def _run_text(run: Mapping[str, Any] | None, field_name: str, noun: str) -> str:
    return "never" if run is None else f"{format_time_and_age(run['at_s'])}, {run[field_name]:,} {noun}"
