"""New allocation ratios of hosts: one row per host and resource class."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from roost.cli.output.list_view import Column, ListView, Row, field
from roost.cli.text.plain_text import escape_text


def _ratio_text(ratio: float | None) -> str:
    return "mixed" if ratio is None else f"{ratio:g}"


_RATIOS = ListView(
    nouns="new ratios",
    columns=(
        field("host"),
        field("node"),
        field("class"),
        Column(
            name="ratio",
            value=lambda row: row["ratio"],
            text=lambda row: f"{_ratio_text(row['ratio_before'])} -> {_ratio_text(row['ratio'])}",
            kind="keep",
        ),
        Column(
            name="capacity",
            value=lambda row: row["capacity"],
            text=lambda row: f"{row['capacity_before']:,} -> {row['capacity']:,}",
            kind="keep",
        ),
        field("used"),
    ),
)


def ratio_lines(hosts: Iterable[Mapping[str, Any]], *, is_dry: bool) -> list[str]:
    """Return new ratios as a table, a line for each problem, and the number of hosts."""
    hosts = list(hosts)
    rows = [
        {"host": host["host"], "node": host["node"], "class": name, **ratio}
        for host in hosts
        for name, ratio in sorted(host["ratios"].items())
    ]
    changed = sum(not host["problem"] for host in hosts)
    verb = "would have" if is_dry else "have"
    return [
        *_RATIOS.to_lines(rows, "table"),
        "",
        *(escape_text(f"{host['host']}: {host['problem']}") for host in hosts if host["problem"]),
        *_full_lines(rows),
        f"{changed:,} of {len(hosts):,} hosts {verb} the new ratios",
    ]


def _full_lines(rows: Iterable[Row]) -> Iterator[str]:
    """Yield a warning for each capacity below its use."""
    for row in rows:
        if row["used"] > row["capacity"]:
            excess = row["used"] - row["capacity"]
            yield escape_text(f"{row['host']}: {row['class']} in use exceeds the capacity by {excess:,}")
