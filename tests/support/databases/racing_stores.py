"""Stores that let another writer in, or break, at the moment of a commit."""

from collections.abc import Callable, Sequence

from roost.errors import StoreBroken, Unavailable
from roost.model.writes import Claim, Item, Refusal
from roost.ports import CommitResult, Store
from roost.store.memory_store import MemoryStore


def claims_in(items: Sequence[Item]) -> int:
    """Count the claims of a commit."""
    return sum(isinstance(write, Claim) for item in items for write in item.writes)


class Overtaken(MemoryStore):
    """A store before whose commits somebody else does something."""

    meanwhile: Callable[[], object] = staticmethod(lambda: None)

    def commit(self, items: Sequence[Item]) -> CommitResult:
        """See ``Store.commit``."""
        self.meanwhile()
        return super().commit(items)


class RacyStore(MemoryStore):
    """A store where others may commit just before each commit that holds a claim.

    ``rivals`` are what happens before the first such commit, the second, and so on; ``afterwards`` after it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.rivals: list[Callable[[], object]] = []
        self.afterwards: list[Callable[[], object]] = []
        self.refusals: list[Refusal] = []  # all that claims met

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
    """A store that breaks at the commits of claims while ``is_broken``; nothing of them is written."""

    is_broken = False

    def commit(self, items: Sequence[Item]) -> CommitResult:
        """See ``Store.commit``."""
        if self.is_broken and claims_in(items):
            raise StoreBroken("the disk is full")
        return super().commit(items)


class Dying:
    """Any store, that is gone at one commit: it made it or did not, and whoever asked for it does not know.

    Args:
        at: of its commits, from 1 on.
        is_made: whether that commit is made before the end.
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
