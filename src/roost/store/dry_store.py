"""A store for dry runs: it accepts every claim and stores nothing."""

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Never

from roost.errors import Unavailable
from roost.model.stored_decision import DecisionQuery
from roost.model.writes import Change, EvidenceRow, Item
from roost.ports import Clock, CommitResult, FeedMark, IdKind, LiveWriter, LoadedDatabase, Past, WorkReader

# First identity of a kind that is missing in ``next_ids``.
_FIRST = 2**40


class DryStore:
    """The store of a forked state. It accepts every item, since the columns accepted it and no other process writes.

    Args:
        position: of the newest change in the state.
        next_ids: the next identity of each kind at the state's owner.
    """

    is_shared = False
    visible_changes = ""
    process = 0

    def __init__(self, *, position: int, next_ids: Mapping[IdKind, int]) -> None:
        self._position = position
        self._next_ids = dict(next_ids)

    def load(self, *, from_rows: bool = False) -> LoadedDatabase:
        """See ``Store.load``. A dry run has no database to reload, so an error ends it.

        Raises:
            Unavailable: always.
        """
        return self._raise_ended()

    def reserve(self, kind: IdKind, count: int) -> int:
        """See ``Store.reserve``."""
        first = self._next_ids.get(kind, _FIRST)
        self._next_ids[kind] = first + count
        return first

    def commit(self, items: Sequence[Item]) -> CommitResult:
        """See ``Store.commit``."""
        if any(item.writes for item in items):
            self._position += 1
        return CommitResult([None] * len(items), self._position)

    def changes(self) -> Sequence[Change]:
        """See ``Store.changes``."""
        return ()

    def order_creations(self) -> AbstractContextManager[None]:
        """See ``Store.order_creations``. There are no other processes."""
        return nullcontext()

    def past(self, position: int, visible_changes: str, *, after: FeedMark | None = None) -> Past | None:
        """See ``Store.past``. A dry run has no history."""
        return None

    def prune_work(
        self, *, older_than_s: float, changes_older_than_s: float = -math.inf, changes_max: int | None = None
    ) -> int:
        """See ``Store.prune_work``. A dry run has no work."""
        return 0

    def start_snapshot(self, *, every_bytes: int) -> bool:
        """See ``Store.start_snapshot``. A dry run has no snapshots."""
        return False

    def start_column_file(self) -> bool:
        """See ``Store.start_column_file``. A dry run has no file."""
        return False

    def evidence(self, *, uuid: bytes | None = None, newest: int = 20) -> list[EvidenceRow]:
        """See ``Store.evidence``. A dry run stores no evidence."""
        return []

    def refusals(self, *, since_s: float, newest: int) -> list[EvidenceRow]:
        """See ``Store.refusals``. A dry run stores no decisions."""
        return []

    def decisions(self, query: DecisionQuery) -> list[EvidenceRow]:
        """See ``Store.decisions``. A dry run stores no decisions."""
        return []

    def document(self, number: int) -> bytes | None:
        """See ``Store.document``. A dry run stores no documents."""
        return None

    def beat(self, hosts: Iterable[str], now_s: float) -> None:
        """See ``Store.beat``. A dry run has no agents."""

    def check_writable(self, now_s: float) -> None:
        """See ``Store.check_writable``. A dry run keeps its writes in memory."""

    def live_writers(self) -> Sequence[LiveWriter]:
        """See ``Store.live_writers``. There are no other processes."""
        return ()

    def work_reader(self, clock: Clock) -> WorkReader:
        """See ``Store.work_reader``. A dry run has no work.

        Raises:
            Unavailable: always.
        """
        raise Unavailable("a dry run has no operations and no agents")

    def prune(self, *, older_than_s: float, max_bytes: int) -> int:
        """See ``Store.prune``."""
        return 0

    def close(self) -> None:
        """See ``Store.close``."""

    @staticmethod
    def _raise_ended() -> Never:
        raise Unavailable("a dry run cannot continue after an error; start it again")
