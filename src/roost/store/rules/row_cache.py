"""Rows in memory, with undo: the whole database of ``MemoryStore``, or the rows of a batch."""

from collections.abc import Callable, Hashable, Iterator, Mapping
from operator import attrgetter
from typing import Any, Generic, TypeVar

import msgspec

from roost.model.writes import (
    CLASS_BITS,
    ConsumerRow,
    EvidenceRow,
    InstanceRow,
    PutAggregate,
    PutDocument,
    PutGroup,
    PutHost,
    PutProvider,
    PutSymbol,
)
from roost.store.rules import schema

K = TypeVar("K", bound=Hashable)
R = TypeVar("R")


class Stock(msgspec.Struct, frozen=True, array_like=True):
    """An inventory and its used amount; in slot 0, the provider's generation as ``used``."""

    id: int
    total: int
    reserved: int
    min_unit: int
    max_unit: int
    step_size: int
    allocation_ratio: float
    used: int

    def with_used(self, used: int) -> "Stock":
        """Return the same inventory with another used amount."""
        return Stock(
            self.id,
            self.total,
            self.reserved,
            self.min_unit,
            self.max_unit,
            self.step_size,
            self.allocation_ratio,
            used,
        )


class Seat(msgspec.Struct, frozen=True, array_like=True):
    """The places of a server group in one scope: their holder, and the number of members; 0: no holder."""

    group_id: int
    scope: int
    holder: int
    members: int


class Labels(msgspec.Struct, frozen=True, array_like=True):
    """The traits, or the aggregates, of one provider."""

    provider_id: int
    ids: tuple[int, ...]


class Holding(msgspec.Struct, frozen=True, array_like=True):
    """The allocations of one consumer."""

    consumer_id: int
    takes: tuple[tuple[int, int], ...]  # inventory id and amount, sorted by id


class CachedTable(Generic[K, R]):
    """The rows of one table: by key, by unique columns, and in groups."""

    def __init__(
        self,
        log: "Log",
        *,
        key: Callable[[R], K],
        uniques: tuple[Callable[[R], Hashable], ...] = (),
        group: Callable[[R], Hashable] | None = None,
    ) -> None:
        self.rows: dict[K, R] = {}
        self.changed: dict[K, R | None] = {}  # key -> the row before all accepted items; None: absent
        self._log = log
        self._key, self._uniques, self._group = key, uniques, group
        self._by: tuple[dict[Hashable, K], ...] = tuple({} for _ in uniques)
        self._groups: dict[Hashable, set[K]] = {}

    def get(self, key: K) -> R | None:
        """Return a row, or None."""
        return self.rows.get(key)

    def key_of(self, row: R) -> K:
        """Return the key of a row, present or not."""
        return self._key(row)

    def has_same_uniques(self, row: R, other: R) -> bool:
        """Return whether two rows have equal values in all unique columns."""
        return all(unique(row) == unique(other) for unique in self._uniques)

    def find(self, unique: int, value: Hashable) -> R | None:
        """Return the row with a unique value, or None.

        Args:
            unique: index in ``uniques`` of the unique columns.
            value: the value of these columns.
        """
        key = self._by[unique].get(value)
        return None if key is None else self.rows[key]

    def previous_row(self, key: K) -> R | None:
        """Return a row as it was before the current item, or None."""
        changes = (old for table, changed, old in self._log if table is self and changed == key)
        return next(changes, self.rows.get(key))

    def previous_rows(self) -> dict[K, R | None]:
        """Return the rows changed by the current item, by key, as they were before it."""
        found: dict[K, R | None] = {}
        for table, key, old in self._log:
            if table is self:
                found.setdefault(key, old)
        return found

    def find_group(self, group: Hashable) -> Iterator[R]:
        """Yield the rows of one group, as of the call."""
        for key in sorted(self._groups.get(group, ()), key=repr):
            yield self.rows[key]

    def clashes(self, row: R) -> bool:
        """Return whether another row has the same value in a unique column."""
        key = self._key(row)
        return any(by.get(unique(row), key) != key for unique, by in zip(self._uniques, self._by, strict=True))

    def fill(self, row: R) -> None:
        """Add a row from the database."""
        self._set(self._key(row), row)

    def forget(self, key: K) -> None:
        """Remove a row that the database removed."""
        self._set(key, None)

    def put(self, row: R) -> None:
        """Add or replace a row; can be undone."""
        key = self._key(row)
        self._log.append((self, key, self.rows.get(key)))
        self._set(key, row)

    def drop(self, key: K) -> None:
        """Remove a row; can be undone."""
        old = self.rows.get(key)
        if old is not None:
            self._log.append((self, key, old))
            self._set(key, None)

    def restore(self, key: K, row: R | None) -> None:
        """Undo one change."""
        self._set(key, row)

    def record_change(self, key: K, before: R | None) -> None:
        """Record the change of a row by an accepted item."""
        self.changed.setdefault(key, before)

    def _set(self, key: K, row: R | None) -> None:
        old = self.rows.pop(key, None)
        if old is not None:
            for unique, by in zip(self._uniques, self._by, strict=True):
                value = unique(old)
                if by.get(value) == key:  # During an undo, another row may already have this value.
                    del by[value]
            if self._group is not None:
                self._groups[self._group(old)].discard(key)
        if row is not None:
            self.rows[key] = row
            for unique, by in zip(self._uniques, self._by, strict=True):
                by[unique(row)] = key
            if self._group is not None:
                self._groups.setdefault(self._group(row), set()).add(key)


