"""What agents and the server say to each other: registrations, orders, answers. On the wire and in rows it is JSON."""

from typing import Literal

import msgspec

from roost.model.guest import GuestSpec, GuestState, Prepared

Action = Literal[
    "spawn", "destroy", "power_on", "power_off", "reboot", "rebuild", "prepare", "discard", "send_disk", "finish",
    "live_migrate", "abort_migration", "save", "inspect",
]  # fmt: skip


class Guest(msgspec.Struct, frozen=True, kw_only=True):
    """An instance that an agent has."""

    uuid: str
    state: GuestState = "running"
    operation: str = ""  # by which it came to be what it is


class Registration(msgspec.Struct, frozen=True, kw_only=True):
    """An agent begins, or comes back, and says what it has."""

    host: str  # name of the service
    run: bytes  # one life of the agent's process, 16 bytes; it may register again
    cell: str = ""
    driver: str
    software: str = ""
    nodes: dict[str, str] = {}  # name -> uuid of its root provider
    guests: tuple[Guest, ...] = ()


class Registered(msgspec.Struct, frozen=True, kw_only=True):
    """What the server makes of a registration."""

    fence: int  # names the registration from now on
    is_ready: bool  # else only orders to destroy come until the host is clean
    keep: tuple[str, ...] = ()  # uuids of instances: they stay as they are
    hold: tuple[str, ...] = ()  # they must not run until it is known where they belong
    destroy: tuple[str, ...] = ()  # they are to go; orders to do so follow


class Polled(msgspec.Struct, frozen=True, kw_only=True):
    """An agent asks for orders."""

    host: str
    run: bytes
    fence: int
    known: tuple[int, ...] = ()  # ids of orders that it has in its journal


class OrderBody(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is asked of an agent beside the action; which fields there are is told by that."""

    operation: str  # its uuid, the mark of what comes to be
    limit_s: float = 0.0  # so long an answer is waited for; 0: for ever
    guest: GuestSpec | None = None  # of spawn, rebuild, prepare and finish
    to: Prepared | None = None  # of send_disk and live_migrate


class Ordered(msgspec.Struct, frozen=True, kw_only=True):
    """An order as an agent gets it."""

    id: int
    host: str  # as in ``AgentRow``
    number: int  # of the operation's orders
    turn: int  # of the instance: a lower one than was seen before is stale
    instance: str  # uuid
    action: Action
    body: OrderBody


class Delivered(msgspec.Struct, frozen=True, kw_only=True):
    """Orders for agents that asked, for each instance in the order in which they are to be done."""

    orders: tuple[Ordered, ...] = ()
    withdrawn: tuple[int, ...] = ()  # of those known: whatever was done for them is to be undone
    settled: tuple[int, ...] = ()  # of those known: answered, or there is no such order; they may be forgotten


class Answer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What came of an order."""

    # failed: elsewhere it may work. aborted: nowhere. stale: the agent knows of a later operation on the instance.
    outcome: Literal["ok", "failed", "aborted", "stale"]
    problem: str = ""
    told: dict[str, str] = {}  # what the action gives, such as where a guest is to arrive
