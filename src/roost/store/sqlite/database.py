"""SQLite as a kind of database: one file."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path

from roost.engine.fill.table_columns import Part
from roost.errors import BadRequest, StoreCorrupt
from roost.model.settings.roost_settings import Store as Settings
from roost.ports import LiveWriter
from roost.store import database
from roost.store.column_file.file_layout import ColumnBase
from roost.store.column_file.file_place import place_beside
from roost.store.reader import ReadingStore
from roost.store.rules.schema import Schema, put_upkeep
from roost.store.sqlite import backup, file, history
from roost.store.sqlite.follower import SqliteFollower
from roost.store.sqlite.store import SqliteStore


class SqliteDatabase(database.Database):
    """A SQLite file, at ``sqlite:///path`` or a plain path."""

    kind = "sqlite"

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.path = Path(url.removeprefix("sqlite:///"))

    @property
    def label(self) -> str:
        """The path."""
        return str(self.path)

    def open_store(self, settings: Settings) -> SqliteStore:
        """See ``Database``."""
        return SqliteStore(self.path, synchronous=settings.synchronous, columns=place_beside(self.path, settings))

    def open_reader(self, settings: Settings) -> ReadingStore:
        """See ``Database``."""
        return ReadingStore(SqliteStore.open_reader(self.path, columns=place_beside(self.path, settings)))

    def open_follower(self, settings: Settings) -> ReadingStore:
        """See ``Database``."""
        return ReadingStore(SqliteFollower(self.path, columns=place_beside(self.path, settings)))

    def exists(self) -> bool:
        """See ``Database``."""
        return file.size_of(self.path) is not None

    def schema(self) -> Schema:
        """See ``Database``."""
        return file.schema_of(self.path)

    def live_writers(self) -> list[LiveWriter]:
        """See ``Database``."""
        return []

    def upgrade(self, settings: Settings) -> None:
        """See ``Database``."""
        file.upgrade_file(self.path)

    def expand(self, settings: Settings) -> None:
        """See ``Database``."""
        raise BadRequest("a SQLite file has one server: stop it, run `roost db upgrade`, and start the new one")

    def sync(self, settings: Settings) -> None:
        """See ``Database``."""
        if file.size_of(self.path):
            file.upgrade_file(self.path)
            return
        file.make_folder(self.path)
        lock = file.FileLock(self.path)
        try:
            file.create(self.path)
        finally:
            lock.release()

    def stamp(self, version: str) -> None:
        """See ``Database``."""
        from roost.store.sqlite.upgrade import stamp_sqlite  # slow to import

        lock = file.FileLock(self.path)
        try:
            with file.translate_errors(self.path):
                stamp_sqlite(self.path, version)
        finally:
            lock.release()

    def read_backup(self) -> AbstractContextManager[database.BackupReader]:
        """See ``Database``."""
        return backup.read_backup(self.path)

    def replace(self) -> AbstractContextManager[database.BackupWriter]:
        """See ``Database``."""
        return backup.replace_content(self.path)

    def write_snapshot(self) -> bool:
        """See ``Database``."""
        return history.write_snapshot(self.path)

    def load_columns(self) -> tuple[ColumnBase, Iterator[Part]]:
        """See ``Database``."""
        return history.load_columns(self.path)

    @contextmanager
    def read_query(self) -> Iterator[database.Query]:
        """See ``Database``."""
        with closing(file.open_reader(self.path)) as connection, file.translate_errors(self.path):
            yield connection.execute

    def size_bytes(self, query: database.Query) -> int:
        """See ``Database``."""
        log = self.path.with_name(self.path.name + "-wal")
        return (file.size_of(self.path) or 0) + (file.size_of(log) or 0)

    def put_upkeep(self, values: tuple[str, float, int, int]) -> None:
        """See ``Database``."""
        with (
            closing(file.open_writer(self.path, synchronous="NORMAL")) as connection,
            file.translate_errors(self.path),
        ):
            connection.execute(put_upkeep("?"), values)

    @contextmanager
    def write(self) -> Iterator[database.Execute]:
        """See ``Database``."""
        with (
            closing(file.open_writer(self.path, synchronous="NORMAL")) as connection,
            file.translate_errors(self.path),
        ):
            connection.execute("BEGIN IMMEDIATE")
            yield lambda text, values: connection.execute(text, values).fetchall()
            connection.execute("COMMIT")

    @contextmanager
    def audit_query(self) -> Iterator[database.Query]:
        """See ``Database``."""
        with closing(file.open_reader(self.path)) as connection, file.translate_errors(self.path):
            connection.execute("BEGIN")
            # Pages that no check reads may be broken, too. One problem is enough to distrust the rest.
            (problem,) = connection.execute("PRAGMA quick_check(1)").fetchone()
            if problem != "ok":
                raise StoreCorrupt(f"{self.path} is corrupt: {problem.splitlines()[-1]}")
            yield connection.execute
