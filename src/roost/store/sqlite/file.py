"""SQLite files: the lock, creation, opening, the schema check and the translation of errors."""

import fcntl
import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from roost.errors import StoreBroken, StoreBusy, StoreCorrupt, StoreMissing, Unavailable, empty_store, missing_store
from roost.store.rules.schema import READABLE_FROM, SCHEMA_VERSION, Schema, check_version

# Checkpoints cause the slowest commits. With rare checkpoints, the median time of commits is lower and, up to 10,000
# claims per second, the 90th percentile, too. 8,000 pages are 16 MB of log.
_AUTOCHECKPOINT_PAGES = 8000
_CACHE_KIB = 65536
_BUSY_TIMEOUT_S = 5.0


class FileLock:
    """The exclusive right to serve one database file, until release or the end of the process."""

    def __init__(self, path: Path) -> None:
        """Acquire the lock.

        Raises:
            StoreBusy: another process holds it.
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
                f"{path} is served by another process: stop it first, or use another file; "
                "several processes need a PostgreSQL or MariaDB database (store.url)"
            ) from None

    def is_in_place(self) -> bool:
        """Return whether the lock file at the path is still the locked one."""
        status = os.fstat(self._file)
        return (status.st_dev, status.st_ino) == identity_of(self._beside)

    def release(self) -> None:
        """Release the lock. The file stays: after a deletion, two processes could lock two files of the same name."""
        os.close(self._file)


@contextmanager
def translate_errors(path: Path) -> Iterator[None]:
    """Translate errors of SQLite to errors of Roost."""
    try:
        yield
    except sqlite3.Error as error:
        raise _explain(path, error) from error
    except UnicodeDecodeError as error:  # Messages of SQLite may quote a damaged schema.
        raise StoreCorrupt(f"{path} is corrupt: {error}") from error


def _explain(path: Path, error: sqlite3.Error) -> Unavailable:
    match getattr(error, "sqlite_errorcode", 0) & 0xFF:
        case sqlite3.SQLITE_FULL:
            return StoreBroken(f"{path}: no space left for the database: nothing was written")
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return StoreBusy(f"{path} is locked by another program")
        case sqlite3.SQLITE_READONLY:
            return StoreBroken(f"{path} or its folder is read-only")
        case sqlite3.SQLITE_NOTADB:
            return StoreCorrupt(f"{path} is not a database; name another file, or restore a backup")
        case sqlite3.SQLITE_CORRUPT:
            return StoreCorrupt(f"{path} is corrupt: {error}; restore a backup")
        case _:
            return StoreBroken(f"{path}: {error}")


def size_of(path: Path) -> int | None:
    """Return the size of a database file in bytes; None: it does not exist.

    Raises:
        StoreMissing: it is not a regular file, or its folder cannot be entered.
    """
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    except NotADirectoryError:
        return None  # A file is where the folder should be.
    except OSError as error:
        raise StoreMissing(f"{path} cannot be opened: {error.strerror}") from None
    # Opening a pipe would wait for a writer.
    if not stat.S_ISREG(found.st_mode):
        raise StoreMissing(f"{path} is not a file; name the file of a database, or its folder with --data")
    return found.st_size


def _require_file(path: Path) -> None:
    """Check the existence of a database, and this user's right to read it.

    Raises:
        StoreMissing: it does not exist, or cannot be read.
    """
    if size_of(path) is None:
        raise missing_store(str(path))
    if not os.access(path, os.R_OK, effective_ids=True):
        raise StoreMissing(f"{path} cannot be read: Permission denied; permit this user to read it")


def identity_of(path: Path) -> tuple[int, int] | None:
    """Return the identity of a file, regardless of its path; None: it does not exist."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def make_folder(path: Path) -> None:
    """Create the folder of a new database."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise StoreBroken(f"{path} cannot be created: a file is where its folder should be") from None
    except OSError as error:
        raise StoreBroken(f"{path} cannot be created: {error.strerror}") from None


def create(path: Path) -> None:
    """Create an empty database with all tables, atomically."""
    from roost.store.sqlite.upgrade import upgrade_sqlite  # slow to import, and needed only once

    fresh = path.with_name(path.name + ".new")
    try:
        fresh.unlink(missing_ok=True)
        try:
            with translate_errors(path):
                fresh.touch(mode=0o600)  # SQLite creates the files beside it with the same permissions.
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
    """Open a database for reading and writing.

    Raises:
        StoreBroken: it is read-only or not a database.
        StoreOutdated: its schema is older or newer than the program's.
    """
    if not all(os.access(each, os.W_OK, effective_ids=True) for each in (path, path.parent)):
        raise StoreBroken(f"{path} or its folder is read-only")
    with translate_errors(path):
        connection = _connect(f"{path.absolute().as_uri()}?mode=rw")
        try:
            _check(connection, path)
            # This is the first write: it detects a read-only file.
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
    """Open a database for reading, beside the process that serves it."""
    _require_file(path)
    with translate_errors(path):
        uri = f"{path.absolute().as_uri()}?mode=ro"
        has_log = path.with_name(path.name + "-wal").exists()
        if not has_log and not os.access(path.parent, os.W_OK, effective_ids=True):
            uri += "&immutable=1"  # No process can write it or create a log beside it.
        connection = _connect(uri)
        try:
            _check(connection, path)
        except BaseException:
            connection.close()
            raise
    return connection


def _connect(uri: str) -> sqlite3.Connection:
    # isolation_level None: the driver begins and ends no transaction by itself.
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


def schema_of(path: Path) -> Schema:
    """Return the schema of a database; an empty file has no version.

    Raises:
        StoreMissing: it does not exist.
        StoreBroken: it is not a database of Roost.
    """
    if not size_of(path):
        _require_file(path)
        return Schema(None)
    with translate_errors(path):
        connection = _connect(f"{path.absolute().as_uri()}?mode=ro")
        try:
            return _schema(connection, path)
        finally:
            connection.close()


def _check(connection: sqlite3.Connection, path: Path) -> None:
    found = _schema(connection, path)
    check_version(found.version, str(path), readable_from=found.readable_from)


def _schema(connection: sqlite3.Connection, path: Path) -> Schema:
    names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if not size_of(path):  # SQLite ignores the log of an empty file.
        raise empty_store(str(path))
    if "alembic_version" not in names:
        raise StoreBroken(f"{path} is a database, but not one of roost")
    row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    oldest = connection.execute(READABLE_FROM).fetchone() if "compatibility" in names else None
    return Schema(None if row is None else str(row[0]), "" if oldest is None else str(oldest[0]))


def upgrade_file(path: Path) -> None:
    """Run the missing migrations on a file that no process serves.

    Raises:
        StoreBusy: a process serves it.
        StoreBroken: it does not exist, is read-only, or is not a database of Roost.
    """
    from roost.store.sqlite.upgrade import upgrade_sqlite  # slow to import

    _require_file(path)
    lock = FileLock(path)
    try:
        with translate_errors(path):
            connection = _connect(f"{path.absolute().as_uri()}?mode=rw")
            try:
                found = _schema(connection, path)
            finally:
                connection.close()
            if found.version is None or found.version < SCHEMA_VERSION:
                upgrade_sqlite(path)
            else:
                check_version(found.version, str(path), readable_from=found.readable_from)
    finally:
        lock.release()
