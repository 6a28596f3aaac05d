"""The whole product on a database: to decide, to read beside who decides, for a trial, or on nothing at all."""

from collections.abc import Mapping
from pathlib import Path

from roost.app.database_choice import FILE, database_of, settings_of
from roost.compat.aliases import lend_names
from roost.engine.columns.state import State
from roost.errors import StoreBroken
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
        store = open_store(data / FILE, settings=settings.store)
    return _build(store, settings)


def open_reader(config: Path | None, data: Path | None, *, environ: Mapping[str, str]) -> Roost:
    """Open the database that commands work on for reading, beside the processes that serve it.

    What would write is refused with ``Unavailable``; dry runs and forks are not.

    Raises:
        BadSettings: a setting is unknown or wrong.
        Unavailable: the database cannot be read; the message says why.
    """
    settings = settings_of(config, environ)
    return _build(backends.open_reader(database_of(config, data, environ), settings=settings.store), settings)


def open_offline(url: str, settings: Settings) -> Roost:
    """Open a database that nobody serves, for commands that run while all services are stopped; it is not created.

    Args:
        url: of PostgreSQL, or the path of a SQLite file.
        settings: under which it decides.

    Raises:
        StoreBusy: a server still runs on this SQLite file.
        StoreBroken: there is no database.
        Unavailable: it cannot be used; the message says why.
    """
    if not backends.exists(url):
        raise StoreBroken(f"there is no database {url}")
    lend_names()
    return _build(open_store(url, settings=settings.store), settings)


def open_scratch(settings: Settings, data: Path | None, *, random: Random) -> Roost:
    """Open Roost for a trial: on a database in a folder, or in memory, whatever database the settings name.

    Raises:
        Unavailable: the database cannot be used; the message says why.
    """
    lend_names()
    store: Store = MemoryStore() if data is None else open_store(data / FILE, settings=settings.store)
    return _build(store, settings, random=random)


def open_ephemeral(settings: Settings, *, clock: Clock, random: Random) -> Roost:
    """Return a Roost on an empty state, with no database behind it: nothing of it is stored anywhere."""
    store = DryStore(position=0, next_ids={})
    return Roost(store, settings, clock=clock, random=random, current=Current(store, state=State()))


def _build(store: Store, settings: Settings, *, random: Random | None = None) -> Roost:
    """Return a Roost on a store; where that fails, the store is closed again."""
    try:
        return Roost(store, settings, random=random)
    except BaseException:
        store.close()
        raise
