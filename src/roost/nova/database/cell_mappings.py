"""Cells and their databases, and the cells of hosts, from Nova's API database."""

from urllib.parse import urlsplit

import msgspec
from sqlalchemy import Boolean, Connection, DateTime, Integer, String, column, select, table

from roost.nova.database.database_link import change_mark
from roost.nova.database.nova_fleet import Cell

CELL0_UUID = "00000000-0000-0000-0000-000000000000"

CELL_MAPPINGS = table(
    "cell_mappings",
    column("id", Integer),
    column("uuid", String),
    column("name", String),
    column("database_connection", String),
    column("disabled", Boolean),
)
HOST_MAPPINGS = table(
    "host_mappings",
    column("id", Integer),
    column("host", String),
    column("cell_id", Integer),
    column("created_at", DateTime),
    column("updated_at", DateTime),
)


class CellMapping(msgspec.Struct, frozen=True, kw_only=True):
    """A cell and its database. Its text form has no URL, because that contains a password."""

    id: int
    cell: Cell
    database_url: str  # a template that cannot be filled is unchanged
    is_template: bool = False  # a template that cannot be filled: the database cannot be read

    @property
    def uuid(self) -> str:
        """The uuid of the mapping."""
        return self.cell.uuid

    @property
    def subject(self) -> str:
        """Name of its database in messages."""
        return f"the database of cell {self.cell.name or self.uuid}"

    def __repr__(self) -> str:
        """Return the cell only."""
        return f"CellMapping(id={self.id}, cell={self.cell!r})"


def read_cell_mappings(connection: Connection, *, default_url: str) -> tuple[CellMapping, ...]:
    """Read all cells but cell0, sorted by id.

    Args:
        connection: to the API database.
        default_url: ``[database] connection``, to fill templates; empty: not set.

    Source:
        nova/objects/cell_mapping.py, CellMapping.format_db_url.
    """
    rows = connection.execute(select(*CELL_MAPPINGS.c).order_by(CELL_MAPPINGS.c.id))
    found = []
    for number, uuid, name, url, disabled in rows:
        if uuid == CELL0_UUID:
            continue
        filled = fill_template(url or "", default_url)
        found.append(
            CellMapping(
                id=number,
                cell=Cell(uuid=uuid, name=name or "", is_disabled=bool(disabled)),
                database_url=(url or "") if filled is None else filled,
                is_template=filled is None,
            )
        )
    return tuple(found)


def fill_template(url: str, default_url: str) -> str | None:
    """Fill the template of a URL with the parts of another URL.

    Returns:
        the URL; None: the template has unknown parts, or the other URL is not set.

    Source:
        nova/objects/cell_mapping.py, CellMapping._format_url. A URL that only looks like a template, because its
        password has a brace, is unchanged, as in Nova.

    >>> fill_template("{scheme}://{username}:{password}@db2/cell2?{query}", "mysql://nova:secret@db1/cell1?charset=utf8")
    'mysql://nova:secret@db2/cell2?charset=utf8'
    """
    if "{" not in url:
        return url
    if not default_url:
        return None if _has_part(url) else url
    try:
        return url.format(**_parts(default_url))
    except (AttributeError, IndexError, KeyError, ValueError):
        return None if _has_part(url) else url


class HostMappings:
    """The cells of hosts, read again when they change.

    A cheap query shows most changes. Changes of the same second as the last read can escape it, so callers also
    read everything from time to time.
    """

    def __init__(self) -> None:
        self.hosts_of_cell: dict[int, frozenset[str]] = {}  # by id of the cell
        self._mark: tuple[object, ...] = ()

    def read(self, connection: Connection, *, wants_all: bool) -> None:
        """Read the mappings if they have changed, or if ``wants_all``."""
        columns = HOST_MAPPINGS.c
        mark = change_mark(connection, HOST_MAPPINGS)
        if mark == self._mark and not wants_all:
            return
        names_of: dict[int, set[str]] = {}
        for host, cell_id in connection.execute(select(columns.host, columns.cell_id)):
            names_of.setdefault(cell_id, set()).add(host)
        hosts = {cell_id: frozenset(names) for cell_id, names in names_of.items()}
        # An equal set stays the same object, so that readers of cells detect changes without a comparison.
        before = self.hosts_of_cell
        self.hosts_of_cell = {
            cell_id: before[cell_id] if before.get(cell_id) == names else names for cell_id, names in hosts.items()
        }
        self._mark = mark


def _has_part(url: str) -> bool:
    return any(f"{{{part}" in url for part in ("scheme", "username", "password", "hostname", "port", "path", "query"))


def _parts(url: str) -> dict[str, object]:
    split = urlsplit(url)
    parts: dict[str, object] = {
        "scheme": split.scheme,
        "username": split.username,
        "password": split.password,
        "hostname": split.hostname,
        "port": split.port if "," not in split.netloc else None,
        "path": split.path.lstrip("/"),
        "query": split.query,
        "fragment": split.fragment,
    }
    # A transport URL may name several servers, whose parts have numbers.
    if "," in split.netloc:
        for number, server in enumerate(split.netloc.split(","), start=1):
            one = urlsplit(f"//{server}")
            names = {"username": one.username, "password": one.password, "hostname": one.hostname, "port": one.port}
            parts |= {f"{name}{number}": value for name, value in names.items()}
    return parts
