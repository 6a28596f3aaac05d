"""What others are told of a decision, that it began and what came of it, and of what happens to instances."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

# Of the payload: what reads one of a major version reads all of it.
VERSION = "1.0"


class Placed(msgspec.Struct, frozen=True, kw_only=True):
    """Where one instance is."""

    instance_uuid: Annotated[str, Meta(description="The instance.")]
    host: Annotated[str, Meta(description="Name of the service.")]
    node: Annotated[str, Meta(description="Name of the node.")]
    cell: Annotated[str, Meta(description="Its cell.")]


class Selecting(msgspec.Struct, frozen=True, kw_only=True, tag_field="about", tag="decision"):
    """A request for hosts, and at its end what came of it."""

    project_id: Annotated[str, Meta(description="Whose instances they are.")]
    user_id: Annotated[str, Meta(description="Who asked for them.")]
    flavor: Annotated[str, Meta(description="Name of the flavor; may be empty.")]
    count: Annotated[int, Meta(description="Instances asked for.")]
    instance_uuids: Annotated[list[str], Meta(description="Their uuids, where the request says them.")]
    start_id: Annotated[str | None, Meta(description="id of the event of its start; null in that event.")] = None
    outcome: Annotated[
        Literal["granted", "refused", "failed"] | None,
        Meta(description="For all instances, or for none; failed: there is no decision. null at the start."),
    ] = None
    decision_uuid: Annotated[str | None, Meta(description="The decision; null where there is none (yet).")] = None
    reason: Annotated[str, Meta(description="Of a refusal or a failure, in one line; else empty.")] = ""
    placed: Annotated[list[Placed], Meta(description="One an instance that was granted.")] = []


class Happening(msgspec.Struct, frozen=True, kw_only=True, tag_field="about", tag="story"):
    """A line of the story of an instance, an operation or an agent."""

    number: Annotated[int, Meta(description="Of the line, the same whichever process tells it.")]
    instance_uuid: Annotated[str | None, Meta(description="The instance; null: it is about several, or none.")] = None
    operation_uuid: Annotated[str | None, Meta(description="What is done to it; null: it is about no operation.")] = (
        None
    )
    told: Annotated[dict[str, str], Meta(description="More of it, in words, such as host and problem.")] = {}


class Notification(msgspec.Struct, frozen=True, kw_only=True):
    """One event."""

    id: Annotated[str, Meta(description="What no other event has; those of one process rise after the hyphen.")]
    event_type: Annotated[str, Meta(description="Such as scheduler.select_destinations.end.")]
    version: Annotated[str, Meta(description="Of the payload; within one major version fields are only added.")]
    publisher: Annotated[str, Meta(description="Machine and process that decide.")]
    time_s: Annotated[float, Meta(description="The moment, in seconds since the epoch.")]
    payload: Annotated[Selecting | Happening, Meta(description="What it is about says the field of that name.")]
