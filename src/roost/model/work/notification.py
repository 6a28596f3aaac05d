"""Notifications: the start and end of decisions, the events of instances, and changes by clients."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

# Version of the payload. Readers of a major version can read all its minor versions.
VERSION = "1.0"


class InstancePlace(msgspec.Struct, frozen=True, kw_only=True):
    """The host of one instance."""

    instance_uuid: Annotated[str, Meta(description="Uuid of the instance.")]
    host: Annotated[str, Meta(description="Name of the service.")]
    node: Annotated[str, Meta(description="Name of the node.")]
    cell: Annotated[str, Meta(description="Name of the cell.")]


class HostSelection(msgspec.Struct, frozen=True, kw_only=True, tag_field="about", tag="decision"):
    """A request for hosts; at its end, also the result."""

    project_id: Annotated[str, Meta(description="Project of the instances.")]
    user_id: Annotated[str, Meta(description="User of the request.")]
    flavor: Annotated[str, Meta(description="Name of the flavor; may be empty.")]
    count: Annotated[int, Meta(description="Number of requested instances.")]
    instance_uuids: Annotated[list[str], Meta(description="Uuids of the instances, if the request has them.")]
    start_id: Annotated[str | None, Meta(description="Id of the start event; null in the start event.")] = None
    outcome: Annotated[
        Literal["granted", "refused", "failed"] | None,
        Meta(description="Outcome for all instances; failed: no decision; null: at the start."),
    ] = None
    decision_uuid: Annotated[str | None, Meta(description="Uuid of the decision; null: none, or not yet.")] = None
    reason: Annotated[str, Meta(description="Reason of a refusal or failure, in one line; otherwise empty.")] = ""
    placed: Annotated[list[InstancePlace], Meta(description="One place per granted instance.")] = []


class StoryEvent(msgspec.Struct, frozen=True, kw_only=True, tag_field="about", tag="story"):
    """A line of the story of an instance, an operation or an agent."""

    number: Annotated[int, Meta(description="Number of the event, the same from every process.")]
    instance_uuid: Annotated[
        str | None, Meta(description="Uuid of the instance; null: several instances, or none.")
    ] = None
    operation_uuid: Annotated[str | None, Meta(description="Uuid of the operation; null: none.")] = None
    told: Annotated[dict[str, str], Meta(description="Details, such as host and problem.")] = {}


class ChangeEvent(msgspec.Struct, frozen=True, kw_only=True, tag_field="about", tag="change"):
    """A change by a client."""

    number: Annotated[int, Meta(description="Number of the record of the change, the same from every process.")]
    object: Annotated[str, Meta(description="Name or uuid of the changed object; empty: none.")]
    user_id: Annotated[str, Meta(description="User of the client; empty: the server itself.")]
    project_id: Annotated[str, Meta(description="Project of the client; empty: none.")]
    request_id: Annotated[str, Meta(description="Id of the request.")]
    told: Annotated[dict[str, str], Meta(description="Details, such as the reason of a disabled host.")] = {}


class Notification(msgspec.Struct, frozen=True, kw_only=True):
    """A notification."""

    id: Annotated[str, Meta(description="Unique id; within one process, the part after the hyphen rises.")]
    event_type: Annotated[str, Meta(description="Type, such as scheduler.select_destinations.end.")]
    version: Annotated[str, Meta(description="Version of the payload; within a major version fields are only added.")]
    publisher: Annotated[str, Meta(description="Machine and process of the decision.")]
    time_s: Annotated[float, Meta(description="Time, in seconds since the epoch.")]
    payload: Annotated[
        HostSelection | StoryEvent | ChangeEvent, Meta(description="Payload; its field about names its type.")
    ]
