"""The protocol between agents and the server: registration, orders, and replies.

It is JSON on the wire and in the rows of orders.
"""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from roost.model.names import AMOUNT_MAX
from roost.model.work.guest import GuestReport, GuestSpec, TransferTarget

# Maximum number of agents in a poll, of orders in its answer, and of orders that an agent holds.
AGENTS_MAX = 1_000
ORDERS_MAX = 1_000
HELD_MAX = 10_000
# Maximum wait of a poll, in seconds.
WAIT_MAX_S = 25.0
PROBLEM_MAX = 2_000
# Maximum turn in an answer: further operations of the instance need higher numbers.
TURN_MAX = 2**53

# The end of a text; ``$`` alone also matches before a trailing newline.
_END = r"$(?!\n)"
_Uuid = Annotated[str, Meta(pattern=f"^[0-9a-f]{{8}}(-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}}{_END}")]
# PostgreSQL cannot store NUL.
_NO_NUL = r"^[^\x00]*$"
_Name = Annotated[str, Meta(min_length=1, max_length=255, pattern=_NO_NUL)]
_Text = Annotated[str, Meta(max_length=255, pattern=_NO_NUL)]
_Number = Annotated[int, Meta(ge=0, le=AMOUNT_MAX)]
_OrderId = Annotated[int, Meta(ge=0, le=2**63 - 1)]


