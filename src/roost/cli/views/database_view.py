"""The schema and the processes of a database, for ``roost db status``."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from roost.cli.output.list_view import Column, ListView, Row, field, time_field
from roost.cli.text.plain_text import escape_text

if TYPE_CHECKING:
    from roost.store.database import DatabaseStatus


def _heartbeat(row: Row) -> str:
    return f"{row['age_s']:.0f} s ago" if row["schema"] else "none"


_PROCESSES = ListView(
    nouns="processes",
    columns=(
        field("machine"),
        Column(name="version", value=lambda row: row["version"] or "unknown"),
        Column(name="schema", value=lambda row: row["schema"] or "older"),
        time_field("started"),
        Column(name="heartbeat", value=_heartbeat),
    ),
)


def database_lines(status: "DatabaseStatus") -> Iterator[str]:
    """Yield the lines of a status."""
    oldest = f", for programs with schema {escape_text(status.readable_from)} or newer" if status.readable_from else ""
    yield f"schema {escape_text(status.schema or 'none')}{oldest}; this program has schema {status.program_schema}"
    rows: list[Row] = list(status.processes)
    if rows:
        yield ""
        yield from _PROCESSES.to_lines(rows, "table", ())