# Changes in order: table, key, and the previous row. One log for all tables.
Log = list[tuple[CachedTable[Any, Any], Any, Any]]


class RowCache:
    """The rows of all tables that a verdict reads and changes."""

    def __init__(self) -> None:
        self._log: Log = []
        self._by_name: dict[str, CachedTable[Any, Any]] = {}
        self.symbols: CachedTable[int, PutSymbol] = self._add(schema.SYMBOL)
        self.providers: CachedTable[int, PutProvider] = self._add(schema.PROVIDER, group=attrgetter("parent_id"))
        self.stocks: CachedTable[int, Stock] = self._add(schema.INVENTORY, group=lambda row: row.id >> CLASS_BITS)
        self.traits: CachedTable[int, Labels] = self._add(schema.PROVIDER_TRAIT)
        self.memberships: CachedTable[int, Labels] = self._add(schema.PROVIDER_AGGREGATE)
        self.aggregates: CachedTable[int, PutAggregate] = self._add(schema.AGGREGATE)
        self.hosts: CachedTable[int, PutHost] = self._add(schema.HOST)
        self.groups: CachedTable[int, PutGroup] = self._add(schema.SERVER_GROUP)
        self.documents: CachedTable[int, PutDocument] = self._add(schema.DOCUMENT)
        self.seats: CachedTable[tuple[int, int], Seat] = self._add(schema.PLACE)
        self.consumers: CachedTable[int, ConsumerRow] = self._add(schema.CONSUMER)
        self.holdings: CachedTable[int, Holding] = self._add(schema.ALLOCATION)
        self.instances: CachedTable[int, InstanceRow] = self._add(schema.INSTANCE)
        self.decisions: CachedTable[int, EvidenceRow] = self._add(schema.DECISION)
        self.work: dict[type[msgspec.Struct], CachedTable[Any, Any]] = {
            kind: self._add(table) for kind, table in schema.WORK.items()
        }

    def by_name(self) -> Mapping[str, CachedTable[Any, Any]]:
        """Return the tables by name, in the order of writing."""
        return self._by_name

    def _add(self, table: schema.Table, *, group: Callable[[Any], Hashable] | None = None) -> CachedTable[Any, Any]:
        """Add a table.

        Args:
            group: returns the group of a row, for ``CachedTable.find_group``.
        """
        cached: CachedTable[Any, Any] = CachedTable(
            self._log,
            key=attrgetter(*table.key),
            uniques=tuple(attrgetter(*unique) for unique in table.uniques),
            group=group,
        )
        self._by_name[table.name] = cached
        return cached

    def accept(self) -> None:
        """Make the changes since the last ``accept`` final."""
        for table, key, old in self._log:
            table.record_change(key, old)
        self._log.clear()

    def undo(self) -> None:
        """Undo the changes since the last ``accept``."""
        while self._log:
            table, key, old = self._log.pop()
            table.restore(key, old)

    def forget_changes(self) -> None:
        """Start a new record of changes."""
        for table in self._by_name.values():
            table.changed.clear()
