"""A store that is read and never written, beside the processes that serve it."""

from collections.abc import Sequence
from typing import Never

from roost.errors import Unavailable
from roost.model.journal import Change, EvidenceRow, Item
from roost.ports import Committed, IdKind, Loaded, Store

# Identities that nobody will ever see start here: far from those that the database gives out.
_FIRST = 2**40


class ReadingStore:
    """What another store holds, without a way to change it.

    Args:
        store: the database, opened for reading; closed with this one.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._next_ids: dict[IdKind, int] = {}

    @property
    def is_shared(self) -> bool:
        """See ``Store.is_shared``: somebody else writes."""
        return True

    def load(self) -> Loaded:
        """See ``Store.load``."""
        return self._store.load()

    def reserve(self, kind: IdKind, count: int) -> int:
        """See ``Store.reserve``. They are good for dry runs alone, and the database is not asked."""
        first = self._next_ids.get(kind, _FIRST)
        self._next_ids[kind] = first + count
        return first

    def commit(self, items: Sequence[Item]) -> Committed:
        """See ``Store.commit``.

        Raises:
            Unavailable: always.
        """
        return self._refuse()

    def changes(self) -> Sequence[Change]:
        """See ``Store.changes``. A SQLite file is seen as it was when it was loaded."""
        return self._store.changes()

    def evidence(self, *, uuid: bytes | None = None, newest: int = 20) -> list[EvidenceRow]:
        """See ``Store.evidence``."""
        return self._store.evidence(uuid=uuid, newest=newest)

    def document(self, number: int) -> bytes | None:
        """See ``Store.document``."""
        return self._store.document(number)

    def prune(self, *, older_than_s: float, max_bytes: int) -> int:
        """See ``Store.prune``. Nothing is deleted."""
        return 0

    def close(self) -> None:
        """See ``Store.close``."""
        self._store.close()

    @staticmethod
    def _refuse() -> Never:
        raise Unavailable("the database was opened for reading only; nothing was written")
