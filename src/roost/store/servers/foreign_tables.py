"""Refuses a database that has tables of another program and no schema version of Roost."""

from collections.abc import Collection

from roost.errors import StoreBroken
from roost.store.rules import schema

_DATA = {each.name for each in vars(schema).values() if isinstance(each, schema.Table)}
_RECORDS = {"alembic_version", "schema_version", "compatibility", "feed", "snapshot", "writer", "turn"}
# An interrupted creation on MariaDB leaves some of them, without a version.
OWN_TABLES = frozenset(_DATA | _RECORDS)
_PLACEMENT = "resource_providers"  # a table of upstream Placement


def is_roost_version(version: str | None) -> bool:
    """Return whether a schema version is one of Roost. Alembic revisions of other programs contain letters."""
    return version is not None and version.isdigit()


def check_tables(label: str, tables: Collection[str], *, version: str | None) -> None:
    """Refuse a database with tables of another program.

    Args:
        label: the database, in the message.
        tables: all tables where Roost would create its own.
        version: another program's version in ``alembic_version``; None: there is none.

    Raises:
        StoreBroken: it has such tables, or such a version.
    """
    foreign = sorted(set(tables) - OWN_TABLES)
    if not foreign and version is None:
        return
    named = _PLACEMENT if _PLACEMENT in foreign else next(iter(foreign), "alembic_version")
    advice = ", and import the data with `roost import placement --from URL`" if named == _PLACEMENT else ""
    raise StoreBroken(
        f"{label} has tables of another program, such as {named}: "
        f"create another database on its server for roost{advice}"
    )
