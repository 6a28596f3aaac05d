"""Lists of decisions as text."""

from typing import Any

from roost.cli.text.plain_text import format_time
from roost.cli.text.tables import Table, format_list

_HOSTS_SHOWN = 3


def decisions_text(decisions: list[dict[str, Any]]) -> list[str]:
    """Return the lines of a list of decisions: one per decision."""
    table: Table = [("decided", "outcome", "instances", "uuid", "hosts or reason")]
    for each in decisions:
        result = _hosts_text(each["picks"]) if each["outcome"] == "granted" else each["reason"]
        table.append((format_time(each["decided_at_s"]), each["outcome"], f"{each['count']:,}", each["uuid"], result))
    return format_list(table, nouns="decisions", right=(2,))


def _hosts_text(picks: list[dict[str, Any]]) -> str:
    hosts = [*dict.fromkeys(pick["host"] for pick in picks)]
    more = len(hosts) - _HOSTS_SHOWN
    return ", ".join(hosts[:_HOSTS_SHOWN]) + (f" and {more:,} more" if more > 0 else "")
