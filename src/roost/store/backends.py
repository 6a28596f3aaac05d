"""The registry of databases: the only place that maps URLs to them."""

import re
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from roost.errors import BadSettings, extra_hint, missing_store
from roost.model.settings import roost_settings as model_settings
from roost.ports import Store
from roost.store.database import Database, DatabaseStatus
from roost.store.reader import ReadingStore
from roost.store.rules.schema import SCHEMA_VERSION

_DEFAULTS = model_settings.Store()


class Backend(NamedTuple):
    """A kind of database. Its driver is imported only when it is used."""

    name: str
    schemes: tuple[str, ...]  # prefixes of its URLs
    module: str
    class_name: str
    is_shared: bool  # whether several processes may serve one database
    extra: str = ""  # optional dependencies of Roost with the driver; empty: none


BACKENDS = (
    Backend(
        "PostgreSQL",
        ("postgresql://", "postgres://"),
        "roost.store.postgresql.database",
        "PostgresDatabase",
        is_shared=True,
        extra="postgresql",
    ),
    Backend(
        "MariaDB",
        ("mysql://", "mysql+pymysql://", "mariadb://", "mariadb+pymysql://"),
        "roost.store.mariadb.database",
        "MariaDatabase",
        is_shared=True,
        extra="mariadb",
    ),
    Backend("SQLite", ("sqlite:///",), "roost.store.sqlite.database", "SqliteDatabase", is_shared=False),
)
_FILE = BACKENDS[-1]
# A URL of a server with a wrong separator, such as postgresql:/db/roost. As a path, it would create a file.
_MISTYPED = re.compile(r"(postgres|postgresql|mysql|mariadb|sqlite)(\+\w+)?(:|//)", re.IGNORECASE)


def backend_of(url_or_path: str | Path) -> Backend:
    """Return the kind of a database; a plain path is a SQLite file.

    Raises:
        BadSettings: the URL is malformed, or of no known kind.
    """
    url = str(url_or_path)
    for backend in BACKENDS:
        if url.startswith(backend.schemes):
            return backend
    scheme, separator, _ = url.partition("://")
    if separator:
        problem = f"is neither a path nor a URL of postgresql, mysql or sqlite: {scheme}://…"
        plain = scheme.partition("+")[0]
        known = next((each for backend in BACKENDS for each in backend.schemes if each.startswith(f"{plain}://")), "")
        raise BadSettings("store.url", f"{problem}; write {known}…" if known else problem)
    if (mistyped := _MISTYPED.match(url)) is not None:
        kind = mistyped[1].lower()
        form = "sqlite:///PATH" if kind == "sqlite" else f"{kind}://USER:PASSWORD@HOST/DATABASE"
        raise BadSettings("store.url", f"is malformed: write {form}; a path with this beginning needs ./ before it")
    return _FILE


def database_at(url_or_path: str | Path) -> Database:
    """Return the database at a URL or path, without opening it.

    Raises:
        BadSettings: the URL is of no known kind, or the driver is not installed.
    """
    backend = backend_of(url_or_path)
    try:
        module = import_module(backend.module)
    except ModuleNotFoundError as error:
        if not backend.extra:
            raise
        problem = f"{backend.name} needs {error.name}: {extra_hint(backend.extra)}"
        raise BadSettings("store.url", problem) from None
    database: Database = getattr(module, backend.class_name)(str(url_or_path))
    return database


def is_shared(url_or_path: str | Path) -> bool:
    """Return whether several processes may serve a database."""
    return backend_of(url_or_path).is_shared


def open_store(url_or_path: str | Path, *, settings: model_settings.Store) -> Store:
    """Open a database for serving; an absent or empty one gets its tables.

    Args:
        url_or_path: ``postgresql://…``, ``mysql://…``, ``sqlite:///path``, or a path.
        settings: durability, deadlines and waits.

    Raises:
        StoreBusy: another process serves this SQLite file.
        StoreOutdated: the schema is older or newer than the program's; the message names the remedy.
        StoreBroken: the database is read-only, corrupt, or not one of Roost.
        Unavailable: the server does not answer.
    """
    return database_at(url_or_path).open_store(settings)


