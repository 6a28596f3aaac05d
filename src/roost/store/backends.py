"""The one place that picks a store by its URL."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from roost.errors import BadSettings
from roost.model.settings import roost_settings as model_settings
from roost.ports import Store
from roost.store.reader import ReadingStore
from roost.store.sqlite import file
from roost.store.sqlite.file import FileLock, create, make_folder, size_of, upgrade_file
from roost.store.sqlite.follower import SqliteFollower
from roost.store.sqlite.store import SqliteStore

_DEFAULTS = model_settings.Store()
_POSTGRESQL = ("postgresql://", "postgres://")


def open_store(url_or_path: str | Path, *, settings: model_settings.Store) -> Store:
    """Open a database for serving; an absent or empty one gets its tables.

    Args:
        url_or_path: ``postgresql://…``, ``sqlite:///path``, or a path.
        settings: how durable a commit is.

    Raises:
        StoreBusy: another process serves this SQLite file.
        StoreOutdated: run the command that the message names.
        StoreBroken: it is read-only, corrupt, or not a database of ours.
        Unavailable: PostgreSQL does not answer.
    """
    url = str(url_or_path)
    if is_postgresql(url):
        with needs_extra():
            from roost.store.postgresql.store import PostgresStore
        return PostgresStore(url, settings=settings)
    return SqliteStore(sqlite_path(url), synchronous=settings.synchronous)


def open_reader(url_or_path: str | Path, *, settings: model_settings.Store = _DEFAULTS) -> Store:
    """Open a database for reading beside the processes that serve it; it must be there.

    Args:
        url_or_path: as for ``open_store``.
        settings: how long is waited for PostgreSQL.

    Raises:
        StoreOutdated: run the command that the message names.
        StoreBroken: it does not exist, is corrupt, or is not a database of ours.
        Unavailable: PostgreSQL does not answer.
    """
    url = str(url_or_path)
    if is_postgresql(url):
        with needs_extra():
            from roost.store.postgresql.store import PostgresStore
        return ReadingStore(PostgresStore(url, may_create=False, settings=settings))
    return ReadingStore(SqliteStore.open_reader(sqlite_path(url)))


def open_follower(url_or_path: str | Path, *, settings: model_settings.Store = _DEFAULTS) -> ReadingStore:
    """Open the same for a process that forks, and sees what others commit; its children call ``ReadingStore.fix``."""
    url = str(url_or_path)
    if is_postgresql(url):
        with needs_extra():
            from roost.store.postgresql.store import PostgresStore
        return ReadingStore(PostgresStore(url, may_create=False, settings=settings))
    return ReadingStore(SqliteFollower(sqlite_path(url)))


def upgrade(url_or_path: str | Path, *, settings: model_settings.Store = _DEFAULTS) -> None:
    """Bring a database to the schema of this program; it must not be served meanwhile."""
    url = str(url_or_path)
    if is_postgresql(url):
        with needs_extra():
            from roost.store.postgresql import prepare
        prepare.upgrade(url, settings=settings)
    else:
        upgrade_file(sqlite_path(url))


def sync(url_or_path: str | Path, *, settings: model_settings.Store = _DEFAULTS) -> None:
    """Bring a database to the schema of this program; an absent or empty one gets its tables."""
    url = str(url_or_path)
    if is_postgresql(url):
        upgrade(url, settings=settings)
        return
    path = sqlite_path(url)
    if size_of(path):
        upgrade_file(path)
        return
    make_folder(path)
    lock = FileLock(path)
    try:
        create(path)
    finally:
        lock.release()


def stamp(url_or_path: str | Path, version: str) -> None:
    """Say that a database has a schema, without looking whether it has.

    Raises:
        NotFound: there is no such version.
        StoreBusy: a process serves the SQLite file.
        Unavailable: the database cannot be written.
    """
    url = str(url_or_path)
    if is_postgresql(url):
        with needs_extra():
            from roost.store.postgresql import link as postgresql_link
            from roost.store.postgresql.upgrade import stamp_postgresql  # slow to import
        with postgresql_link.explained():
            stamp_postgresql(url, version)
        return
    from roost.store.sqlite.upgrade import stamp_sqlite  # slow to import

    path = sqlite_path(url)
    lock = FileLock(path)
    try:
        with file.explained(path):
            stamp_sqlite(path, version)
    finally:
        lock.release()


def exists(url_or_path: str | Path) -> bool:
    """Say whether there is a database at all; whether a server has one is not asked."""
    url = str(url_or_path)
    return is_postgresql(url) or size_of(sqlite_path(url)) is not None


def version_of(url_or_path: str | Path) -> str | None:
    """Return the schema of a database; None: it has no tables of ours.

    Raises:
        StoreBroken: it does not exist, or is not a database of ours.
        Unavailable: PostgreSQL does not answer.
    """
    url = str(url_or_path)
    if is_postgresql(url):
        with needs_extra():
            from roost.store.postgresql import prepare
        return prepare.version_of(url)
    return file.version_of(sqlite_path(url))


@contextmanager
def needs_extra() -> Iterator[None]:
    """Say what to install where an import fails that only PostgreSQL needs."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise BadSettings("store.url", f"PostgreSQL needs {error.name}: install roost[postgresql]") from None


def is_postgresql(url: str) -> bool:
    """Say whether a URL names a PostgreSQL database."""
    return url.startswith(_POSTGRESQL)


def sqlite_path(url: str) -> Path:
    """Return the file of a SQLite URL or path."""
    if url.startswith("sqlite:///"):
        return Path(url.removeprefix("sqlite:///"))
    if "://" in url:
        raise BadSettings(
            "store.url", f"is neither a path nor a URL of postgresql or sqlite: {url.partition(':')[0]}://…"
        )
    return Path(url)
