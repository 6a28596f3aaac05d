"""Opening a SQLite file: who may, what it must look like, and what its errors mean."""

import fcntl
import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from roost.errors import StoreBroken, StoreBusy, Unavailable
from roost.store.rules.schema import SCHEMA_VERSION, check_version

# Checkpoints own the slowest commits: rare ones give the better median and, up to 10,000 claims a second,
# the better 90th percentile. 8,000 pages are 16 MB of log.
_AUTOCHECKPOINT_PAGES = 8000
_CACHE_KIB = 65536
_BUSY_TIMEOUT_S = 5.0


class FileLock:
    """The right to serve one database file, held as long as the process lives."""

    def __init__(self, path: Path) -> None:
        """Take it.

        Raises:
            StoreBusy: another process has it.
            StoreBroken: the folder cannot be written.
        """
        beside = self._beside = path.absolute().with_name(path.name + ".lock")
        try:
            self._file = os.open(beside, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StoreBroken(f"{path} cannot be served: {beside}: {error.strerror}") from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._file)
            raise StoreBusy(
                f"{path} is served by another process: SQLite serves one at a time, "
                "use a PostgreSQL database (store.url) for several"
            ) from None

    def is_in_place(self) -> bool:
        """Say whether the file that is locked still is the one that others would lock."""
        held = os.fstat(self._file)
        return (held.st_dev, held.st_ino) == identity_of(self._beside)

    def release(self) -> None:
        """Give it back. The file stays: deleting it would let two processes lock two files of one name."""
        os.close(self._file)


@contextmanager
def translate_errors(path: Path) -> Iterator[None]:
    """Turn errors of SQLite into ours."""
    try:
        yield
    except sqlite3.Error as error:
        raise _explain(path, error) from error
    except UnicodeDecodeError as error:  # SQLite's own words are those of the file, where its schema is damaged.
        raise StoreBroken(f"{path} is corrupt: {error}") from error


def _explain(path: Path, error: sqlite3.Error) -> Unavailable:
    match getattr(error, "sqlite_errorcode", 0) & 0xFF:
        case sqlite3.SQLITE_FULL:
            return StoreBroken(f"{path}: no space left for the database: nothing was written")
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return StoreBusy(f"{path} is locked by another program")
        case sqlite3.SQLITE_READONLY:
            return StoreBroken(f"{path} or its folder is read-only")
        case sqlite3.SQLITE_NOTADB:
            return StoreBroken(f"{path} is not a database")
        case sqlite3.SQLITE_CORRUPT:
            return StoreBroken(f"{path} is corrupt: {error}")
        case _:
            return StoreBroken(f"{path}: {error}")


def size_of(path: Path) -> int | None:
    """Return the bytes of a database file; None: there is none.

    Raises:
        StoreBroken: something else is in its place, or its folder cannot be entered.
    """
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    except NotADirectoryError:
        return None  # A file is where the folder should be.
    except OSError as error:
        raise StoreBroken(f"{path} cannot be opened: {error.strerror}") from None
    # A pipe would be waited for until somebody writes into it.
    if not stat.S_ISREG(found.st_mode):
        raise StoreBroken(f"{path} is not a file")
    return found.st_size


def identity_of(path: Path) -> tuple[int, int] | None:
    """Return what tells a file from another one of the same path; None: there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def make_folder(path: Path) -> None:
    """Make the folder of a database that is to be created."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise StoreBroken(f"{path} cannot be created: a file is where its folder should be") from None
    except OSError as error:
        raise StoreBroken(f"{path} cannot be created: {error.strerror}") from None


def create(path: Path) -> None:
    """Make a new, empty database with all tables, complete or not at all."""
    from roost.store.sqlite.upgrade import upgrade_sqlite  # slow to import, and only needed once

    fresh = path.with_name(path.name + ".new")
    try:
        fresh.unlink(missing_ok=True)
        try:
            with translate_errors(path):
                fresh.touch(mode=0o600)  # The files that SQLite puts beside it are as private.
                upgrade_sqlite(fresh)
        except BaseException:
            fresh.unlink(missing_ok=True)
            raise
        fresh.replace(path)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        raise StoreBroken(f"{path} cannot be created: {error.filename or fresh}: {error.strerror}") from None


