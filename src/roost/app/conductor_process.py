"""A conductor as a process of its own, beside the servers of the same PostgreSQL database."""

import os
from collections.abc import Callable, Sequence
from socket import socket
from typing import TYPE_CHECKING

import msgspec

from roost.app.conductor_thread import ConductorThread
from roost.app.placement_server import ServerConfig
from roost.app.server_process import Site, serve_sites
from roost.app.up import open_events, open_product, start_reloader
from roost.errors import BadSettings
from roost.observe import log
from roost.placement.deciding_thread import Serving
from roost.store.backends import is_postgresql

if TYPE_CHECKING:
    from roost.api.probes import Health


def check_conductor(config: ServerConfig) -> None:
    """Refuse a database that one process alone can work on, and amounts that are kept elsewhere.

    Raises:
        BadSettings: it cannot be.
    """
    if config.settings.placement.remote_url:
        raise BadSettings("placement.remote_url", "names a Placement, beside which no conductor can be")
    if not is_postgresql(config.url):
        raise BadSettings(
            "store.url", "must name a PostgreSQL database: one of SQLite is of one process, whose conductor works on it"
        )


def disable_conductor(config: ServerConfig) -> ServerConfig:
    """Return what is served by a server that leaves operations to conductors beside it."""
    conductor = msgspec.structs.replace(config.settings.conductor, in_server=False)
    return msgspec.structs.replace(config, settings=msgspec.structs.replace(config.settings, conductor=conductor))


def check_server(config: ServerConfig) -> None:
    """Refuse a server without a conductor where there can be no other one.

    Raises:
        BadSettings: it cannot be.
    """
    if not config.settings.conductor.in_server and not is_postgresql(config.url):
        raise BadSettings("conductor.in_server", "must be true on SQLite, where nobody else can be the conductor")


def run_conductor(
    config: ServerConfig, listener: socket, *, cells: Sequence[str] | None, on_ready: Callable[[], None] = lambda: None
) -> None:
    """Work on the operations of some cells until a signal says stop, and do the periodic jobs that nobody else does.

    Which agents are silent servers tell, since these are asked by them.

    Args:
        listener: where /healthz and /metrics are asked.
        cells: by their names, the empty one is that of operations without a host; None: all of them.
        on_ready: called when the next operation will be taken.

    Raises:
        BadSettings: rules are not as they should be.
        Unavailable: the database cannot be used; the message says why.
    """
    from roost.api.probes import Probes

    def sites(_serving: Serving, health: "Health") -> list[Site]:
        return [Site(Probes(health), listener)]

    with open_events(config.settings.notifications) as events:
        conductor = ConductorThread(cells=cells, is_hearing=False)
        roost, serving = open_product(config.url, config.settings, events=events, heed=conductor.heed)
        look = start_reloader(roost, serving, config=config, tls=None)
        names = "all" if cells is None else ", ".join(repr(cell) for cell in cells)
        try:
            conductor.start(roost, serving)
            log.event("conductor_begins", cells=names, process=os.getpid())
            serve_sites(
                serving,
                sites,
                settings=config.settings.placement,
                parent=None,
                on_ready=on_ready,
                look=look,
                on_stop=conductor.stop,
            )
        finally:
            conductor.join()
