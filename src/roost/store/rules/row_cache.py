"""Rows in memory, with undo: the whole database of ``MemoryStore``, or the part of one that a batch touches."""

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
from roost.store.rules.schema import WORK

K = TypeVar("K", bound=Hashable)
R = TypeVar("R")


class Stock(msgspec.Struct, frozen=True, array_like=True):
    """An inventory and how much of it is used; in slot 0, the provider's generation as ``used``."""

    id: int
    total: int
    reserved: int
    min_unit: int
    max_unit: int
    step_size: int
    allocation_ratio: float
    used: int

    def with_used(self, used: int) -> "Stock":
        """Return the same inventory with another amount in use."""
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
    """Who has places of a group in one scope, and how many. Nobody, when ``members`` is 0."""

    group_id: int
    scope: int
    holder: int
    members: int


class Labels(msgspec.Struct, frozen=True, array_like=True):
    """The traits, or the aggregates, of one provider."""

    provider_id: int
    ids: tuple[int, ...]


class Holding(msgspec.Struct, frozen=True, array_like=True):
    """All that one consumer holds."""

    consumer_id: int
    takes: tuple[tuple[int, int], ...]  # inventory id, amount; in the order of the ids


class Shelf(Generic[K, R]):
    """The rows of one table: by key, by what must be unique, and in groups."""

    def __init__(
        self,
        log: "Log",
        *,
        key: Callable[[R], K],
        uniques: tuple[Callable[[R], Hashable], ...] = (),
        group: Callable[[R], Hashable] | None = None,
    ) -> None:
        self.rows: dict[K, R] = {}
        self.changed: dict[K, R | None] = {}  # what accepted items changed -> the row as it was before
        self._log = log
        self._key, self._uniques, self._group = key, uniques, group
        self._by: tuple[dict[Hashable, K], ...] = tuple({} for _ in uniques)
        self._groups: dict[Hashable, set[K]] = {}

    def get(self, key: K) -> R | None:
        """Return a row, or None."""
        return self.rows.get(key)

    def key_of(self, row: R) -> K:
        """Return the key of a row, whether it is here or not."""
        return self._key(row)

    def is_known_as(self, row: R, other: R) -> bool:
        """Say whether two rows have the same in all that only one row may have."""
        return all(unique(row) == unique(other) for unique in self._uniques)

    def find(self, unique: int, value: Hashable) -> R | None:
        """Return the row with ``value`` in the unique column(s) of that number, or None."""
        key = self._by[unique].get(value)
        return None if key is None else self.rows[key]

    def before(self, key: K) -> R | None:
        """Return a row as it was before the item that is being judged, or None."""
        changes = (old for shelf, changed, old in self._log if shelf is self and changed == key)
        return next(changes, self.rows.get(key))

    def previous_rows(self) -> dict[K, R | None]:
        """Return the rows that the item that is being judged has changed, by key, as they were before it."""
        found: dict[K, R | None] = {}
        for shelf, key, old in self._log:
            if shelf is self:
                found.setdefault(key, old)
        return found

    def among(self, group: Hashable) -> Iterator[R]:
        """Yield the rows of one group, as it was when the call began."""
        for key in sorted(self._groups.get(group, ()), key=repr):
            yield self.rows[key]

    def clashes(self, row: R) -> bool:
        """Say whether another row has a value that only one may have."""
        key = self._key(row)
        return any(by.get(unique(row), key) != key for unique, by in zip(self._uniques, self._by, strict=True))

    def fill(self, row: R) -> None:
        """Add a row as the database has it."""
        self._set(self._key(row), row)

    def forget(self, key: K) -> None:
        """Remove a row as the database did."""
        self._set(key, None)

    def put(self, row: R) -> None:
        """Add or replace a row, in a way that can be undone."""
        key = self._key(row)
        self._log.append((self, key, self.rows.get(key)))
        self._set(key, row)

    def drop(self, key: K) -> None:
        """Remove a row, in a way that can be undone."""
        old = self.rows.get(key)
        if old is not None:
            self._log.append((self, key, old))
            self._set(key, None)

    def restore(self, key: K, row: R | None) -> None:
        """Undo one change."""
        self._set(key, row)

    def keep(self, key: K, before: R | None) -> None:
        """Note that an accepted item changed a row."""
        self.changed.setdefault(key, before)

    def _set(self, key: K, row: R | None) -> None:
        old = self.rows.pop(key, None)
        if old is not None:
            for unique, by in zip(self._uniques, self._by, strict=True):
                value = unique(old)
                if by.get(value) == key:  # Undoing in reverse order may meet the value's next owner.
                    del by[value]
            if self._group is not None:
                self._groups[self._group(old)].discard(key)
        if row is not None:
            self.rows[key] = row
            for unique, by in zip(self._uniques, self._by, strict=True):
                by[unique(row)] = key
            if self._group is not None:
                self._groups.setdefault(self._group(row), set()).add(key)


