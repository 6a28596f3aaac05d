"""Serves the whole product on one port."""

import os
import ssl
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing, contextmanager, nullcontext, suppress
from functools import partial
from socket import gethostname, socket
from typing import TYPE_CHECKING

import msgspec

from roost import __version__
from roost.app.conductor_thread import ConductorThread
from roost.app.placement_server import ServerConfig, placement_policy
from roost.app.reload import Reloader, SettingsReporter
from roost.app.remote_placement import RemoteFollower, connect_remote
from roost.app.server_process import (
    IN_MEMORY,
    SLICE_S,
    Site,
    build_reader,
    open_server_store,
    serve_sites,
    start_deciding_thread,
)
from roost.app.story_events import StoryPublisher, publish_claims
from roost.conductor.story_log import log_stories
from roost.errors import BadSettings, Unavailable, extra_hint
from roost.machine import SystemClock
from roost.model.settings.notification_settings import Notifications
from roost.model.settings.placement_settings import Placement as PlacementSettings
from roost.model.settings.roost_settings import Settings
from roost.model.work.work_rows import Put
from roost.observe import log
from roost.observe.event_buffer import Events
from roost.observe.exposition import ALL_AREAS, SERVER_AREAS
from roost.observe.notify import DecisionNotifier
from roost.observe.webhook import Webhook
from roost.placement.current import Current
from roost.placement.deciding_thread import Serving, WorkListener, call_listener
from roost.placement.write_plan import Deed, Plan, Result
from roost.product import Roost
from roost.scheduler.decision_counts import count_result
from roost.settings import find_nova_conf
from roost.store.backends import open_reader, require

if TYPE_CHECKING:
    from roost.api.asgi import Api, AsgiApplication, Authenticate, ChangeListener
    from roost.api.outages import Outages
    from roost.api.placement.in_process import InProcess
    from roost.api.reader_client import ReaderClient
    from roost.api.server.supervisor import ParentPipe
    from roost.app.monitoring.checks import Checks
    from roost.dashboard.dashboard_site import DashboardSite
    from roost.nova.nova_service import NovaService

PLACEMENT = "/placement"


def serve_product(
    config: ServerConfig,
    listener: socket,
    *,
    parent: "ParentPipe | None" = None,
    on_ready: Callable[[], None] = lambda: None,
) -> None:
    """Serve Roost's own API, the Placement API, /healthz, /readyz and /metrics until a signal stops the process.

    Args:
        listener: the socket for all of these paths.
        parent: supervisor of this process, if it is one of several.
        on_ready: called when the server accepts connections.

    Raises:
        BadSettings: rules, policies, tokens or the Keystone configuration are wrong.
        Unavailable: the database cannot be used; the message has the reason.
    """
    log.configure(config.settings.log)
    with open_events(config.settings.notifications) as events:
        _serve(config, listener, events, parent=parent, on_ready=on_ready)


@contextmanager
def open_events(settings: Notifications) -> Iterator[Events]:
    """Open the event buffer, with the webhook of the settings, if any."""
    webhook = Webhook(settings) if settings.webhook else None
    publisher = f"{gethostname()}:{os.getpid()}"
    sink = None if webhook is None else webhook.send
    try:
        yield Events(settings, run=os.urandom(4).hex(), publisher=publisher, sink=sink)
    finally:
        if webhook is not None:
            webhook.close()


