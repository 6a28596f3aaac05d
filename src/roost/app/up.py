"""The whole product served on one port."""

import os
from collections.abc import Callable
from socket import socket
from typing import TYPE_CHECKING

import msgspec

from roost.app.following import Following, following
from roost.app.placement import Served, placement_policy
from roost.app.serving import answer, serving_on, store_served
from roost.machine import SystemClock
from roost.model.settings import Settings
from roost.placement.current import Current
from roost.placement.serving import Serving
from roost.product import Roost

if TYPE_CHECKING:
    from roost.api.observing import Health
    from roost.api.supervisor import Parent
    from roost.app.serving import Sites

PLACEMENT = "/placement"


def serve_product(
    served: Served, listener: socket, *, parent: "Parent | None" = None, on_ready: Callable[[], None] = lambda: None
) -> None:  # fmt: skip
    """Serve Roost's own API, the Placement API, /healthz and /metrics until a signal says stop.

    Args:
        listener: where all of it is asked.
        parent: of this process, if it is one of several.
        on_ready: called when the next connection will be answered.

    Raises:
        BadSettings: rules, policies, tokens or the access to Keystone are not as they should be.
        Unavailable: the database cannot be used; the message says why.
    """
    from roost.api.asgi import AsgiApplication
    from roost.api.front import Front
    from roost.api.observing import Observing
    from roost.api.placement.access import access_of
    from roost.api.placement.application import Application as PlacementApplication
    from roost.api.placement.options import options_of
    from roost.api.v1 import application as v1

    settings = served.settings.placement
    identify, authenticate = access_of(settings)
    allows = placement_policy(settings).allows
    placement = PlacementApplication(identify=identify, allows=allows, options=options_of(settings))
    remote = following(served.settings, os.environ) if settings.remote_url else None
    roost, serving = open_product(served.url, served.settings, remote=remote)
    own = v1.Application(roost, identify=identify)

    def sites(serving: Serving, health: "Health") -> "Sites":
        apis = ((PLACEMENT, placement), (v1.PREFIX, own)) if remote is None else ((v1.PREFIX, own),)
        below = {
            prefix: AsgiApplication(
                api, serving, settings=msgspec.structs.replace(settings, prefix=prefix), authenticate=authenticate
            )
            for prefix, api in apis
        }
        return [(Front(below, otherwise=Observing(health, others=tuple(below))), listener)]

    if remote is not None:
        remote.start(serving)
    try:
        answer(serving, sites, settings=settings, parent=parent, on_ready=on_ready)
    finally:
        if remote is not None:
            remote.stop()


def open_product(url: str, settings: Settings, *, remote: Following | None = None) -> tuple[Roost, Serving]:
    """Open a database for the whole product, and the thread that serves it.

    Args:
        url: of PostgreSQL, the path of a SQLite file, or ``sqlite://`` for a database in memory.
        remote: keeps the amounts, and tells which hosts there are; None: the database does.

    Returns:
        The product, which from now on nobody else touches, and the thread that does.

    Raises:
        BadSettings: a rule or an option of one is unknown or wrong.
        Unavailable: the database cannot be used; the message says why.
    """
    with store_served(url, settings) as store:
        current = Current(store, clock=SystemClock())
        if remote is not None:
            remote.follow(current)
        roost = Roost(store, settings, current=current, remote=None if remote is None else remote.placement)
        # The thread tidies up after its groups, so ``Roost.outcomes``, which would do so in the middle, is passed by.
        return roost, serving_on(current, settings, decide=roost.scheduler.work)
