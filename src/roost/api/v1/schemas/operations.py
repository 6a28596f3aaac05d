"""Operations on instances as the API writes them."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from roost.model.work.operation import Kind
from roost.model.work.orders import WAIT_MAX_S

Outcome = Literal["open", "done", "failed"]


class ShownEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a story."""

    at_s: Annotated[float, Meta(description="When, in seconds since the epoch.")]
    kind: Annotated[str, Meta(description="What happened, such as spawn.failed.")]
    instance: Annotated[str | None, Meta(description="Uuid of the instance; null: it is about several, or none.")]
    told: Annotated[dict[str, str], Meta(description="More of it, by name.")]


class ShownOrder(msgspec.Struct, frozen=True, kw_only=True):
    """What the agent of a host was told to do."""

    number: Annotated[int, Meta(description="Of the orders of the operation.")]
    host: Annotated[str, Meta(description="Name of the service, in lower case.")]
    action: Annotated[str, Meta(description="Such as spawn, destroy, power_off.")]
    state: Annotated[Literal["waiting", "taken", "answered", "withdrawn"], Meta(description="taken: the agent has it.")]
    outcome: Annotated[str, Meta(description="What the agent said; empty: nothing yet.")]
    problem: Annotated[str, Meta(description="What went wrong there.")]


class ShownSubject(msgspec.Struct, frozen=True, kw_only=True):
    """An instance that an operation is about, as it is now."""

    uuid: Annotated[str, Meta(description="Its uuid.")]
    name: Annotated[str, Meta(description="Its name.")]
    status: Annotated[str, Meta(description="Its status.")]
    host: Annotated[str, Meta(description="Name of the service that it is on; empty: it is on none.")]
    fault: Annotated[str, Meta(description="Why it is in ERROR, or why the last thing asked of it was not done.")]
    operation: Annotated[
        str | None, Meta(description="Uuid of the part of the operation that is about it; null: there is none.")
    ]


class ShownOperation(msgspec.Struct, frozen=True, kw_only=True):
    """Something that was asked of instances, and how far it is."""

    uuid: Annotated[str, Meta(description="Its uuid.")]
    kind: Annotated[Kind, Meta(description="build: a request for instances; spawn: the part of it about one of them.")]
    outcome: Annotated[
        Outcome, Meta(description="open: it or a part of it goes on; failed: it or a part of it was not done.")
    ]
    step: Annotated[str, Meta(description="What comes next.")]
    problem: Annotated[str, Meta(description="Why it failed.")]
    is_cancelled: Annotated[bool, Meta(description="Whether it was told to end.")]
    created_at_s: Annotated[float, Meta(description="When it was asked, in seconds since the epoch.")]
    changed_at_s: Annotated[float, Meta(description="When it went on, likewise.")]
    instances: Annotated[list[ShownSubject], Meta(description="What it is about.")]
    orders: Annotated[list[ShownOrder], Meta(description="What hosts were told for it, those of its parts left out.")]
    story: Annotated[list[ShownEvent], Meta(description="What happened, oldest first, that of its parts left out.")]


class OperationQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How long its end is waited for."""

    wait_s: Annotated[
        Annotated[float, Meta(ge=0, le=WAIT_MAX_S)],
        Meta(description="So long at most, in seconds; the answer comes as soon as the operation is over."),
    ] = 0.0
