"""The content of a database from a column file and the changes since."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple, Protocol

import msgspec

from roost.engine.fill.table_columns import Part
from roost.model.writes import Change, Write
from roost.observe import log
from roost.store.column_file.file_layout import ColumnBase, ColumnFile, ColumnFileRefused, Header
from roost.store.column_file.file_place import open_private
from roost.store.rules.codec import UnknownChange

# Beyond a part of the file's size, or at most so many bytes, changes take more time than reading all rows.
_CHANGES_SHARE = 0.25
_CHANGES_MIN_BYTES = 2**18
_CHANGES_MAX_BYTES = 2**26
# Approximate on a server: a change may become visible after one with a higher position.
BYTES_SINCE = "SELECT coalesce(sum(length(body)), 0) FROM feed WHERE position > {}"


class DatabaseView(Protocol):
    """A database as of one moment."""

    @property
    def base(self) -> ColumnBase:
        """The changes in the database."""

    def has_token(self, token: str) -> bool:
        """Return whether the database has the token of a file."""

    def bytes_since(self, base: ColumnBase) -> int:
        """Return the approximate size of the changes since a base."""

    def changes_since(self, base: ColumnBase) -> list[Change] | None:
        """Return the changes since a base, in their order; None: some were deleted.

        Args:
            base: of an earlier moment.

        Raises:
            UnknownChange: a newer program wrote one.
        """


class CachedContent(NamedTuple):
    """The content of a column file, and the changes since."""

    parts: Iterator[Part]
    later: list[Write]


def read_cached(path: Path | None, view: DatabaseView) -> CachedContent | None:
    """Return the content of a database from its column file; None: read all rows.

    Args:
        path: of the file, which may be absent; None: no file is wanted.
    """
    if path is None:
        return None
    try:
        return _read(path, view)
    except (ColumnFileRefused, UnknownChange, OSError, msgspec.MsgspecError, ValueError) as problem:
        note_refusal(str(path), str(problem))
    return None


def note_refusal(path: str, reason: str) -> None:
    """Log that a column file is not used."""
    log.event("column_file_refused", path=path, reason=reason)


def _read(path: Path, view: DatabaseView) -> CachedContent | None:
    file = open_private(path)
    if file is None:
        return None
    with ExitStack() as opened:
        opened.enter_context(file)
        found = ColumnFile(file)
        _check_header(found.header, view)
        size = view.bytes_since(found.header.base)
        limit = min(max(found.size * _CHANGES_SHARE, _CHANGES_MIN_BYTES), _CHANGES_MAX_BYTES)
        if size > limit:
            raise ColumnFileRefused(f"the changes since have {size:,} bytes")
        changes = view.changes_since(found.header.base)
        if changes is None:
            raise ColumnFileRefused("changes since were deleted")
        found.check()
        opened.pop_all()
    return CachedContent(found.parts(), [write for change in changes for write in change.writes])


def _check_header(header: Header, view: DatabaseView) -> None:
    """Refuse a file of another program, another database, or another past of this database."""
    if header.is_foreign:
        raise ColumnFileRefused(f"Roost {header.program} wrote it")
    now = view.base
    if header.base.schema != now.schema:
        raise ColumnFileRefused(f"the database had schema {header.base.schema}")
    if header.base.epoch != now.epoch:
        raise ColumnFileRefused("the database was restored since")
    if not view.has_token(header.token):
        raise ColumnFileRefused("the database does not have its token")
    if header.base.position > now.position:
        raise ColumnFileRefused("the database lost changes since")
