"""A read-only store on a database; other processes may serve it at the same time."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Never, TypeVar

from roost.errors import Unavailable
from roost.model.stored_decision import DecisionQuery
from roost.model.writes import Change, EvidenceRow, Item, PutSymbol, Write
from roost.placement.writes.name_numbers import missing_standard
from roost.ports import Clock, CommitResult, FeedMark, IdKind, LiveWriter, LoadedDatabase, Past, Store, WorkReader

P = TypeVar("P")

# First identity for use in this process only: far above those of the database.
_FIRST = 2**40


class ReadingStore:
    """A read-only view of another store.

    Args:
        store: the database, opened for reading; ``close`` closes it.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._next_ids: dict[IdKind, int] = {}
        self._is_fixed = False
        self._inherited: list[Store] = []  # of the parent process: neither used nor closed here

    @property
    def is_shared(self) -> bool:
        """See ``Store.is_shared``: other processes write."""
        return True

    def fix(self, open_own: Callable[[], Store]) -> None:
        """Stop following the database, and open a separate connection, in a forked child.

        Args:
            open_own: opens the database for the child.
        """
        self._inherited.append(self._store)
        self._store = open_own()
        self._is_fixed = True

    def load(self, *, from_rows: bool = False) -> LoadedDatabase:
        """See ``Store.load``. Adds the missing standard resource classes and traits, as a server does at its start."""
        loaded = self._store.load(from_rows=from_rows)
        names = _Names()
        later = names.complete(names.watch(loaded.later))
        return LoadedDatabase(loaded.position, names.watch(loaded.parts), later, loaded.is_cached)

    def reserve(self, kind: IdKind, count: int) -> int:
        """See ``Store.reserve``. The identities are for dry runs only; the database does not change."""
        first = self._next_ids.get(kind, _FIRST)
        self._next_ids[kind] = first + count
        return first

    def commit(self, items: Sequence[Item]) -> CommitResult:
        """See ``Store.commit``.

        Raises:
            Unavailable: always.
        """
        return self._refuse()

    def changes(self) -> Sequence[Change] | None:
        """See ``Store.changes``. After ``fix``, there are no changes."""
        return () if self._is_fixed else self._store.changes()

    @property
    def visible_changes(self) -> str:
        """See ``Store.visible_changes``."""
        return self._store.visible_changes

    def past(self, position: int, visible_changes: str, *, after: FeedMark | None = None) -> Past | None:
        """See ``Store.past``."""
        return self._store.past(position, visible_changes, after=after)

    def order_creations(self) -> AbstractContextManager[None]:
        """See ``Store.order_creations``. A reader creates nothing."""
        return nullcontext()

    def evidence(self, *, uuid: bytes | None = None, newest: int = 20) -> list[EvidenceRow]:
        """See ``Store.evidence``."""
        return self._store.evidence(uuid=uuid, newest=newest)

    def refusals(self, *, since_s: float, newest: int) -> list[EvidenceRow]:
        """See ``Store.refusals``."""
        return self._store.refusals(since_s=since_s, newest=newest)

    def decisions(self, query: DecisionQuery) -> list[EvidenceRow]:
        """See ``Store.decisions``."""
        return self._store.decisions(query)

    def document(self, number: int) -> bytes | None:
        """See ``Store.document``."""
        return self._store.document(number)

    def beat(self, hosts: Iterable[str], now_s: float) -> None:
        """See ``Store.beat``.

        Raises:
            Unavailable: always.
        """
        self._refuse()

    def check_writable(self, now_s: float) -> None:
        """See ``Store.check_writable``.

        Raises:
            Unavailable: always.
        """
        self._refuse()

    @property
    def process(self) -> int:
        """See ``Store.process``."""
        return self._store.process

    def live_writers(self) -> Sequence[LiveWriter]:
        """See ``Store.live_writers``. A reader is not one of them."""
        return self._store.live_writers()

    def work_reader(self, clock: Clock) -> WorkReader:
        """See ``Store.work_reader``."""
        return self._store.work_reader(clock)

    def prune(self, *, older_than_s: float, max_bytes: int) -> int:
        """See ``Store.prune``. Nothing is deleted."""
        return 0

    def prune_work(
        self, *, older_than_s: float, changes_older_than_s: float = -math.inf, changes_max: int | None = None
    ) -> int:
        """See ``Store.prune_work``. Nothing is deleted."""
        return 0

    def start_snapshot(self, *, every_bytes: int) -> bool:
        """See ``Store.start_snapshot``. The serving processes write snapshots."""
        return False

    def start_column_file(self) -> bool:
        """See ``Store.start_column_file``. The serving processes write it."""
        return False

    def close(self) -> None:
        """See ``Store.close``."""
        self._store.close()

    @staticmethod
    def _refuse() -> Never:
        raise Unavailable("the database was opened for reading only; nothing was written")


class _Names:
    """The resource classes and traits of a database, as its content is read."""

    def __init__(self) -> None:
        self._classes, self._traits = set[str](), set[str]()

    def watch(self, parts: Iterable[P]) -> Iterator[P]:
        """Yield parts, and note their names."""
        for part in parts:
            if isinstance(part, PutSymbol):
                (self._traits if part.kind == "trait" else self._classes).add(part.name)
            yield part

    def complete(self, writes: Iterable[Write]) -> Iterator[Write]:
        """Yield writes, and then the standard names that are missing."""
        yield from writes
        yield from missing_standard(self._classes, self._traits, highest_trait=_FIRST)