def open_reader(url_or_path: str | Path, *, settings: model_settings.Store = _DEFAULTS) -> ReadingStore:
    """Open an existing database for reading, beside the processes that serve it.

    Args:
        url_or_path: as for ``open_store``.
        settings: how long to wait for a server.

    Raises:
        StoreOutdated: the schema is older or newer than the program's; the message names the remedy.
        StoreBroken: the database does not exist, is corrupt, or is not one of Roost.
        Unavailable: the server does not answer.
    """
    return database_at(url_or_path).open_reader(settings)


def open_follower(url_or_path: str | Path, *, settings: model_settings.Store = _DEFAULTS) -> ReadingStore:
    """Open an existing database for a process that forks and follows the commits of other processes.

    Forked children call ``ReadingStore.fix``.
    """
    return database_at(url_or_path).open_follower(settings)


def upgrade(url_or_path: str | Path, *, settings: model_settings.Store = _DEFAULTS) -> None:
    """Upgrade a database to the schema of this program; no process of an older program may serve it meanwhile.

    Raises:
        StoreBusy: one serves it.
    """
    database_at(url_or_path).upgrade(settings)


def expand(url_or_path: str | Path, *, settings: model_settings.Store = _DEFAULTS) -> None:
    """Make the part of an upgrade without effects on processes of the version before.

    Raises:
        BadRequest: it is a SQLite file.
        StoreOutdated: another upgrade comes first.
        StoreBusy: a long statement locks a table.
        Unavailable: the server does not answer.
    """
    database_at(url_or_path).expand(settings)


def sync(url_or_path: str | Path, *, settings: model_settings.Store = _DEFAULTS) -> None:
    """Upgrade a database to the schema of this program; an absent or empty one gets its tables."""
    database_at(url_or_path).sync(settings)


def stamp(url_or_path: str | Path, version: str) -> None:
    """Record the schema version of a database without checking it.

    Raises:
        NotFound: no migration has this version.
        StoreBusy: a process serves the SQLite file.
        Unavailable: the database cannot be written.
    """
    database_at(url_or_path).stamp(version)


def exists(url_or_path: str | Path) -> bool:
    """Return whether a database exists; always true on a server."""
    return database_at(url_or_path).exists()


def has_tables(url_or_path: str | Path) -> bool:
    """Return whether a database exists and has the tables of Roost; an empty one has none yet.

    Raises:
        StoreMissing: a server has no such database.
        StoreBroken: it is of another program.
        Unavailable: it cannot be read.
    """
    database = database_at(url_or_path)
    return database.exists() and database.schema().version is not None


def require(url_or_path: str | Path) -> None:
    """Check that a database exists.

    Raises:
        StoreMissing: it does not.
    """
    database = database_at(url_or_path)
    if not database.exists():
        raise missing_store(database.label)


def status_of(url_or_path: str | Path) -> DatabaseStatus:
    """Return the schema of a database, and the live processes.

    Raises:
        StoreBroken: it does not exist, or is not one of Roost.
        Unavailable: the server does not answer.
    """
    database = database_at(url_or_path)
    found = database.schema()
    live = [] if found.version is None else database.live_writers()
    return DatabaseStatus(
        schema=found.version,
        readable_from=found.readable_from,
        program_schema=SCHEMA_VERSION,
        processes=[writer._asdict() for writer in live],
    )


def version_of(url_or_path: str | Path) -> str | None:
    """Return the schema version of a database; None: it has no tables of Roost.

    Raises:
        StoreBroken: it does not exist, or is not one of Roost.
        Unavailable: the server does not answer.
    """
    return database_at(url_or_path).schema().version
