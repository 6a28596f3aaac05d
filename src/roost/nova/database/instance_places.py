"""Instances of a cell and their hosts, read in parts."""

from bisect import bisect_right
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from sqlalchemy import Boolean, Connection, DateTime, Integer, String, column, select, table

from roost.nova.database.nova_fleet import NovaInstance

INSTANCES = table(
    "instances",
    column("id", Integer),
    column("uuid", String),
    column("host", String),
    column("node", String),
    column("project_id", String),
    column("user_id", String),
    column("hidden", Boolean),
    column("deleted", Integer),
    column("created_at", DateTime),
    column("updated_at", DateTime),
)
_COLUMNS = INSTANCES.c
_READ = select(
    _COLUMNS.uuid,
    _COLUMNS.host,
    _COLUMNS.node,
    _COLUMNS.project_id,
    _COLUMNS.user_id,
    _COLUMNS.hidden,
    _COLUMNS.deleted,
)
_ROWS_AT_ONCE = 5000
# Uuids are compared in parts by their first two digits.
PARTS = 256
_FIRST_DIGITS = [f"{number:02x}" for number in range(PARTS)]

Place = tuple[str, str]  # host and node


class InstancePlaces:
    """The hosts of a cell's instances.

    Most changes show in the times of rows. Deletions do not: the row of a deleted instance keeps the time of its last
    update, and purged rows are gone. So each read also compares some parts of the uuids with the database.

    Args:
        cell: uuid of the cell.
    """

    def __init__(self, cell: str) -> None:
        self._cell = cell
        # By the first two digits of the uuid. Equal places are one object: the memory is that of uuids.
        self._parts: list[dict[str, Place]] = [{} for _ in range(PARTS)]
        self._places: dict[Place, Place] = {}
        self._next_part = 0

        self._found: dict[str, NovaInstance] = {}
        self._unchanged: dict[str, NovaInstance] = {}
        self._gone: set[str] = set()

    def __contains__(self, uuid: str) -> bool:
        return uuid in self._parts[_part_of(uuid)]

    def uuids(self) -> Iterator[str]:
        """Yield the uuids of all instances."""
        for part in self._parts:
            yield from list(part)

    def take_changes(self) -> tuple[tuple[NovaInstance, ...], tuple[NovaInstance, ...], tuple[str, ...]]:
        """Return new and moved instances, unchanged ones, and the uuids of those that are gone, since the last call."""
        found, unchanged, gone = self._found.values(), self._unchanged.values(), sorted(self._gone)
        self._found, self._unchanged, self._gone = {}, {}, set()
        return tuple(found), tuple(unchanged), tuple(gone)

    def read_changes(self, connection: Connection, *, since: datetime) -> None:
        """Read the instances whose rows changed since a time."""
        # Two queries, because each has an index.
        for conditions in ((_COLUMNS.updated_at >= since,), (_COLUMNS.deleted == 0, _COLUMNS.created_at >= since)):
            for row in _stream(connection, _READ.where(*conditions)):
                self._take(row)

    def compare_parts(self, connection: Connection, *, count: int = PARTS) -> None:
        """Compare the next parts with the database; by default all."""
        left = min(count, PARTS)
        while left > 0:
            first = self._next_part
            end = min(first + left, PARTS)
            self._compare(connection, range(first, end))
            self._next_part = end % PARTS
            left -= end - first
        # Places without instances are dropped at the end of a round.
        if self._next_part == 0:
            used = {place for part in self._parts for place in part.values()}
            self._places = {place: place for place in used}

    def _compare(self, connection: Connection, numbers: range) -> None:
        query = _READ.where(_COLUMNS.deleted == 0)
        if numbers.start > 0:
            query = query.where(_COLUMNS.uuid >= _FIRST_DIGITS[numbers.start])
        if numbers.stop < PARTS:
            query = query.where(_COLUMNS.uuid < _FIRST_DIGITS[numbers.stop])
        seen: set[str] = set()
        for row in _stream(connection, query):
            self._take(row)
            seen.add(row[0])
        for number in numbers:
            for uuid in [each for each in self._parts[number] if each not in seen]:
                self._drop(uuid)

    def _take(self, row: tuple[Any, ...]) -> None:
        uuid, host, node, project_id, user_id, hidden, deleted = row
        # A resize to another cell hides one of the two rows of the instance.
        if deleted or hidden or not host:
            self._drop(uuid)
            return
        part, place = self._parts[_part_of(uuid)], (host, node or "")
        instance = NovaInstance(
            uuid=uuid, host=host, node=node or "", cell=self._cell, project_id=project_id or "", user_id=user_id or ""
        )
        if part.get(uuid) == place:
            self._unchanged[uuid] = instance
            return
        part[uuid] = self._places.setdefault(place, place)
        self._gone.discard(uuid)
        self._found[uuid] = instance

    def _drop(self, uuid: str) -> None:
        if self._parts[_part_of(uuid)].pop(uuid, None) is not None:
            self._found.pop(uuid, None)
            self._unchanged.pop(uuid, None)
            self._gone.add(uuid)


def _part_of(uuid: str) -> int:
    # The queries compare texts, too. So every text has one part, even an invalid UUID.
    return max(bisect_right(_FIRST_DIGITS, uuid[:2].lower()) - 1, 0)


def _stream(connection: Connection, query: Any) -> Iterator[tuple[Any, ...]]:
    options = {"stream_results": True, "yield_per": _ROWS_AT_ONCE}
    for part in connection.execute(query, execution_options=options).partitions():
        yield from map(tuple, part)
