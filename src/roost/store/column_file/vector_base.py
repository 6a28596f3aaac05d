"""A database on a server for column files: its changes are a vector."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from roost.model.writes import Change
from roost.store.column_file.cached_load import BYTES_SINCE
from roost.store.column_file.file_layout import ColumnBase
from roost.store.column_file.token_rows import find_token
from roost.store.rules.feed.known_changes import FeedRow, KnownChanges
from roost.store.rules.feed.stale_state import ChangesLost
from roost.store.rules.vector import Vector


class VectorView:
    """See ``DatabaseView``.

    Args:
        query: returns the rows of a query, all as of one moment.
        read_beyond: returns all changes beyond a vector, all new writers, and the last known change of each writer, by
            writer and number; None: writers are missing.
        vector: the changes in the database at that moment.
        position: of the newest one.
        schema: of the database.
        epoch: of the database.
    """

    def __init__(
        self,
        query: Callable[[str], Sequence[tuple[Any, ...]]],
        read_beyond: Callable[[Vector], Iterable[FeedRow] | None],
        *,
        vector: Vector,
        position: int,
        schema: str | None,
        epoch: int,
    ) -> None:
        self._query = query
        self._read_beyond = read_beyond
        self.vector = vector
        self.base = ColumnBase(
            position=position,
            schema=schema or "",
            epoch=epoch,
            vector=vector.to_text(),
            closed=dict(vector.closed),
        )

    def has_token(self, token: str) -> bool:
        """See ``DatabaseView``."""
        return bool(self._query(find_token(token)))

    def bytes_since(self, base: ColumnBase) -> int:
        """See ``DatabaseView``."""
        ((size,),) = self._query(BYTES_SINCE.format(base.position))
        return int(size)

    def changes_since(self, base: ColumnBase) -> list[Change] | None:
        """See ``DatabaseView``. The rows show whether changes since, or some of the base, are missing."""
        vector = Vector.from_text(base.vector)
        known = KnownChanges(Vector(vector.high, vector.last, base.closed))
        rows = self._read_beyond(known.vector)
        if rows is None:
            return None
        try:
            changes = known.extend(rows, high=self.vector.high, is_compared=True)
        except ChangesLost:
            return None
        return changes if known.vector == self.vector else None