def _serve(
    config: ServerConfig, listener: socket, events: Events, *, parent: "ParentPipe | None", on_ready: Callable[[], None]
) -> None:
    from roost.api.answer_options import options_of
    from roost.api.outages import Outages
    from roost.api.placement.application import Application as PlacementApplication
    from roost.api.server.mount import Mount
    from roost.api.server.tls import tls_context
    from roost.api.v1 import application as v1
    from roost.api.v1.agents.agent_registry import AgentRegistry
    from roost.api.v1.agents.wakeups import ENDS, ENDS_MAX, Wakeups
    from roost.api.v1.host_uptime import down_time_of
    from roost.app.authenticator import build_authenticators
    from roost.app.monitoring.fleet_follower import FleetFollower
    from roost.app.monitoring.open_drains import OpenDrains
    from roost.dashboard import dashboard_site as dashboard

    settings = config.settings.placement
    identify, authenticate = build_authenticators(settings)
    allows, options = placement_policy(settings).allows, options_of(settings)
    placement = PlacementApplication(identify=identify, allows=allows, options=options)
    tls = tls_context(settings)
    remote = connect_remote(config.settings, os.environ) if settings.remote_url else None
    wakeups, ends = Wakeups(settings.agents_max), Wakeups(ENDS_MAX, topic=ENDS)
    cells = None if config.settings.conductor.in_server else ()
    conductor, publisher = ConductorThread(cells=cells), StoryPublisher(events)
    on_work = combine_listeners(wakeups.wake_for, ends.wake_for, conductor.wake_for, log_stories)
    roost, serving = open_product(config.url, config.settings, events=events, remote=remote, on_work=on_work)
    reader = None if remote is not None else build_reader(config.url, config.settings, product=roost)
    agents = AgentRegistry(serving, wakeups, ends=ends, clock=SystemClock())
    fleet = FleetFollower(
        serving,
        settings=lambda: roost.settings,
        down_time_s=lambda: down_time_of(roost.settings),
        drains=OpenDrains(serving, clock=SystemClock()),
    )
    reporter = SettingsReporter(config)
    build_own_api = partial(v1.Application, roost, agents=agents, identify=identify, allows=allows, events=events)
    own_api = build_own_api(fleet=fleet, auth_strategy=settings.auth_strategy, report_settings=reporter.report)
    nova = build_nova_service(config.settings, roost, serving)

    def sites(serving: Serving, checks: "Checks") -> list[Site]:
        apis: list[tuple[str, Api]] = [*([(PLACEMENT, placement)] if remote is None else []), (v1.PREFIX, own_api)]
        outages, on_change = Outages(), partial(publish_claims, events)
        build_edges = partial(_http_edges, apis, serving, settings=settings, authenticate=authenticate)
        edges = build_edges(reader=reader, outages=outages, on_change=on_change)
        areas = ALL_AREAS if nova is not None else SERVER_AREAS
        probes = checks.probes(areas=areas, others=(*edges, dashboard.PREFIX), note=outages.note)
        return [Site(Mount({**edges, **_pages(settings)}, otherwise=probes), listener, tls)]

    on_tick = call_each(
        start_reloader(roost, serving, config=config, tls=tls, reporter=reporter), agents.store_heartbeats
    )
    on_stop = call_each(conductor.stop, events.close, fleet.stop, wakeups.close, ends.close)
    reading = nullcontext() if reader is None else closing(reader)
    background = _background(roost, serving, conductor=conductor, publisher=publisher, remote=remote, nova=nova)
    with closing(agents), background, reading, closing(fleet):
        fleet.start()
        serve = partial(serve_sites, serving, sites, settings=lambda: roost.settings, database=config.url)
        serve(parent=parent, on_ready=on_ready, on_tick=on_tick, on_stop=on_stop, reader=reader)


@contextmanager
def _background(
    roost: Roost,
    serving: Serving,
    *,
    conductor: ConductorThread,
    publisher: StoryPublisher,
    remote: "RemoteFollower | None",
    nova: "NovaService | None",
) -> Iterator[None]:
    """Run the threads beside the server: conductor and stories, or with a remote Placement its follower.

    The service nova-scheduler starts last and stops first.
    """
    if remote is not None:
        remote.start(serving)
    try:
        if remote is None:  # With a remote Placement, a step and its claims cannot be one commit.
            publisher.start(serving)
            conductor.start(roost, serving)
        if nova is not None:
            nova.start()
        yield
    finally:
        if nova is not None:
            nova.stop()
        conductor.join()
        publisher.join()
        if remote is not None:
            remote.stop()


