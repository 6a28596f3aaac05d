"""The Placement API on a database, as a server or in this process; and the import from another Placement."""

import os
from collections.abc import Callable, Mapping
from contextlib import closing, nullcontext
from functools import partial
from pathlib import Path
from socket import socket
from typing import TYPE_CHECKING

import msgspec

from roost.api.access.authentication import trust_headers
from roost.api.access.policy import Policy, read_policy
from roost.api.answer_options import options_of
from roost.api.placement.application import Application
from roost.api.placement.in_process import InProcess
from roost.api.v1 import policies
from roost.app.database_choice import FILE, database_name, settings_of, settings_with_sources
from roost.app.server_process import Site, build_reader, open_server_store, serve_sites, start_deciding_thread
from roost.compat.placement_conf import PlacementConf, read_placement_conf
from roost.errors import BadSettings
from roost.machine import SystemClock
from roost.model.settings.placement_settings import Placement as PlacementSettings
from roost.model.settings.roost_settings import Settings
from roost.observe import exposition, log
from roost.placement.current import Current
from roost.placement.deciding_thread import Serving
from roost.placement.placement_service import Placement
from roost.ports import Store
from roost.scheduler.framework.rule_options import read_section
from roost.settings import data_folder
from roost.store import backends
from roost.store.backends import has_tables, is_shared, open_store
from roost.store.memory_store import MemoryStore

if TYPE_CHECKING:
    from roost.api.server.supervisor import ParentPipe
    from roost.app.monitoring.checks import Checks
    from roost.compat.upstream import import_run

Progress = Callable[[int, int], None]  # done, total
# The Placement API alone decides nothing, and has no agents.
PLACEMENT_AREAS = exposition.SERVER_AREAS - {"decisions", "operations", "agents", "events"}


# The source of settings from options of a command.
COMMAND_LINE = "command line"


class ServerConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The configuration of a server."""

    url: str  # URL or path of the database
    settings: Settings
    settings_file: Path | None  # from the command line; None: the usual places
    file_settings: Settings  # without ``placement.conf`` and the command line
    notes: tuple[str, ...]  # options without effect, one sentence each
    sources: Mapping[tuple[str, str], str] = {}  # by section and key, for settings with a source


def resolve_server_config(
    config: Path | None,
    data: Path | None,
    environ: Mapping[str, str],
    *,
    conf: Path | None = None,
    database: str | None = None,
    overrides: Mapping[str, object] | None = None,
) -> ServerConfig:
    """Merge the settings, an existing ``placement.conf`` and the command line, in ascending priority.

    Args:
        conf: path of a ``placement.conf``, if any.
        database: URL or path.
        overrides: values of section ``placement`` from the command line.

    Raises:
        BadSettings: a setting is unknown, wrong or unsupported, or ``placement.conf`` cannot be read.
    """
    loaded = settings_with_sources(config, environ)
    settings, notes = loaded.settings, list(loaded.dropped)
    url = database or settings.store.url
    placement_conf = None if conf is None else read_placement_conf(conf)
    if placement_conf is not None:
        notes += placement_conf.notes
        option = "[placement_database] connection"
        if database is not None and (placement_conf.connection or placement_conf.problem):
            notes.append(f"{conf}: {option} has no effect: --database overrides it")
        elif database is None and placement_conf.problem:
            raise BadSettings(str(conf), f"{option}: {placement_conf.problem}")
        elif database is None:
            url = placement_conf.connection or url
    placement = _merge_settings(settings, placement_conf, overrides)
    if not url:
        folder = data_folder(None if data is None else str(data), environ, is_root=os.geteuid() == 0)
        url = str(folder / FILE)
    if placement.workers > 1 and not is_shared(url):
        raise BadSettings(
            "placement.workers", "must be 1 on SQLite, which serves one process; use PostgreSQL or MariaDB"
        )
    sources = dict(loaded.sources)
    sources |= {("placement", name): str(conf) for name in (placement_conf.settings if placement_conf else ())}
    sources |= {("placement", name): COMMAND_LINE for name in overrides or {}}
    if url != settings.store.url:
        is_given = database is not None or data is not None
        origin = "environment" if environ.get("ROOST_DATA") else "default"
        is_of_conf = placement_conf is not None and url == placement_conf.connection
        sources["store", "url"] = COMMAND_LINE if is_given else str(conf) if is_of_conf else origin
    return ServerConfig(
        url=url,
        settings=msgspec.structs.replace(settings, placement=placement),
        settings_file=config,
        file_settings=settings,
        notes=tuple(notes),
        sources=sources,
    )


def placement_settings(
    config: Path | None,
    environ: Mapping[str, str],
    *,
    conf: Path | None = None,
    overrides: Mapping[str, object] | None = None,
) -> PlacementSettings:
    """Return section ``placement`` of the settings, merged as in ``resolve_server_config``."""
    placement_conf = None if conf is None else read_placement_conf(conf)
    return _merge_settings(settings_of(config, environ), placement_conf, overrides)


def _merge_settings(
    settings: Settings, conf: PlacementConf | None, overrides: Mapping[str, object] | None
) -> PlacementSettings:
    values = msgspec.to_builtins(settings.placement) | ({} if conf is None else conf.settings) | dict(overrides or {})
    return read_section("placement", PlacementSettings, values)


def placement_policy(settings: PlacementSettings) -> Policy:
    """Return the access policy.

    Raises:
        BadSettings: the policy file cannot be read or parsed.
    """
    path = Path(settings.policy_file) if settings.policy_file else None
    return read_policy(path, is_legacy=not settings.enforce_new_defaults, others=policies.DEFAULTS)


def serve_placement(
    config: ServerConfig,
    listener: socket,
    *,
    observer: socket | None = None,
    parent: "ParentPipe | None" = None,
    on_ready: Callable[[], None] = lambda: None,
) -> None:
    """Serve the Placement API until a signal stops the process.

    Args:
        listener: socket of the API.
        observer: socket of /healthz, /readyz and /metrics, if any.
        parent: supervisor of this process, if it is one of several.
        on_ready: called when the server accepts connections.

    Raises:
        BadSettings: policies, tokens or the Keystone configuration are wrong.
        Unavailable: the database cannot be used; the message has the reason.
    """
    from roost.api.asgi import AsgiApplication
    from roost.api.outages import Outages
    from roost.api.reader_client import ApiReader
    from roost.api.server.tls import tls_context
    from roost.app.authenticator import build_authenticators

    log.configure(config.settings.log)
    settings = config.settings.placement
    identify, authenticate = build_authenticators(settings)
    application = Application(identify=identify, allows=placement_policy(settings).allows, options=options_of(settings))
    tls = tls_context(settings)
    reader = build_reader(config.url, config.settings)

    def sites(serving: Serving, checks: "Checks") -> list[Site]:
        outages = Outages()
        edge = AsgiApplication(
            application,
            serving,
            settings=settings,
            authenticate=authenticate,
            outages=outages,
            reader=None if reader is None else ApiReader(client=reader, is_own_api=False),
        )
        api_sites = [Site(edge, listener, tls)]
        if observer is None:
            return api_sites
        return [*api_sites, Site(checks.probes(areas=PLACEMENT_AREAS, note=outages.note), observer)]

    serving = open_placement(config.url, config.settings)
    with nullcontext() if reader is None else closing(reader):
        serve = partial(serve_sites, serving, sites, settings=lambda: config.settings, database=config.url)
        serve(parent=parent, on_ready=on_ready, reader=reader)


def open_placement(url: str, settings: Settings | None = None) -> Serving:
    """Open a database for the Placement API only, and start its deciding thread.

    Args:
        url: URL of PostgreSQL or MariaDB, path of a SQLite file, or ``sqlite://`` for a database in memory.

    Raises:
        Unavailable: the database cannot be used; the message has the reason.
    """
    settings = settings or Settings()
    with open_server_store(url, settings) as store:
        current = Current(store, clock=SystemClock())
        Placement(current)
        return start_deciding_thread(current, settings)


def open_in_process(url: str, settings: Settings) -> InProcess:
    """Open a database for the Placement API in this process, without a server and without authentication.

    Raises:
        BadSettings: the policy file cannot be read or parsed.
        Unavailable: the database cannot be used; the message has the reason.
    """
    allows, options = placement_policy(settings.placement).allows, options_of(settings.placement)
    return InProcess(Application(identify=trust_headers, allows=allows, options=options), open_placement(url, settings))


def import_placement(
    source: str, database: str, *, headers: Mapping[str, str], is_dry_run: bool, progress: Progress
) -> "import_run.ImportReport":
    """Import all data of another Placement into a database, created if absent, and then compare both.

    Args:
        source: URL of the other Placement's database or API.
        headers: headers of requests to that API.
        is_dry_run: whether to write nothing.

    Raises:
        BadRequest: the source is invalid, or has unsupported data.
        Conflict: the same data changed on both sides; nothing was written.
        Unavailable: one side cannot be used.
    """
    # Imported here, because SQLAlchemy is slow to import.
    from roost.compat.upstream import import_run, read_source

    read_world = read_source.reader_of(source, headers=headers, progress=progress)
    store: Store
    if is_dry_run:
        store = backends.open_reader(database) if has_tables(database) else MemoryStore()
    else:
        store = open_store(database, settings=Settings().store)
    try:
        current = Current(store, clock=SystemClock())
        if not is_dry_run:
            Placement(current)
        source_name = read_source.without_password(source)
        name = database_name(database)
        return import_run.run_import(current, read_world(), source=source_name, database=name, is_dry_run=is_dry_run)
    finally:
        store.close()
