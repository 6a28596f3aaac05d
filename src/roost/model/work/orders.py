"""What agents and a server say to each other: who lives on a host, what is ordered there, and what became of it.

On the wire it is JSON, and so it is in rows of orders.
"""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from roost.model.names import AMOUNT_MAX
from roost.model.work.guest import Found, GuestSpec, Prepared

# Agents that ask together, orders that are told at once, and orders that an agent may name.
AGENTS_MAX = 1_000
ORDERS_MAX = 1_000
HELD_MAX = 10_000
# For which a server may be asked to wait until there is something to do, in seconds.
WAIT_MAX_S = 25.0
PROBLEM_MAX = 2_000

# The end of a text, which ``$`` alone also sees before a line break there.
_END = r"$(?!\n)"
_Uuid = Annotated[str, Meta(pattern=f"^[0-9a-f]{{8}}(-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}}{_END}")]
# Not every database can keep a NUL.
_NO_NUL = r"^[^\x00]*$"
_Name = Annotated[str, Meta(min_length=1, max_length=255, pattern=_NO_NUL)]
_Said = Annotated[str, Meta(max_length=255, pattern=_NO_NUL)]
_Number = Annotated[int, Meta(ge=0, le=AMOUNT_MAX)]
_OrderId = Annotated[int, Meta(ge=0, le=2**63 - 1)]


