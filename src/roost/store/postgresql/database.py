"""PostgreSQL as a kind of database: a server that several processes share."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any

import psycopg

from roost.engine.fill.table_columns import Part
from roost.errors import StoreBroken
from roost.model.settings.roost_settings import Store as Settings
from roost.ports import LiveWriter
from roost.store import database
from roost.store.column_file.file_layout import ColumnBase
from roost.store.postgresql import backup, history, link
from roost.store.postgresql.connection import LABEL
from roost.store.postgresql.store import PostgresStore
from roost.store.postgresql.versions import heartbeats, prepare
from roost.store.postgresql.versions.read_schema import read_schema
from roost.store.reader import ReadingStore
from roost.store.rules.schema import HEARTBEATS_FROM, Schema, put_upkeep


class PostgresDatabase(database.Database):
    """A PostgreSQL database, at a URL of libpq."""

    kind = "postgresql"

    @property
    def label(self) -> str:
        """A fixed text: the URL may hold a password."""
        return LABEL

    def open_store(self, settings: Settings) -> PostgresStore:
        """See ``Database``."""
        return PostgresStore(self.url, settings=settings)

    def open_reader(self, settings: Settings) -> ReadingStore:
        """See ``Database``."""
        return ReadingStore(PostgresStore(self.url, may_create=False, settings=settings))

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
        with link.translate_errors(), link.connect(self.url, application_name="roost survey") as connection:
            version = read_schema(connection).version or ""
            return heartbeats.live_writers(connection, has_heartbeats=version >= HEARTBEATS_FROM)

    def upgrade(self, settings: Settings) -> None:
        """See ``Database``."""
        prepare.upgrade(self.url, settings=settings)

    def expand(self, settings: Settings) -> None:
        """See ``Database``."""
        prepare.expand(self.url, settings=settings)

    def sync(self, settings: Settings) -> None:
        """See ``Database``."""
        self.upgrade(settings)

    def stamp(self, version: str) -> None:
        """See ``Database``."""
        from roost.store.postgresql.versions.upgrade import stamp_postgresql  # slow to import

        with link.translate_errors():
            stamp_postgresql(self.url, version)

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
        with link.translate_errors(), link.connect(self.url, application_name="roost survey") as connection:
            connection.read_only = True

            def query(text: str) -> list[tuple[Any, ...]]:
                return connection.execute(text.encode()).fetchall()

            yield query

    def size_bytes(self, query: database.Query) -> int:
        """See ``Database``."""
        ((size,),) = query("SELECT pg_database_size(current_database())")
        return int(size)

    def put_upkeep(self, values: tuple[str, float, int, int]) -> None:
        """See ``Database``."""
        with link.translate_errors(), link.connect(self.url, application_name="roost upkeep") as connection:
            connection.execute(put_upkeep("%s").encode(), values)

    @contextmanager
    def write(self) -> Iterator[database.Execute]:
        """See ``Database``."""
        connect = partial(link.connect, application_name="roost upkeep")
        with link.translate_errors(), connect(self.url) as connection, connection.transaction():

            def execute(text: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
                cursor = connection.execute(text.replace("?", "%s").encode(), values)
                return cursor.fetchall() if cursor.description else []

            yield execute

    @contextmanager
    def audit_query(self) -> Iterator[database.Query]:
        """See ``Database``."""
        prepare.prepare_database(self.url, may_create=False)
        try:
            with psycopg.connect(self.url) as connection:
                connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
                connection.read_only = True

                def query(text: str) -> Iterator[tuple[Any, ...]]:
                    with connection.cursor("audit") as cursor:
                        yield from cursor.execute(text.encode())

                yield query
        except psycopg.errors.UndefinedTable as error:
            raise StoreBroken(f"{LABEL} is not one of roost") from error
        except psycopg.Error as error:
            raise link.connection_error(error) from None
