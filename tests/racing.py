"""Stores that let another writer in, or break, at the moment of a commit."""

from collections.abc import Callable, Sequence

from roost.errors import StoreBroken
from roost.model.journal import Claim, Item, Refusal
from roost.ports import Committed
from roost.store.memory import MemoryStore


def claims_in(items: Sequence[Item]) -> int:
    """Count the claims of a commit."""
    return sum(isinstance(write, Claim) for item in items for write in item.writes)


class RacyStore(MemoryStore):
    """A store where others may commit just before each commit that holds a claim.

    ``rivals`` are what happens before the first such commit, the second, and so on; ``afterwards`` after it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.rivals: list[Callable[[], object]] = []
        self.afterwards: list[Callable[[], object]] = []
        self.refusals: list[Refusal] = []  # all that claims met

    def commit(self, items: Sequence[Item]) -> Committed:
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

    def commit(self, items: Sequence[Item]) -> Committed:
        """See ``Store.commit``."""
        if self.is_broken and claims_in(items):
            raise StoreBroken("the disk is full")
        return super().commit(items)
