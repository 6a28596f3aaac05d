"""The interface of a kind of database: opening, schema version, backup, snapshot and audit."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, ClassVar, Protocol

import msgspec

from roost.engine.fill.table_columns import Part
from roost.model.settings.roost_settings import Store as Settings
from roost.ports import LiveWriter, Store
from roost.store.column_file.file_layout import ColumnBase
from roost.store.column_file.write_columns import write_columns
from roost.store.reader import ReadingStore
from roost.store.rules.schema import Schema, Table

# Executes a query of the audit, and returns its rows.
Query = Callable[[str], Iterable[tuple[Any, ...]]]
# Executes a statement with ``?`` for each of its values, and returns its rows.
Execute = Callable[[str, tuple[Any, ...]], list[tuple[Any, ...]]]
# The end of an insertion that does nothing if the row exists; it returns a row if it was inserted.
IF_NEW = " ON CONFLICT DO NOTHING"


class DatabaseStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The schema of a database, and the live processes."""

    schema: str | None  # None: it has no tables of Roost
    readable_from: str  # the oldest program that may serve it, by its newest schema; empty: any
    program_schema: str  # the newest schema of this program
    processes: list[dict[str, Any]]  # the fields of ``LiveWriter``


class BackupReader(Protocol):
    """The content of a database at one moment, for a backup."""

    def position(self) -> int:
        """Return the position of the newest change."""

    def count(self, table: Table) -> int:
        """Return the number of rows of a table."""

    def rows(self, table: Table) -> Iterable[tuple[Any, ...]]:
        """Return the rows of a table, with their columns in the order of the table."""


class BackupWriter(Protocol):
    """One transaction that replaces the content of a database."""

    def is_empty(self) -> bool:
        """Return whether the database has no content worth keeping."""

    def clear(self) -> None:
        """Delete all rows."""

    def write(self, table: Table, rows: list[tuple[Any, ...]]) -> None:
        """Add rows."""

    def finish(self, position: int) -> None:
        """Advance identities and positions beyond all used ones of this database and of the backup.

        Args:
            position: of the newest change in the backup.
        """


class Database(ABC):
    """A database at a URL. A new kind is a subclass in its own folder, and an entry in ``backends``.

    Args:
        url: as in the setting ``store.url``.
    """

    kind: ClassVar[str]  # the name of the kind in backups

    def __init__(self, url: str) -> None:
        self.url = url

    @property
    @abstractmethod
    def label(self) -> str:
        """The database in messages, without a password."""

    @abstractmethod
    def open_store(self, settings: Settings) -> Store:
        """Open it for serving; see ``backends.open_store``."""

    @abstractmethod
    def open_reader(self, settings: Settings) -> ReadingStore:
        """Open it for reading; see ``backends.open_reader``."""

    @abstractmethod
    def open_follower(self, settings: Settings) -> ReadingStore:
        """Open it for a process that forks; see ``backends.open_follower``."""

    @abstractmethod
    def exists(self) -> bool:
        """Return whether the database exists; always true on a server."""

    @abstractmethod
    def schema(self) -> Schema:
        """Return its schema.

        Raises:
            StoreBroken: it does not exist, or is not a database of Roost.
            Unavailable: it cannot be read.
        """

    @abstractmethod
    def live_writers(self) -> list[LiveWriter]:
        """Return the live processes, oldest first; empty for a kind of database with one process.

        Raises:
            Unavailable: it cannot be read.
        """

    @abstractmethod
    def upgrade(self, settings: Settings) -> None:
        """Upgrade it to the schema of this program; no process of an older program may serve it meanwhile."""

    @abstractmethod
    def expand(self, settings: Settings) -> None:
        """Make the part of the upgrade without effects on processes of the version before.

        Raises:
            BadRequest: a database of this kind has one process.
            StoreOutdated: another upgrade comes first.
        """

    @abstractmethod
    def sync(self, settings: Settings) -> None:
        """Upgrade it, or create its tables."""

    @abstractmethod
    def stamp(self, version: str) -> None:
        """Record a schema version without checking it; see ``backends.stamp``."""

    @abstractmethod
    def read_backup(self) -> AbstractContextManager[BackupReader]:
        """Read its rows as of one moment."""

    @abstractmethod
    def replace(self) -> AbstractContextManager[BackupWriter]:
        """Replace its rows in one transaction."""

    @abstractmethod
    def write_snapshot(self) -> bool:
        """Write a snapshot in this process; return False if none is needed, or another process writes one.

        Raises:
            Unavailable: the database cannot be used.
        """

    @abstractmethod
    def load_columns(self) -> tuple[ColumnBase, Iterator[Part]]:
        """Return the content for a column file, as of one moment."""

    def write_column_file(self, path: Path) -> bool:
        """Write its column file in this process; return False if another process writes it.

        Raises:
            ColumnFileRefused, OSError: it cannot be written; the previous one stays.
            Unavailable: the database cannot be used.
        """
        return write_columns(path, load=self.load_columns, write=self.write)

    @abstractmethod
    def read_query(self) -> AbstractContextManager[Query]:
        """Yield a function that executes short queries, on a connection of its own.

        Raises:
            StoreBroken: it is not a database of Roost.
            Unavailable: it cannot be read.
        """

    @abstractmethod
    def size_bytes(self, query: Query) -> int:
        """Return its size, with its log.

        Args:
            query: of ``read_query``.
        """

    @abstractmethod
    def put_upkeep(self, values: tuple[str, float, int, int]) -> None:
        """Insert or replace a row of the table ``upkeep``; servers can keep running.

        Raises:
            Unavailable: it cannot be written.
        """

    @abstractmethod
    def write(self) -> AbstractContextManager[Execute]:
        """Yield a function that executes statements in one short transaction; servers can keep running.

        Raises:
            Unavailable: it cannot be written.
        """

    @abstractmethod
    def audit_query(self) -> AbstractContextManager[Query]:
        """Yield a function that executes queries, all as of one moment.

        Raises:
            StoreBroken: it is corrupt, or not a database of Roost.
            Unavailable: it cannot be read.
        """