def open_writer(path: Path, *, synchronous: str) -> sqlite3.Connection:
    """Open a database of our schema for reading and writing.

    Raises:
        StoreBroken: it is read-only or not a database.
        StoreOutdated: its schema is older or newer than ours.
    """
    if not all(os.access(each, os.W_OK, effective_ids=True) for each in (path, path.parent)):
        raise StoreBroken(f"{path} or its folder is read-only")
    with translate_errors(path):
        connection = _connect(f"{path.absolute().as_uri()}?mode=rw")
        try:
            _check(connection, path)
            # Before anything was written in it: a read-only file is noticed here.
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute(f"PRAGMA synchronous = {synchronous}")
            connection.execute(f"PRAGMA wal_autocheckpoint = {_AUTOCHECKPOINT_PAGES}")
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("ROLLBACK")
        except BaseException:
            connection.close()
            raise
    return connection


def open_reader(path: Path) -> sqlite3.Connection:
    """Open a database of our schema for reading, beside the process that serves it."""
    if size_of(path) is None:
        raise StoreBroken(f"{path} does not exist")
    with translate_errors(path):
        uri = f"{path.absolute().as_uri()}?mode=ro"
        has_log = path.with_name(path.name + "-wal").exists()
        if not has_log and not os.access(path.parent, os.W_OK, effective_ids=True):
            uri += "&immutable=1"  # Nobody can write it, and a log beside it could not be made.
        connection = _connect(uri)
        try:
            _check(connection, path)
        except BaseException:
            connection.close()
            raise
    return connection


def _connect(uri: str) -> sqlite3.Connection:
    # isolation_level None: transactions are begun and ended here, and nowhere behind our back.
    connection = sqlite3.connect(
        uri, uri=True, isolation_level=None, timeout=_BUSY_TIMEOUT_S, cached_statements=256, check_same_thread=False
    )
    try:
        connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
        connection.execute("PRAGMA foreign_keys = OFF")
    except BaseException:
        connection.close()
        raise
    return connection


def version_of(path: Path) -> str | None:
    """Return the schema of a database; None: it is an empty file.

    Raises:
        StoreBroken: it does not exist, or is not a database of ours.
    """
    if not size_of(path):
        if size_of(path) is None:
            raise StoreBroken(f"{path} does not exist")
        return None
    with translate_errors(path):
        connection = _connect(f"{path.absolute().as_uri()}?mode=ro")
        try:
            return _version(connection, path)
        finally:
            connection.close()


def _check(connection: sqlite3.Connection, path: Path) -> None:
    check_version(_version(connection, path), str(path))


def _version(connection: sqlite3.Connection, path: Path) -> str | None:
    names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if "alembic_version" not in names:
        raise StoreBroken(f"{path} is a database, but not one of roost")
    row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    return None if row is None else str(row[0])


def upgrade_file(path: Path) -> None:
    """Run the missing migrations on a file that nobody serves.

    Raises:
        StoreBusy: somebody serves it.
        StoreBroken: it does not exist, is read-only, or not a database of ours.
    """
    from roost.store.sqlite.upgrade import upgrade_sqlite  # slow to import

    if size_of(path) is None:
        raise StoreBroken(f"{path} does not exist")
    lock = FileLock(path)
    try:
        with translate_errors(path):
            connection = _connect(f"{path.absolute().as_uri()}?mode=rw")
            try:
                found = _version(connection, path)
            finally:
                connection.close()
            if found is None or found < SCHEMA_VERSION:
                upgrade_sqlite(path)
            else:
                check_version(found, str(path))
    finally:
        lock.release()
