"""Stores with a concurrent writer or a failure at a commit."""

from collections.abc import Callable, Sequence

from roost.errors import StoreBroken, Unavailable
from roost.model.writes import Claim, Item, Refusal
from roost.ports import CommitResult, Store
from roost.store.memory_store import MemoryStore


def claims_in(items: Sequence[Item]) -> int:
    """Count the claims of a commit."""
    return sum(isinstance(write, Claim) for item in items for write in item.writes)


class OvertakenStore(MemoryStore):
    """A store that calls ``meanwhile`` before each commit, as a concurrent writer."""

    meanwhile: Callable[[], object] = staticmethod(lambda: None)

    def commit(self, items: Sequence[Item]) -> CommitResult:
        """See ``Store.commit``."""
        self.meanwhile()
        return super().commit(items)


class RacyStore(MemoryStore):
    """A store with concurrent writers around each commit that contains a claim.

    ``rivals`` are called before the first such commit, the second, and so on; ``afterwards`` after them.
    """

    def __init__(self) -> None:
        super().__init__()
        self.rivals: list[Callable[[], object]] = []
        self.afterwards: list[Callable[[], object]] = []
        self.refusals: list[Refusal] = []  # all refusals of claims

    def commit(self, items: Sequence[Item]) -> CommitResult:
        """See ``Store.commit``."""
        is_raced = bool(claims_in(items))
        if self.rivals and is_raced:
            self.rivals.pop(0)()
        committed = super().commit(items)
        for item, refusal in zip(items, committed.refusals, strict=True):
            if refusal is not None and claims_in([item]):
                self.refusals.append(refusal)
        if self.afterwards and is_raced:
            self.afterwards.pop(0)()
        return committed


class BreakableStore(MemoryStore):
    """A store that refuses commits with claims while ``is_broken``, and writes no part of them."""

    is_broken = False

    def commit(self, items: Sequence[Item]) -> CommitResult:
        """See ``Store.commit``."""
        if self.is_broken and claims_in(items):
            raise StoreBroken("the disk is full")
        return super().commit(items)


class FailingStore:
    """A wrapper of a store that becomes unavailable at one commit, which may or may not be written.

    Args:
        at: the number of that commit, from 1 on.
        is_made: whether that commit is written.
    """

    def __init__(self, store: Store, *, at: int, is_made: bool) -> None:
        self._store = store
        self._left = at
        self._is_made = is_made

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    def commit(self, items: Sequence[Item]) -> CommitResult:
        """See ``Store.commit``."""
        self._left -= 1
        if self._left < 0 or (self._left == 0 and not self._is_made):
            raise Unavailable("the database is gone")
        committed = self._store.commit(items)
        if self._left == 0:
            raise Unavailable("the database is gone")
        return committed
