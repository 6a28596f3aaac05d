"""MariaDB as a kind of database: a server, or a Galera cluster, for several processes."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from typing import Any

from roost.engine.fill.table_columns import Part
from roost.model.settings.roost_settings import Store as Settings
from roost.ports import LiveWriter
from roost.store import database
from roost.store.column_file.file_layout import ColumnBase
from roost.store.mariadb import backup, bulk_reader, history, link
from roost.store.mariadb.connection import LABEL, Connection, Duplicate, translate_errors
from roost.store.mariadb.script import fill_in
from roost.store.mariadb.store import PUT_UPKEEP, MariaStore
from roost.store.mariadb.versions import heartbeats, prepare
from roost.store.reader import ReadingStore
from roost.store.rules.schema import Schema

_SIZE = (
    "SELECT coalesce(sum(DATA_LENGTH + INDEX_LENGTH), 0) FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE()"
)


class MariaDatabase(database.Database):
    """A MariaDB database, at a URL as of SQLAlchemy."""

    kind = "mariadb"

    @property
    def label(self) -> str:
        """A fixed text: the URL may hold a password."""
        return LABEL

    def open_store(self, settings: Settings) -> MariaStore:
        """See ``Database``."""
        return MariaStore(self.url, settings=settings)

    def open_reader(self, settings: Settings) -> ReadingStore:
        """See ``Database``."""
        return ReadingStore(MariaStore(self.url, may_create=False, settings=settings))

    def open_follower(self, settings: Settings) -> ReadingStore:
        """See ``Database``."""
        return self.open_reader(settings)

    def exists(self) -> bool:
        """See ``Database``."""
        return True

    def schema(self) -> Schema:
        """See ``Database``."""
        return prepare.schema_of(self.url)

    def live_writers(self) -> list[LiveWriter]:
        """See ``Database``."""
        with translate_errors(), closing(link.connect(self.url)) as connection:
            return heartbeats.live_writers(connection)

    def expand(self, settings: Settings) -> None:
        """See ``Database``."""
        prepare.expand(self.url, settings=settings)

    def upgrade(self, settings: Settings) -> None:
        """See ``Database``."""
        prepare.upgrade(self.url, settings=settings)

    def sync(self, settings: Settings) -> None:
        """See ``Database``."""
        self.upgrade(settings)

    def stamp(self, version: str) -> None:
        """See ``Database``."""
        with translate_errors():
            prepare.stamp_mariadb(self.url, version)

    def read_backup(self) -> AbstractContextManager[database.BackupReader]:
        """See ``Database``."""
        return backup.read_backup(self.url)

    def replace(self) -> AbstractContextManager[database.BackupWriter]:
        """See ``Database``."""
        return backup.replace_content(self.url)

    def write_snapshot(self) -> bool:
        """See ``Database``."""
        return history.write_snapshot(self.url)

    def load_columns(self) -> tuple[ColumnBase, Iterator[Part]]:
        """See ``Database``."""
        return history.load_columns(self.url)

    @contextmanager
    def read_query(self) -> Iterator[database.Query]:
        """See ``Database``."""
        with translate_errors(), closing(link.connect(self.url)) as connection:
            connection.execute("SET SESSION TRANSACTION READ ONLY")
            yield _query_of(connection)

    def size_bytes(self, query: database.Query) -> int:
        """See ``Database``."""
        ((size,),) = query(_SIZE)
        return int(size)

    def put_upkeep(self, values: tuple[str, float, int, int]) -> None:
        """See ``Database``."""
        with translate_errors(), closing(link.connect(self.url)) as connection:
            connection.execute(fill_in(PUT_UPKEEP, values))

    @contextmanager
    def write(self) -> Iterator[database.Execute]:
        """See ``Database``."""
        with translate_errors(), closing(link.connect(self.url)) as connection:
            connection.execute("START TRANSACTION")

            def execute(text: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
                try:
                    with translate_errors():
                        return list(connection.execute(fill_in(text.replace(database.IF_NEW, ""), values)).rows)
                except Duplicate:
                    if database.IF_NEW in text:
                        return []  # The error has undone this statement only.
                    raise

            yield execute
            connection.execute("COMMIT")

    @contextmanager
    def audit_query(self) -> Iterator[database.Query]:
        """See ``Database``."""
        prepare.prepare_database(self.url, may_create=False)
        reader = bulk_reader.connect_reader(self.url, deadline_s=link.DEFAULTS.bulk_deadline_s)
        with translate_errors(), closing(reader) as connection:
            yield _query_of(connection)


def _query_of(connection: Connection) -> database.Query:
    def query(text: str) -> list[tuple[Any, ...]]:
        return list(connection.execute(text, is_synced=True).rows)

    return query