def enable_nova(config: ServerConfig, *, is_shadow: bool = False) -> ServerConfig:
    """Return the configuration of a server that serves the queue of nova-scheduler.

    Args:
        is_shadow: whether to only compare choices with those of nova-scheduler; else the settings decide.
    """
    is_shadow = is_shadow or config.settings.nova.shadow
    nova = msgspec.structs.replace(config.settings.nova, scheduler=True, shadow=is_shadow)
    return msgspec.structs.replace(config, settings=msgspec.structs.replace(config.settings, nova=nova))


def check_nova(config: ServerConfig) -> None:
    """Refuse to serve the queue of nova-scheduler without a nova.conf.

    Raises:
        BadSettings: no file is named.
    """
    if config.settings.nova.scheduler and find_nova_conf(os.environ, os.path.exists) is None:
        raise BadSettings("nova.scheduler", "needs a nova.conf: name it with --nova-conf")


def build_nova_service(settings: Settings, roost: Roost, serving: Serving) -> "NovaService | None":
    """Return the service nova-scheduler, if the settings enable it.

    Raises:
        BadSettings: a nova.conf is missing, or has no address of the broker or of a database.
    """
    if not settings.nova.scheduler:
        return None
    nova_conf = find_nova_conf(os.environ, os.path.exists)
    assert nova_conf is not None, "the command checks it"
    try:
        from roost.nova.nova_service import NovaService
    except ModuleNotFoundError as error:
        raise BadSettings("nova.scheduler", f"needs {error.name}: {extra_hint('nova')}") from None
    return NovaService(nova_conf, settings.nova, roost=roost, serving=serving, clock=SystemClock())


def _pages(settings: PlacementSettings) -> "dict[str, DashboardSite]":
    """Return the dashboard by its paths. Links on other sites may lead to its page: the page has no data."""
    from roost.api.access.allowed_hosts import AllowedHosts
    from roost.api.problems import Problem
    from roost.dashboard.dashboard_site import PREFIX, DashboardSite

    hosts = AllowedHosts.from_settings(settings)

    def check(headers: Mapping[str, str]) -> tuple[int, str] | None:
        try:
            if hosts is not None:
                hosts.check_name(headers.get("host", ""))
        except Problem as problem:
            return problem.status, problem.text
        return None

    site = DashboardSite(authentication=settings.auth_strategy, version=__version__, check_origin=check)
    return {PREFIX: site, "/": site}


def _http_edges(
    apis: "Sequence[tuple[str, Api]]",
    serving: Serving,
    *,
    settings: PlacementSettings,
    authenticate: "Authenticate | None",
    outages: "Outages",
    reader: "ReaderClient | None",
    on_change: "ChangeListener",
) -> "dict[str, AsgiApplication]":
    """Return the ASGI application of each API, by prefix. They share one limit on bodies in memory."""
    from roost.api.asgi import AsgiApplication
    from roost.api.body_limits import BodyReader
    from roost.api.reader_client import ApiReader
    from roost.api.v1.application import PREFIX

    bodies = BodyReader(settings)
    return {
        prefix: AsgiApplication(
            api,
            serving,
            settings=msgspec.structs.replace(settings, prefix=prefix),
            authenticate=authenticate,
            bodies=bodies,
            outages=outages,
            on_change=on_change,
            reader=None if reader is None else ApiReader(client=reader, is_own_api=prefix == PREFIX),
            saves_traffic=prefix == PREFIX,
            has_sessions=prefix == PREFIX,
        )
        for prefix, api in apis
    }


def call_each(*acts: Callable[[], None]) -> Callable[[], None]:
    """Combine functions into one that calls them all, even if some fail."""

    def call_all() -> None:
        for act in acts:
            call_listener("tick", act)

    return call_all


def combine_listeners(*listeners: WorkListener) -> WorkListener:
    """Combine listeners for committed work into one that calls them all, even if some fail."""

    def notify(work: Sequence[Put]) -> None:
        for each in listeners:
            call_listener("on_work", partial(each, work))

    return notify


