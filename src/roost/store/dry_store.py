"""A store for dry runs: it takes every claim and keeps nothing."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Never

from roost.errors import Unavailable
from roost.model.stored_decision import DecisionQuery
from roost.model.writes import Change, EvidenceRow, Item
from roost.ports import Clock, Committed, IdKind, Loaded, Past, WorkReader

# Where identities start of a kind that the origin has none of in stock.
_FIRST = 2**40


class DryStore:
    """Behind a forked state. Whatever was judged from memory is accepted, since nobody else writes there.

    Args:
        position: of the newest change in the state.
        next_ids: the first identity of each kind that the state's owner has not taken.
    """

    is_shared = False
    seen = ""

    def __init__(self, *, position: int, next_ids: Mapping[IdKind, int]) -> None:
        self._position = position
        self._next_ids = dict(next_ids)

    def load(self) -> Loaded:
        """See ``Store.load``. There is nothing to load: after an error a dry run is over.

        Raises:
            Unavailable: always.
        """
        return self._raise_ended()

    def reserve(self, kind: IdKind, count: int) -> int:
        """See ``Store.reserve``."""
        first = self._next_ids.get(kind, _FIRST)
        self._next_ids[kind] = first + count
        return first

    def commit(self, items: Sequence[Item]) -> Committed:
        """See ``Store.commit``."""
        if any(item.writes for item in items):
            self._position += 1
        return Committed([None] * len(items), self._position)

    def changes(self) -> Sequence[Change]:
        """See ``Store.changes``."""
        return ()

    def order_creations(self) -> AbstractContextManager[None]:
        """See ``Store.order_creations``. Nobody else is there."""
        return nullcontext()

    def past(self, position: int, seen: str) -> Past | None:
        """See ``Store.past``. There is none."""
        return None

    def prune_work(self, *, older_than_s: float) -> int:
        """See ``Store.prune_work``. There is none."""
        return 0

    def start_snapshot(self, *, every_bytes: int) -> bool:
        """See ``Store.start_snapshot``. There is nothing to keep."""
        return False

    def evidence(self, *, uuid: bytes | None = None, newest: int = 20) -> list[EvidenceRow]:
        """See ``Store.evidence``. There is none."""
        return []

    def refusals(self, *, since_s: float, newest: int) -> list[EvidenceRow]:
        """See ``Store.refusals``. There are none."""
        return []

    def decisions(self, query: DecisionQuery) -> list[EvidenceRow]:
        """See ``Store.decisions``. None are stored."""
        return []

    def document(self, number: int) -> bytes | None:
        """See ``Store.document``. There is none."""
        return None

    def beat(self, hosts: Iterable[str], now_s: float) -> None:
        """See ``Store.beat``. There are no agents."""

    def work_reader(self, clock: Clock) -> WorkReader:
        """See ``Store.work_reader``. A dry run knows of no work.

        Raises:
            Unavailable: always.
        """
        raise Unavailable("a dry run knows of no operations and no agents")

    def prune(self, *, older_than_s: float, max_bytes: int) -> int:
        """See ``Store.prune``."""
        return 0

    def close(self) -> None:
        """See ``Store.close``."""

    @staticmethod
    def _raise_ended() -> Never:
        raise Unavailable("a dry run cannot go on after an error; start it again")
