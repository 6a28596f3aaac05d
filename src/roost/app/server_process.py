"""The common parts of all servers: the database, the deciding thread, and the loop that serves until a signal."""

import gc
import os
import ssl
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from socket import socket
from typing import TYPE_CHECKING, Any

from roost import __version__
from roost.errors import RoostError
from roost.machine import SystemClock
from roost.model.settings.roost_settings import Settings
from roost.model.struct_decoders import prepare_decoders
from roost.observe import log
from roost.observe.traces import send_traces
from roost.placement.current import Current
from roost.placement.deciding_thread import Decide, ResultListener, Serving, WorkListener, call_listener
from roost.placement.last_success import LastSuccess
from roost.placement.prune_evidence import Tidier
from roost.ports import Store
from roost.store.backends import open_store, sync
from roost.store.memory_store import MemoryStore

if TYPE_CHECKING:
    from roost.api.reader_client import ReaderClient
    from roost.api.server.supervisor import ParentPipe
    from roost.app.monitoring.checks import Checks
    from roost.app.monitoring.surveyor import Surveyor
    from roost.product import Roost


@dataclass(frozen=True, slots=True)
class Site:
    """An application on a socket."""

    application: Any  # ASGI
    listener: socket
    tls: ssl.SSLContext | None = None  # None: plain connections


# Seconds of search for one group of decisions, until other groups have a turn.
SLICE_S = 0.03
IN_MEMORY = ("sqlite://", "sqlite:///:memory:", ":memory:")


def build_reader(url: str, settings: Settings, *, product: "Roost | None" = None) -> "ReaderClient | None":
    """Return the client of a reader process; None: the database is in memory, or the settings disable the reader.

    Args:
        product: the product for /v1, with its current settings; None: Placement API only.
    """
    from roost.api.reader_client import ReaderClient

    if url in IN_MEMORY or not settings.placement.has_reader:
        return None
    return ReaderClient(
        url, settings=lambda: settings if product is None else product.settings, has_own_api=product is not None
    )


@contextmanager
def open_server_store(url: str, settings: Settings) -> Iterator[Store]:
    """Open a database for a server. Close it if the block raises.

    Args:
        url: URL of PostgreSQL or MariaDB, path of a SQLite file, or ``sqlite://`` for a database in memory.

    Raises:
        Unavailable: the database cannot be used; the message has the reason.
    """
    store: Store
    if url in IN_MEMORY:
        store = MemoryStore()
    else:
        if settings.placement.sync_on_startup:
            sync(url, settings=settings.store)
        store = open_store(url, settings=settings.store)
    try:
        yield store
    except BaseException:
        store.close()
        raise


def start_deciding_thread(
    current: Current,
    settings: Settings,
    *,
    decide: Decide | None = None,
    on_work: WorkListener | None = None,
    on_result: ResultListener | None = None,
) -> Serving:
    """Start the thread that owns the columns, with the limits of the settings."""
    prepare_decoders()
    return Serving(
        current,
        queue_max=settings.placement.queue_max,
        group_max=settings.store.group_max,
        retries=settings.placement.allocation_conflict_retry_count,
        tidy=Tidier(current.store, settings.store, clock=SystemClock()),
        decide=decide,
        on_work=on_work,
        on_result=on_result,
        slices_max=max(1, round(settings.scheduler.search_budget_s / SLICE_S)),
    )


@log.write_in_background()
def serve_sites(
    serving: Serving,
    sites: "Callable[[Serving, Checks], Sequence[Site]]",
    *,
    settings: Callable[[], Settings],
    database: str,
    parent: "ParentPipe | None",
    on_ready: Callable[[], None],
    on_tick: Callable[[], None] = lambda: None,
    on_stop: Callable[[], None] = lambda: None,
    conductor: LastSuccess | None = None,
    reader: "ReaderClient | None" = None,
) -> None:
    """Serve until a signal stops the process, then stop the deciding thread.

    Args:
        sites: creates the applications.
        settings: returns the current settings.
        database: URL or path of the database.
        parent: supervisor of this process, if it is one of several.
        on_ready: called when the server accepts connections and handles signals.
        on_tick: called each second; its errors are logged.
        on_stop: called when no more requests are accepted.
        conductor: the turns of the conductor, if the readiness of this process depends on them.
        reader: the client of the reader process, which a large fleet starts in advance.

    Raises:
        BadSettings: traces are enabled, but OpenTelemetry is not installed.
        RoostError: the deciding thread has ended by itself; the supervisor can restart the process.
    """
    from roost.api.server.connection_limit import Connections, fit_connections
    from roost.api.server.listener import Server, run
    from roost.app.monitoring.checks import Checks

    gc.collect()
    gc.freeze()  # Loaded columns live as long as the process.
    surveyor = _build_surveyor(serving, settings, database)
    try:
        limits, checks = settings().placement, Checks(serving, settings=settings, conductor=conductor)
        build = partial(Server, settings=limits, connections=Connections(fit_connections(limits.connections_max)))
        servers = [build(site.application, site.listener, tls=site.tls) for site in sites(serving, checks)]
        prepare_decoders()  # The applications have imported further structs.
        surveyor.start()
        pending = [on_ready]  # The first call of ``watch_thread`` follows the setup of the signal handlers.

        async def watch_thread() -> None:
            if pending:
                pending.pop()()
            _tick(serving, on_tick)
            if reader is not None:
                await reader.keep_ready(len(serving.state.hosts.ids))
            await checks.report(parent)

        log.event("server_begins", version=__version__, process=os.getpid())
        with send_traces(settings().monitoring):
            run(*servers, on_second=watch_thread, parent=None if parent is None else parent.fileno(), on_stop=on_stop)
        log.event("server_ends", process=os.getpid())
    finally:
        surveyor.join()
        serving.stop()


def _tick(serving: Serving, on_tick: Callable[[], None]) -> None:
    """Do the work of each second.

    Raises:
        RoostError: the deciding thread has ended by itself.
    """
    if serving.problem:
        raise RoostError(serving.problem)
    call_listener("measure", serving.measure)
    call_listener("tick", on_tick)
    log.write_repetitions()


def _build_surveyor(serving: Serving, settings: Callable[[], Settings], database: str) -> "Surveyor":
    from roost.api.v1.host_uptime import down_time_of
    from roost.app.monitoring.history_writer import HistoryWriter
    from roost.app.monitoring.surveyor import Surveyor
    from roost.scheduler.decision_counts import DECISION_TOTALS
    from roost.store.upkeep.stored_history import find_history

    stored = None if database in IN_MEMORY else database
    table, process = find_history(stored, serving.store), os.urandom(4).hex()
    history = None
    if table is not None:
        history = HistoryWriter(table, process=process, limits=lambda: settings().store, totals=DECISION_TOTALS.read)
    return Surveyor(
        serving,
        settings=settings,
        database=stored,
        down_time_s=lambda: down_time_of(settings()),
        history=history,
    )
