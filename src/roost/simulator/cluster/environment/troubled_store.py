"""A store in memory whose commits may fail."""

from collections.abc import Callable, Sequence

from roost.model.writes import Item
from roost.ports import Committed
from roost.store.memory_store import MemoryStore


class TroubledStore(MemoryStore):
    """A store that calls ``before`` and ``after`` around each commit: they may raise, or end the process."""

    def __init__(self) -> None:
        super().__init__()
        self.before: Callable[[], None] = lambda: None
        self.after: Callable[[], None] = lambda: None

    def commit(self, items: Sequence[Item]) -> Committed:
        """See ``Store.commit``."""
        self.before()
        committed = super().commit(items)
        self.after()
        return committed