class OwnNode(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A node of a host."""

    node: Annotated[_Name, Meta(description="Its name.")]
    uuid: Annotated[_Uuid, Meta(description="Of its root provider.")]


class Registration(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An agent lives on a host, with what it found there."""

    run: Annotated[_Uuid, Meta(description="One life of the agent's process.")]
    driver: Annotated[_Name, Meta(description="What runs its guests.")]
    software: Annotated[_Said, Meta(description="What the agent is, with its version.")] = ""
    cell: Annotated[_Said, Meta(description="Whose conductor sends it orders; empty: the only one.")] = ""
    nodes: Annotated[tuple[OwnNode, ...], Meta(max_length=AGENTS_MAX, description="Of the host.")]
    guests: Annotated[tuple[Found, ...], Meta(max_length=HELD_MAX, description="All that its driver has.")] = ()
    paused: Annotated[
        tuple[_Uuid, ...],
        Meta(max_length=HELD_MAX, description="Uuids of guests that it stopped until it is told whether they stay."),
    ] = ()


class Registered(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of the guests of a host, and whether new ones come.

    Until a host is ready, its agent gets no orders but those to destroy what is not its own; then it becomes ready.
    """

    fence: Annotated[int, Meta(description="Rises with each run; polls name it.")]
    is_ready: Annotated[bool, Meta(description="Whether the host counts as up.")]
    keep: Annotated[tuple[str, ...], Meta(description="Uuids of guests that are its own.")] = ()
    hold: Annotated[tuple[str, ...], Meta(description="Uuids of guests to stop and keep: it is not decided yet.")] = ()
    destroy: Annotated[tuple[str, ...], Meta(description="Uuids of guests that are not its own: orders follow.")] = ()
    is_disabled: Annotated[bool, Meta(description="Whether an operator lets nothing new be placed on it.")] = False
    down_after_s: Annotated[float, Meta(description="It counts as down when it was not heard for so long.")]


class Spawn(msgspec.Struct, frozen=True, tag_field="action", tag="spawn"):
    """Build a guest and let it run."""

    guest: GuestSpec


class Rebuild(msgspec.Struct, frozen=True, tag_field="action", tag="rebuild"):
    """Give a guest the disk of an image anew."""

    guest: GuestSpec


class Prepare(msgspec.Struct, frozen=True, tag_field="action", tag="prepare"):
    """Keep room for a guest that is to come."""

    guest: GuestSpec


class Finish(msgspec.Struct, frozen=True, tag_field="action", tag="finish"):
    """Make a guest of what has arrived."""

    guest: GuestSpec


class Destroy(msgspec.Struct, frozen=True, tag_field="action", tag="destroy"):
    """Let nothing be left of a guest."""


class Discard(msgspec.Struct, frozen=True, tag_field="action", tag="discard"):
    """Undo what an operation prepared and finished here."""

    of: str = ""  # uuid of the operation; empty: the order's own
    is_sparing: bool = False  # whether a guest that runs here by then stays, as one that came while it ran


class Settle(msgspec.Struct, frozen=True, tag_field="action", tag="settle"):
    """Let what an operation finished here stay, and give back what was kept here to undo it."""

    of: str = ""  # as for ``Discard``


class Inspect(msgspec.Struct, frozen=True, tag_field="action", tag="inspect"):
    """Say what there is of a guest."""


class Save(msgspec.Struct, frozen=True, tag_field="action", tag="save"):
    """Save the disk of a stopped guest as an image."""


class Power(msgspec.Struct, frozen=True, tag_field="action", tag="power"):
    """Let a guest run, or stop it and keep it."""

    is_on: bool


class SendDisk(msgspec.Struct, frozen=True, tag_field="action", tag="send_disk"):
    """Send the disk of a stopped guest to where it is to arrive."""

    to: Prepared


class LiveMigrate(msgspec.Struct, frozen=True, tag_field="action", tag="live_migrate"):
    """Let a running guest run elsewhere."""

    to: Prepared


class Reboot(msgspec.Struct, frozen=True, tag_field="action", tag="reboot"):
    """Let a running guest begin anew."""


class AbortMigration(msgspec.Struct, frozen=True, tag_field="action", tag="abort_migration"):
    """Let a live migration that is under way fail."""


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
# As rows of orders say it.
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
    """What the row of an order says beside the action; which fields there are is told by that."""

    operation: str  # its uuid, the mark of what comes to be
    limit_s: float = 0.0  # so long an answer is waited for; 0: for ever
    guest: GuestSpec | None = None  # of spawn, rebuild, prepare and finish
    to: Prepared | None = None  # of send_disk and live_migrate
    of: str = ""  # of discard and settle
    is_sparing: bool = False  # of discard


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """One act that is asked of one agent. The same operation and number is the same order, however often it comes."""

    id: Annotated[int, Meta(description="By which it is answered.")]
    host: Annotated[str, Meta(description="Whose agent it is for.")]
    operation: Annotated[str, Meta(description="Uuid of the operation that it is a part of.")]
    number: Annotated[int, Meta(description="Of the orders of the operation.")]
    instance: Annotated[str | None, Meta(description="Uuid of the instance that it is about.")] = None
    turn: Annotated[int, Meta(description="Rises with each operation of an instance; a lower one is out of date.")] = 0
    act: Annotated[Act, Meta(description="What is asked.")]
    limit_s: Annotated[float, Meta(description="So long an answer is waited for; 0: for ever.")]


class PollingAgent(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An agent that asks for orders."""

    host: Annotated[_Name, Meta(description="Where it lives.")]
    run: Annotated[_Uuid, Meta(description="As it was registered.")]
    fence: Annotated[_Number, Meta(description="As it was told then.")]
    held: Annotated[
        tuple[_OrderId, ...],
        Meta(max_length=HELD_MAX, description="Ids of orders that it has, and that it need not be told again."),
    ] = ()


class Poll(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Agents of one process are alive, and ask for orders."""

    agents: Annotated[
        tuple[PollingAgent, ...], Meta(min_length=1, max_length=AGENTS_MAX, description="Each of another host.")
    ]
    wait_s: Annotated[
        Annotated[float, Meta(ge=0, le=WAIT_MAX_S)], Meta(description="So long the answer may wait for an order.")
    ] = WAIT_MAX_S
    most: Annotated[Annotated[int, Meta(ge=1, le=ORDERS_MAX)], Meta(description="So many orders are told at most.")] = (
        100
    )


class Polled(msgspec.Struct, frozen=True, kw_only=True):
    """What agents are to do."""

    orders: Annotated[tuple[Order, ...], Meta(description="Of one instance in the order in which they are done.")] = ()
    withdrawn: Annotated[tuple[int, ...], Meta(description="Ids of held orders that nobody wants any more.")] = ()
    settled: Annotated[
        tuple[int, ...], Meta(description="Ids of held orders that are answered, or that nobody knows of.")
    ] = ()
    unknown: Annotated[tuple[str, ...], Meta(description="Hosts whose agents must register anew.")] = ()
    superseded: Annotated[
        tuple[str, ...], Meta(description="Hosts of which another agent, or another run of it, is registered.")
    ] = ()
    disabled: Annotated[tuple[str, ...], Meta(description="Hosts on which an operator lets nothing be placed.")] = ()


class Answer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What became of an order."""

    outcome: Annotated[
        Literal["ok", "failed", "aborted", "stale"],
        Meta(
            description="failed: another host may do; aborted: none would; stale: a later operation of the instance "
            "was here already."
        ),
    ]
    problem: Annotated[str, Meta(max_length=PROBLEM_MAX, description="Why it is not ok.")] = ""
    found: Annotated[Found | None, Meta(description="What there is of the guest; null: nothing.")] = None
    prepared: Annotated[Prepared | None, Meta(description="Where the guest is to arrive.")] = None
    saved: Annotated[str, Meta(max_length=255, description="Id of the image that was saved.")] = ""


class OrderAnswer(Answer, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What became of an order, and who says so."""

    run: Annotated[_Uuid, Meta(description="Of the agent.")]


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of an answer."""

    is_wanted: Annotated[
        bool, Meta(description="false: the order was withdrawn, and what was done for it is to be undone.")
    ]
