"""A store in memory whose commits may fail."""

from collections.abc import Callable, Sequence

from roost.model.writes import Item
from roost.ports import CommitResult
from roost.store.memory_store import MemoryStore


class TroubledStore(MemoryStore):
    """A store with a hook before and after each commit; a hook may raise an error or kill the process."""

    def __init__(self) -> None:
        super().__init__()
        self.before: Callable[[], None] = lambda: None
        self.after: Callable[[], None] = lambda: None

    def commit(self, items: Sequence[Item]) -> CommitResult:
        """Commit items, as ``Store.commit``."""
        self.before()
        committed = super().commit(items)
        self.after()
        return committed
