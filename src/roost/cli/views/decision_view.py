"""Lists of decisions."""

from typing import Any

from roost.cli.output.list_view import Column, ListView, Row, field
from roost.cli.text.plain_text import format_time

_HOSTS_SHOWN = 3


def _hosts_text(picks: list[dict[str, Any]]) -> str:
    hosts = [*dict.fromkeys(pick["host"] for pick in picks)]
    more = len(hosts) - _HOSTS_SHOWN
    return ", ".join(hosts[:_HOSTS_SHOWN]) + (f" and {more:,} more" if more > 0 else "")


def _result(row: Row) -> str:
    return _hosts_text(row["picks"]) if row["outcome"] == "granted" else str(row["reason"])


DECISIONS = ListView(
    nouns="decisions",
    columns=(
        Column(
            name="decided",
            value=lambda row: row["decided_at_s"],
            text=lambda row: format_time(row["decided_at_s"]),
            kind="time",
        ),
        field("outcome", kind="state"),
        field("count", head="instances"),
        field("uuid", kind="keep"),
        Column(name="result", head="hosts or reason", value=_result, kind="prose"),
    ),
)