class OwnNode(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A node of a host."""

    node: Annotated[_Name, Meta(description="Name of the node.")]
    uuid: Annotated[_Uuid, Meta(description="Uuid of its root provider.")]


class Registration(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The registration of an agent, with the guests on its host."""

    run: Annotated[_Uuid, Meta(description="Uuid of the run of the agent's process.")]
    driver: Annotated[_Name, Meta(description="Name of the driver that runs its guests.")]
    software: Annotated[_Text, Meta(description="Name and version of the agent.")] = ""
    cell: Annotated[_Text, Meta(description="Cell of its conductor; empty: the only cell.")] = ""
    nodes: Annotated[tuple[OwnNode, ...], Meta(max_length=AGENTS_MAX, description="Nodes of the host.")]
    guests: Annotated[tuple[GuestReport, ...], Meta(max_length=HELD_MAX, description="All guests of its driver.")] = ()
    paused: Annotated[
        tuple[_Uuid, ...],
        Meta(max_length=HELD_MAX, description="Uuids of guests that it stopped until the server decides about them."),
    ] = ()


class RegistrationAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a registration: the guests to keep, to hold and to destroy; any other guest stays as it is.

    A host becomes ready once all its guests belong to it. Until then, its agent gets only orders to destroy foreign
    guests.
    """

    fence: Annotated[int, Meta(description="Number of the run for polls; it rises with each run.")]
    is_ready: Annotated[bool, Meta(description="Whether the host counts as up.")]
    keep: Annotated[tuple[str, ...], Meta(description="Uuids of guests that belong to the host.")] = ()
    hold: Annotated[tuple[str, ...], Meta(description="Uuids of guests to stop and keep until a decision.")] = ()
    destroy: Annotated[
        tuple[str, ...], Meta(description="Uuids of foreign guests; orders to destroy them follow.")
    ] = ()
    is_disabled: Annotated[bool, Meta(description="Whether an operator disabled the host.")] = False
    down_after_s: Annotated[float, Meta(description="Seconds without a heartbeat after which the host is down.")]


class Spawn(msgspec.Struct, frozen=True, tag_field="action", tag="spawn"):
    """Build and start a guest."""

    guest: GuestSpec


class Rebuild(msgspec.Struct, frozen=True, tag_field="action", tag="rebuild"):
    """Rebuild the disk of a guest from an image."""

    guest: GuestSpec


class Prepare(msgspec.Struct, frozen=True, tag_field="action", tag="prepare"):
    """Prepare the host for an arriving guest."""

    guest: GuestSpec


class Finish(msgspec.Struct, frozen=True, tag_field="action", tag="finish"):
    """Build the guest from its transferred disk."""

    guest: GuestSpec


class Destroy(msgspec.Struct, frozen=True, tag_field="action", tag="destroy"):
    """Remove a guest completely."""


class Discard(msgspec.Struct, frozen=True, tag_field="action", tag="discard"):
    """Undo the preparations of an operation."""

    of: str = ""  # uuid of the operation; empty: that of the order
    is_sparing: bool = False  # whether to keep the guest if it runs on this host, as after a live migration


class Settle(msgspec.Struct, frozen=True, tag_field="action", tag="settle"):
    """Keep the result of an operation, and release the data kept to undo it."""

    of: str = ""  # as for ``Discard``


class Inspect(msgspec.Struct, frozen=True, tag_field="action", tag="inspect"):
    """Report the state of a guest."""


class Save(msgspec.Struct, frozen=True, tag_field="action", tag="save"):
    """Save the disk of a stopped guest as an image."""


class Power(msgspec.Struct, frozen=True, tag_field="action", tag="power"):
    """Start or stop a guest."""

    is_on: bool


class SendDisk(msgspec.Struct, frozen=True, tag_field="action", tag="send_disk"):
    """Send the disk of a stopped guest to its target."""

    to: TransferTarget


class LiveMigrate(msgspec.Struct, frozen=True, tag_field="action", tag="live_migrate"):
    """Move a running guest to its target."""

    to: TransferTarget


class Reboot(msgspec.Struct, frozen=True, tag_field="action", tag="reboot"):
    """Reboot a running guest."""


class AbortMigration(msgspec.Struct, frozen=True, tag_field="action", tag="abort_migration"):
    """Abort a live migration."""


Act = (
    Spawn
    | Rebuild
    | Prepare
    | Finish
    | Destroy
    | Discard
    | Settle
    | Inspect
    | Save
    | Power
    | SendDisk
    | LiveMigrate
    | Reboot
    | AbortMigration
)
# Actions in the rows of orders.
Action = Literal[
    "spawn",
    "destroy",
    "power_on",
    "power_off",
    "reboot",
    "rebuild",
    "prepare",
    "discard",
    "settle",
    "send_disk",
    "finish",
    "live_migrate",
    "abort_migration",
    "save",
    "inspect",
]


class OrderBody(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The body in the row of an order. The action, in its own column, decides which fields are set."""

    operation: str  # uuid of the operation; the agent marks guests with it
    limit_s: float = 0.0  # timeout of the reply; 0: none
    guest: GuestSpec | None = None  # of spawn, rebuild, prepare and finish
    to: TransferTarget | None = None  # of send_disk and live_migrate
    of: str = ""  # of discard and settle
    is_sparing: bool = False  # of discard


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """An order to an agent. Operation and number identify it, also when it is delivered again."""

    id: Annotated[int, Meta(description="Id of the order, for its reply.")]
    host: Annotated[str, Meta(description="Host of the agent.")]
    operation: Annotated[str, Meta(description="Uuid of its operation.")]
    number: Annotated[int, Meta(description="Number of the order within the operation.")]
    instance: Annotated[str | None, Meta(description="Uuid of the instance.")] = None
    turn: Annotated[
        int, Meta(description="Number that rises with each operation of an instance; a lower one is stale.")
    ] = 0
    act: Annotated[Act, Meta(description="The action.")]
    limit_s: Annotated[float, Meta(description="Timeout of the reply in seconds; 0: none.")]


class PollingAgent(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An agent in a poll."""

    host: Annotated[_Name, Meta(description="Host of the agent.")]
    run: Annotated[_Uuid, Meta(description="Registered run.")]
    fence: Annotated[_Number, Meta(description="Fence of the registration.")]
    held: Annotated[
        tuple[_OrderId, ...],
        Meta(max_length=HELD_MAX, description="Ids of orders that it holds; they are not delivered again."),
    ] = ()


class Poll(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Heartbeats of the agents of one process, and a request for orders."""

    agents: Annotated[
        tuple[PollingAgent, ...], Meta(min_length=1, max_length=AGENTS_MAX, description="Agents of different hosts.")
    ]
    wait_s: Annotated[
        Annotated[float, Meta(ge=0, le=WAIT_MAX_S)], Meta(description="Maximum wait for orders, in seconds.")
    ] = WAIT_MAX_S
    most: Annotated[Annotated[int, Meta(ge=1, le=ORDERS_MAX)], Meta(description="Maximum number of orders.")] = 100


class PollAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Work for agents."""

    orders: Annotated[
        tuple[Order, ...], Meta(description="Orders; those of one instance are in order of execution.")
    ] = ()
    withdrawn: Annotated[tuple[int, ...], Meta(description="Ids of held orders that were withdrawn.")] = ()
    settled: Annotated[
        tuple[int, ...], Meta(description="Ids of held orders with a stored reply, and of unknown orders.")
    ] = ()
    unknown: Annotated[tuple[str, ...], Meta(description="Hosts whose agents must register again.")] = ()
    superseded: Annotated[tuple[str, ...], Meta(description="Hosts that another agent or run has taken over.")] = ()
    disabled: Annotated[tuple[str, ...], Meta(description="Hosts that an operator disabled.")] = ()


class Answer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The reply to an order."""

    outcome: Annotated[
        Literal["ok", "failed", "aborted", "stale"],
        Meta(
            description="failed: another host may succeed; aborted: no host would succeed; stale: the agent already "
            "has a later operation of the instance."
        ),
    ]
    problem: Annotated[str, Meta(max_length=PROBLEM_MAX, description="Reason of a failure.")] = ""
    found: Annotated[GuestReport | None, Meta(description="State of the guest; null: no guest.")] = None
    prepared: Annotated[TransferTarget | None, Meta(description="Target for an arriving guest.")] = None
    saved: Annotated[str, Meta(max_length=255, description="Id of the saved image.")] = ""
    turn: Annotated[
        int,
        Meta(ge=0, le=TURN_MAX, description="stale: highest turn that the agent began for the instance; 0: unknown."),
    ] = 0


class OrderAnswer(Answer, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The reply to an order, with the run of the agent."""

    run: Annotated[_Uuid, Meta(description="Run of the agent.")]


class Acknowledgement(msgspec.Struct, frozen=True, kw_only=True):
    """The acknowledgement of a reply."""

    is_wanted: Annotated[bool, Meta(description="false: the order was withdrawn, and the agent undoes its work.")]
