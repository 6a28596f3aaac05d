"""The composition root: what picks implementations, by settings and by where things lie."""

import os
import typing
from collections.abc import Callable, Mapping
from pathlib import Path

from roost.api.placement.application import Application
from roost.api.placement.in_process import InProcess
from roost.api.placement.request import Identity
from roost.compat.adapter import adapt
from roost.compat.aliases import lend_names
from roost.engine.state import State
from roost.errors import BadRequest
from roost.machine import SystemClock
from roost.model.settings import Settings
from roost.placement.current import Current
from roost.placement.service import Placement
from roost.placement.serving import Serving
from roost.ports import Clock, Random, Store
from roost.product import Roost
from roost.settings import data_folder, find_settings, load_settings
from roost.store import opening
from roost.store.audit import Finding, audit
from roost.store.backup import backup, restore
from roost.store.dry import DryStore
from roost.store.memory import MemoryStore
from roost.store.opening import exists, is_postgresql, open_store, stamp, sync, upgrade, version_of

if typing.TYPE_CHECKING:
    from roost.compat.upstream import importing

__all__ = [
    "Roost",
    "audit",
    "audit_database",
    "audit_path",
    "backup",
    "database_of",
    "database_with",
    "exists",
    "import_placement",
    "open_in_process",
    "open_placement",
    "open_reader",
    "open_roost",
    "open_scratch",
    "restore",
    "settings_of",
    "stamp",
    "sync_database",
    "unstored",
    "upgrade_database",
    "version_of",
]

Progress = Callable[[int, int], None]  # done, in all
_DATABASE = "roost.db"
_IN_MEMORY = ("sqlite://", "sqlite:///:memory:", ":memory:")


def open_roost(
    config: Path | None = None, data: Path | None = None, *, environ: Mapping[str, str] | None = None,
    is_scratch: bool = False,
) -> Roost:  # fmt: skip
    """Open Roost with its settings and its database, created if it is absent.

    Args:
        config: the settings file; None: found by ``$ROOST_CONFIG`` and the usual places, or defaults.
        data: folder of the database; None: a database in memory, gone at the end. A PostgreSQL URL in the
            settings goes before either.
        environ: the environment; None: none.
        is_scratch: whether that URL is passed over, since what happens is not meant for a cloud in service.

    Raises:
        BadSettings: a setting is unknown or wrong.
        Unavailable: the database cannot be used; the message says why.
    """
    settings = settings_of(config, environ or {})
    store: Store
    if settings.store.url and not is_scratch:
        store = open_store(settings.store.url, settings=settings.store)
    elif data is None:
        store = MemoryStore()
    else:
        store = open_store(data / _DATABASE, settings=settings.store)
    return _served(store, settings)


def open_reader(config: Path | None, data: Path | None, *, environ: Mapping[str, str]) -> Roost:
    """Open the database that commands work on for reading, beside the processes that serve it.

    What would write is refused with ``Unavailable``; dry runs and forks are not.

    Raises:
        BadSettings: a setting is unknown or wrong.
        Unavailable: the database cannot be read; the message says why.
    """
    settings = settings_of(config, environ)
    return _served(opening.open_reader(database_of(config, data, environ)), settings)


def open_scratch(settings: Settings, data: Path | None, *, random: Random) -> Roost:
    """Open Roost for a trial: on a database in a folder, or in memory, whatever database the settings name.

    Raises:
        Unavailable: the database cannot be used; the message says why.
    """
    lend_names()
    store: Store = MemoryStore() if data is None else open_store(data / _DATABASE, settings=settings.store)
    return _served(store, settings, random=random)


def _served(store: Store, settings: Settings, *, random: Random | None = None) -> Roost:
    """Return a Roost on a store; where that fails, the store is closed again."""
    try:
        return Roost(store, settings, random=random)
    except BaseException:
        store.close()
        raise


def unstored(settings: Settings, *, clock: Clock, random: Random) -> Roost:
    """Return a Roost on an empty state, with no database behind it: nothing of it is stored anywhere."""
    store = DryStore(position=0, next_ids={})
    return Roost(store, settings, clock=clock, random=random, current=Current(store, state=State()))


def database_of(config: Path | None, data: Path | None, environ: Mapping[str, str]) -> str:
    """Return the URL or path of the database that commands work on."""
    return database_with(settings_of(config, environ), data, environ)


