"""The whole product served on one port."""

from collections.abc import Callable
from socket import socket
from typing import TYPE_CHECKING

import msgspec

from roost.app.placement import Served, placement_policy
from roost.app.serving import answer, serving_on, store_served
from roost.machine import SystemClock
from roost.model.settings import Settings
from roost.placement.current import Current
from roost.placement.serving import Serving
from roost.product import Roost
from roost.store.opening import open_reader

if TYPE_CHECKING:
    from roost.api.observing import Health
    from roost.api.placement.in_process import InProcess
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
    roost, serving = open_product(served.url, served.settings)
    own = v1.Application(roost, identify=identify)

    def sites(serving: Serving, health: "Health") -> "Sites":
        below = {
            prefix: AsgiApplication(
                api, serving, settings=msgspec.structs.replace(settings, prefix=prefix), authenticate=authenticate
            )
            for prefix, api in ((PLACEMENT, placement), (v1.PREFIX, own))
        }
        return [(Front(below, otherwise=Observing(health, others=tuple(below))), listener)]

    answer(serving, sites, settings=settings, parent=parent, on_ready=on_ready)


def open_product(url: str, settings: Settings) -> tuple[Roost, Serving]:
    """Open a database for the whole product, and the thread that serves it.

    Args:
        url: of PostgreSQL, the path of a SQLite file, or ``sqlite://`` for a database in memory.

    Returns:
        The product, which from now on nobody else touches, and the thread that does.

    Raises:
        BadSettings: a rule or an option of one is unknown or wrong.
        Unavailable: the database cannot be used; the message says why.
    """
    with store_served(url, settings) as store:
        current = Current(store, clock=SystemClock())
        roost = Roost(store, settings, current=current)
        # The thread tidies up after its groups, so ``Roost.outcomes``, which would do so in the middle, is passed by.
        return roost, serving_on(current, settings, decide=roost.scheduler.work)


def open_own(url: str, settings: Settings, *, is_read: bool) -> "InProcess":
    """Open a database for Roost's own API in this process, without a server; whoever asks is believed.

    Args:
        url: of PostgreSQL, or the path of a SQLite file.
        is_read: whether it is only read, beside the processes that serve it.

    Raises:
        BadSettings: a rule or an option of one is unknown or wrong.
        Unavailable: the database cannot be used; the message says why.
    """
    from roost.api.placement.auth import believe
    from roost.api.placement.in_process import InProcess
    from roost.api.v1.application import Application

    if is_read:
        store = open_reader(url)
        try:
            current = Current(store, clock=SystemClock())
            roost, serving = Roost(store, settings, current=current), Serving(current)
        except BaseException:
            store.close()
            raise
    else:
        roost, serving = open_product(url, settings)
    return InProcess(Application(roost, identify=believe), serving)
