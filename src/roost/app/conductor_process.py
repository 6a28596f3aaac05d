"""A conductor in a process of its own, beside the servers of the same database."""

import os
from collections.abc import Callable, Sequence
from socket import socket
from typing import TYPE_CHECKING

import msgspec

from roost.app.conductor_thread import ConductorThread
from roost.app.placement_server import ServerConfig
from roost.app.server_process import Site, serve_sites
from roost.app.up import combine_listeners, open_events, open_product, start_reloader
from roost.conductor.story_log import log_stories
from roost.errors import BadSettings
from roost.observe import exposition, log
from roost.placement.deciding_thread import Serving
from roost.store.backends import is_shared

if TYPE_CHECKING:
    from roost.app.monitoring.checks import Checks


def check_conductor(config: ServerConfig) -> None:
    """Refuse configurations without a shared database: SQLite, and a remote Placement.

    Raises:
        BadSettings: a conductor cannot run beside such a server.
    """
    if config.settings.placement.remote_url:
        raise BadSettings("placement.remote_url", "must be empty: a conductor does not work with a remote Placement")
    if not is_shared(config.url):
        raise BadSettings(
            "store.url",
            "must be a URL of PostgreSQL or MariaDB: a SQLite database has one process, which includes the conductor",
        )


def disable_conductor(config: ServerConfig) -> ServerConfig:
    """Return the configuration of a server without a conductor of its own."""
    conductor = msgspec.structs.replace(config.settings.conductor, in_server=False)
    return msgspec.structs.replace(config, settings=msgspec.structs.replace(config.settings, conductor=conductor))


def check_server(config: ServerConfig) -> None:
    """Refuse a SQLite server without a conductor.

    Raises:
        BadSettings: no other process could be the conductor.
    """
    if not config.settings.conductor.in_server and not is_shared(config.url):
        raise BadSettings("conductor.in_server", "must be true on SQLite, where no other process can be the conductor")


def run_conductor(
    config: ServerConfig, listener: socket, *, cells: Sequence[str] | None, on_ready: Callable[[], None] = lambda: None
) -> None:
    """Advance the operations of some cells, and run periodic jobs, until a signal stops the process.

    Only servers record the liveness of agents, since agents do not poll conductors.

    Args:
        listener: socket of /healthz, /readyz and /metrics.
        cells: names of cells; the empty name means operations without a cell; None: all cells.
        on_ready: called when the conductor is ready.

    Raises:
        BadSettings: a rule is wrong.
        Unavailable: the database cannot be used; the message has the reason.
    """

    def sites(_serving: Serving, checks: "Checks") -> list[Site]:
        areas = exposition.SERVER_AREAS - {"requests"}
        return [Site(checks.probes(areas=areas), listener)]

    log.configure(config.settings.log)
    with open_events(config.settings.notifications) as events:
        conductor = ConductorThread(cells=cells, is_polled=False)
        on_work = combine_listeners(conductor.wake_for, log_stories)
        roost, serving = open_product(config.url, config.settings, events=events, on_work=on_work)
        on_tick = start_reloader(roost, serving, config=config, tls=None)
        names = "all" if cells is None else ", ".join(repr(cell) for cell in cells)
        try:
            conductor.start(roost, serving)
            log.event("conductor_begins", cells=names, process=os.getpid())
            serve_sites(
                serving,
                sites,
                settings=lambda: roost.settings,
                database=config.url,
                parent=None,
                on_ready=on_ready,
                on_tick=on_tick,
                on_stop=conductor.stop,
                conductor=conductor.turns,
            )
        finally:
            conductor.join()