# What was changed, in order: the shelf, the key, and the row as it was. One log for all types of rows.
Log = list[tuple[Shelf[Any, Any], Any, Any]]


class Shelves:
    """All tables that a verdict looks at."""

    def __init__(self) -> None:
        log: Log = []
        self._log = log
        self.symbols: Shelf[int, PutSymbol] = Shelf(log, key=lambda r: r.id, uniques=(lambda r: (r.kind, r.name),))
        self.providers: Shelf[int, PutProvider] = Shelf(
            log, key=lambda r: r.id, uniques=(lambda r: r.uuid, lambda r: r.name), group=lambda r: r.parent_id
        )
        self.stocks: Shelf[int, Stock] = Shelf(log, key=lambda r: r.id, group=lambda r: r.id >> CLASS_BITS)
        self.traits: Shelf[int, Labels] = Shelf(log, key=lambda r: r.provider_id)
        self.memberships: Shelf[int, Labels] = Shelf(log, key=lambda r: r.provider_id)
        self.aggregates: Shelf[int, PutAggregate] = Shelf(log, key=lambda r: r.id, uniques=(lambda r: r.uuid,))
        self.hosts: Shelf[int, PutHost] = Shelf(
            log, key=lambda r: r.id, uniques=(lambda r: r.provider_id, lambda r: (r.host, r.node))
        )
        self.groups: Shelf[int, PutGroup] = Shelf(log, key=lambda r: r.id, uniques=(lambda r: r.uuid,))
        self.documents: Shelf[int, PutDocument] = Shelf(
            log, key=lambda r: r.id, uniques=(lambda r: (r.kind, r.fingerprint),)
        )
        self.seats: Shelf[tuple[int, int], Seat] = Shelf(log, key=lambda r: (r.group_id, r.scope))
        self.consumers: Shelf[int, ConsumerRow] = Shelf(log, key=lambda r: r.id, uniques=(lambda r: r.uuid,))
        self.holdings: Shelf[int, Holding] = Shelf(log, key=lambda r: r.consumer_id)
        self.instances: Shelf[int, InstanceRow] = Shelf(log, key=lambda r: r.consumer_id)
        self.decisions: Shelf[int, EvidenceRow] = Shelf(log, key=lambda r: r.id)
        self.work: dict[type[msgspec.Struct], Shelf[Any, Any]] = {
            kind: Shelf(log, key=attrgetter(*table.key), uniques=tuple(attrgetter(*each) for each in table.uniques))
            for kind, table in WORK.items()
        }

    def by_table(self) -> Mapping[str, Shelf[Any, Any]]:
        """Return the shelves under the names of their tables, in the order in which rows are written."""
        return {
            "symbol": self.symbols,
            "provider": self.providers,
            "inventory": self.stocks,
            "provider_trait": self.traits,
            "provider_aggregate": self.memberships,
            "aggregate": self.aggregates,
            "host": self.hosts,
            "server_group": self.groups,
            "document": self.documents,
            "place": self.seats,
            "consumer": self.consumers,
            "allocation": self.holdings,
            "instance": self.instances,
            "decision": self.decisions,
            **{table.name: self.work[kind] for kind, table in WORK.items()},
        }

    def keep(self) -> None:
        """Make what was changed since the last call final."""
        for shelf, key, old in self._log:
            shelf.keep(key, old)
        self._log.clear()

    def undo(self) -> None:
        """Take back what was changed since the last ``keep``."""
        while self._log:
            shelf, key, old = self._log.pop()
            shelf.restore(key, old)

    def forget_changes(self) -> None:
        """Start to note changes anew."""
        for shelf in self.by_table().values():
            shelf.changed.clear()