def start_reloader(
    roost: Roost,
    serving: Serving,
    *,
    config: ServerConfig,
    tls: ssl.SSLContext | None,
    reporter: SettingsReporter | None = None,
) -> Callable[[], None]:
    """Reload settings and certificate at SIGHUP; return the function that checks for a pending reload."""
    from roost.api.changes.change_note import SETTINGS_RELOAD, ChangeNote
    from roost.api.changes.change_row import Author, rows_of
    from roost.api.server.tls import reload_certificate

    reloader = Reloader(
        roost,
        config=config.settings_file,
        environ=os.environ,
        file_settings=config.file_settings,
        on_load=(lambda _loaded: None) if reporter is None else reporter.follow,
    )
    reloader.watch()

    def reload(current: Current) -> Plan[None] | None:
        if reloader.is_requested and tls is not None:
            reload_certificate(tls, config.settings.placement)
        if not reloader.reload_if_requested():
            return None
        process = f"{gethostname()}:{os.getpid()}"
        note = ChangeNote(SETTINGS_RELOAD, (process,), {"fingerprint": roost.settings.fingerprint().hex()})
        return Plan(answer=None, trail=rows_of(note, Author(), current=current))

    def request_reload() -> None:
        if reloader.is_requested:
            with suppress(Unavailable):  # The queue is full: retry in a second.
                serving.submit(reload, Future())

    return request_reload


def open_product(
    url: str,
    settings: Settings,
    *,
    events: Events | None = None,
    remote: RemoteFollower | None = None,
    on_work: WorkListener | None = None,
) -> tuple[Roost, Serving]:
    """Open a database for the whole product, and start its deciding thread.

    Args:
        url: URL of PostgreSQL or MariaDB, path of a SQLite file, or ``sqlite://`` for a database in memory.
        events: receives decisions, if given.
        remote: a remote Placement with hosts and allocations; None: they are in the database.
        on_work: called with committed work.

    Returns:
        The product, and the thread that owns it: only that thread may use the product.

    Raises:
        BadSettings: a rule or its option is unknown or wrong.
        Unavailable: the database cannot be used; the message has the reason.
    """
    with open_server_store(url, settings) as store:
        current = Current(store, clock=SystemClock())
        if remote is not None:
            remote.load_hosts(current)
        roost = Roost(
            store,
            settings,
            current=current,
            remote=None if remote is None else remote.placement,
            database=None if url in IN_MEMORY else url,
        )
        # Do not use ``Roost.outcomes``, which prunes between decisions: this thread prunes after each group.

        def decide(deeds: Sequence[Deed]) -> Sequence[Result]:
            # Look up the scheduler each time: a reload replaces it.
            return roost.scheduler.work(deeds, slice_s=SLICE_S)

        decide_all = decide if events is None else DecisionNotifier(decide, events, now_s=SystemClock().now_s)
        return roost, start_deciding_thread(
            current, settings, decide=decide_all, on_work=on_work, on_result=count_result
        )


def open_own_api(url: str, settings: Settings, *, is_read_only: bool) -> "InProcess":
    """Open a database for Roost's own API in this process, without a server and without authentication.

    Args:
        url: URL of PostgreSQL or MariaDB, or path of a SQLite file.
        is_read_only: whether the database is only read; if so, its servers can keep running.

    Raises:
        BadSettings: a rule or its option is unknown or wrong.
        StoreMissing: the database does not exist.
        Unavailable: the database cannot be used; the message has the reason.
    """
    from roost.api.access.authentication import trust_headers
    from roost.api.placement.in_process import InProcess
    from roost.api.v1.agents.agent_registry import AgentRegistry
    from roost.api.v1.agents.wakeups import ENDS, ENDS_MAX, Wakeups
    from roost.api.v1.application import Application

    if is_read_only:
        store = open_reader(url, settings=settings.store)
        try:
            current = Current(store, clock=SystemClock())
            roost, serving = Roost(store, settings, current=current, database=url), Serving(current)
        except BaseException:
            store.close()
            raise
    else:
        require(url)
        roost, serving = open_product(url, settings)
    wakeups, ends = Wakeups(settings.placement.agents_max), Wakeups(ENDS_MAX, topic=ENDS)
    agents = AgentRegistry(serving, wakeups, ends=ends, clock=SystemClock())
    application = Application(roost, agents=agents, identify=trust_headers)
    return InProcess(application, serving, has_log=False, on_close=agents.close)
