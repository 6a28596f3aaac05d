"""Opens the product for a server, a reader beside a server, an offline command or a trial, or without a database."""

from collections.abc import Mapping
from pathlib import Path

from roost.app.database_choice import FILE, database_of, settings_of
from roost.compat.aliases import install_aliases
from roost.engine.columns.state import State
from roost.model.settings.roost_settings import Settings
from roost.placement.current import Current
from roost.ports import Clock, Random, Store
from roost.product import Roost
from roost.store import backends
from roost.store.backends import open_store
from roost.store.dry_store import DryStore
from roost.store.memory_store import MemoryStore


def open_roost(
    config: Path | None = None,
    data: Path | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    is_scratch: bool = False,
) -> Roost:
    """Open Roost with its settings and its database, which is created if absent.

    Args:
        config: the settings file; None: from ``$ROOST_CONFIG`` or the usual places, else defaults.
        data: folder of the database; None: a database in memory. The setting ``store.url`` overrides it.
        environ: the environment; None: empty.
        is_scratch: whether to ignore ``store.url``, to protect production databases.

    Raises:
        BadSettings: a setting is unknown or wrong.
        Unavailable: the database cannot be used; the message has the reason.
    """
    settings = settings_of(config, environ or {})
    store: Store
    if settings.store.url and not is_scratch:
        store = open_store(settings.store.url, settings=settings.store)
    elif data is None:
        store = MemoryStore()
    else:
        store = open_store(data / FILE, settings=settings.store)
    return _build(store, settings)


def open_reader(
    config: Path | None, data: Path | None, *, environ: Mapping[str, str], database: str | None = None
) -> Roost:
    """Open the database of a command for reading, beside its servers.

    Writes raise ``Unavailable``; dry runs and forks work.

    Args:
        database: URL or path; None: the database of the settings and the data folder.

    Raises:
        BadSettings: a setting is unknown or wrong.
        Unavailable: the database cannot be read; the message has the reason.
    """
    settings = settings_of(config, environ)
    url = database or database_of(config, data, environ)
    return _build(backends.open_reader(url, settings=settings.store), settings)


def open_offline(url: str, settings: Settings) -> Roost:
    """Open an existing database without servers, for commands that need all services stopped.

    Args:
        url: URL of PostgreSQL or MariaDB, or path of a SQLite file.
        settings: settings of decisions.

    Raises:
        StoreBusy: a server uses this SQLite file.
        StoreMissing: the database does not exist.
        Unavailable: the database cannot be used; the message has the reason.
    """
    backends.require(url)
    install_aliases()
    return _build(open_store(url, settings=settings.store), settings)


def open_scratch(settings: Settings, data: Path | None, *, random: Random) -> Roost:
    """Open Roost for a trial, on a database in a folder or in memory. Ignore ``store.url``.

    Raises:
        Unavailable: the database cannot be used; the message has the reason.
    """
    install_aliases()
    store: Store = MemoryStore() if data is None else open_store(data / FILE, settings=settings.store)
    return _build(store, settings, random=random)


def open_ephemeral(settings: Settings, *, clock: Clock, random: Random) -> Roost:
    """Return a Roost with an empty fleet and without a database."""
    store = DryStore(position=0, next_ids={})
    return Roost(store, settings, clock=clock, random=random, current=Current(store, state=State()))


def _build(store: Store, settings: Settings, *, random: Random | None = None) -> Roost:
    """Return a Roost on a store. Close the store on failure."""
    try:
        return Roost(store, settings, random=random)
    except BaseException:
        store.close()
        raise