def database_with(settings: Settings, data: Path | None, environ: Mapping[str, str]) -> str:
    """Return the URL or path of the database that settings mean."""
    if settings.store.url:
        return settings.store.url
    return str(data_folder(None if data is None else str(data), environ, is_root=os.geteuid() == 0) / _DATABASE)


def upgrade_database(url: str) -> str:
    """Bring a database to this program's schema; return a sentence that says so."""
    upgrade(url)
    return f"{_name_of(url)} has the schema of this program"


def sync_database(url: str) -> str:
    """Bring a database to this program's schema, and make it if it is absent; return a sentence that says so."""
    sync(url)
    return f"{_name_of(url)} has the schema of this program"


def _name_of(url: str) -> str:
    # The address of a server may hold a password.
    return "the PostgreSQL database" if is_postgresql(url) else url


def without_password(url: str) -> str:
    """Return an address that may be shown and kept.

    >>> without_password("mysql://placement:secret@db/placement")
    'mysql://placement@db/placement'
    """
    scheme, separator, rest = url.partition("://")
    place, slash, path = rest.partition("/")
    account, at, host = place.rpartition("@")
    return f"{scheme}{separator}{account.partition(':')[0]}{at}{host}{slash}{path.partition('?')[0]}"


def open_placement(url: str) -> Serving:
    """Open a database for the Placement API alone, and the thread that serves it.

    Args:
        url: of PostgreSQL, the path of a SQLite file, or ``sqlite://`` for a database in memory.

    Raises:
        Unavailable: the database cannot be used; the message says why.
    """
    store: Store = MemoryStore() if url in _IN_MEMORY else open_store(url, settings=Settings().store)
    try:
        current = Current(store, clock=SystemClock())
        Placement(current)
    except BaseException:
        store.close()
        raise
    return Serving(current)


def import_placement(
    source: str, database: str, *, headers: Mapping[str, str], is_dry_run: bool, progress: Progress
) -> "importing.Imported":  # fmt: skip
    """Copy everything that another Placement holds into a database, made if it is absent, and compare.

    Args:
        source: URL of its database or of its API.
        headers: of requests to its API.
        is_dry_run: whether nothing is written.

    Raises:
        BadRequest: the source is none, or something of it cannot be kept.
        Conflict: something changed here that would be overwritten; nothing was written.
        Unavailable: one of the two cannot be used.
    """
    from roost.compat.upstream import http, importing, sql  # SQLAlchemy is slow to import

    if not sql.is_sql(source) and not source.startswith(("http://", "https://")):
        raise BadRequest("--from must be the URL of a database or of an API, or the path of a placement.conf")
    store: Store
    if is_dry_run:
        store = opening.open_reader(database) if exists(database) else MemoryStore()
    else:
        store = open_store(database, settings=Settings().store)
    try:
        current = Current(store)
        if not is_dry_run:
            Placement(current)
        if sql.is_sql(source):
            there = sql.read_sql(source, progress=progress)
        else:
            there = http.read_http(source, headers=headers, progress=progress)
        return importing.bring(current, there, source=without_password(source), is_dry_run=is_dry_run)
    finally:
        store.close()


def open_in_process(url: str) -> InProcess:
    """Open a database for the Placement API in this process, without a server.

    Raises:
        Unavailable: the database cannot be used; the message says why.
    """
    return InProcess(Application(identify=_named, allows=_is_admin), open_placement(url))


def _named(headers: Mapping[str, str]) -> Identity | None:
    token = headers.get("x-auth-token")
    return Identity(user_id=token, project_id=token, roles=frozenset({token})) if token else None


def _is_admin(_policy: str, identity: Identity, _target: Mapping[str, str]) -> bool:
    return "admin" in identity.roles


def audit_database(config: Path | None, data: Path | None, environ: Mapping[str, str]) -> "list[Finding]":
    """Check a database by itself, reading only its tables; return what is wrong with it."""
    return audit(database_of(config, data, environ))


def audit_path(data: Path) -> "list[Finding]":
    """Check the database in a data folder."""
    return audit(str(data / _DATABASE))


def settings_of(config: Path | None, environ: Mapping[str, str]) -> Settings:
    """Read the settings that are found as ``open_roost`` finds them.

    Raises:
        BadSettings: a setting is unknown or wrong.
    """
    # Rules may be written for Nova, and import it.
    lend_names()
    # Unlike ``Path.exists`` it also answers about names that no file can have.
    return load_settings(find_settings(None if config is None else str(config), environ, os.path.exists), adapt=adapt)
