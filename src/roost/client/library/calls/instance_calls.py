"""Calls about instances and operations."""

from typing import Literal

import msgspec

from roost.api.v1.schemas.instances import (
    AcceptedInstances,
    DeleteQuery,
    DetailedInstance,
    InstancesBody,
    InstancesPage,
    InstancesQuery,
    OperationReference,
)
from roost.api.v1.schemas.operations import OperationQuery, OperationsPage, OperationsQuery, ShownOperation
from roost.client.library.exchange import Answer, Call, answer_reader, encode_body, ignore_answer, path_of

# The last part of the path of a change.
Act = Literal[
    "start",
    "stop",
    "reboot",
    "rebuild",
    "reset",
    "shelve",
    "offload",
    "unshelve",
    "resize",
    "migrate",
    "confirm",
    "revert",
    "live-migrate",
    "evacuate",
]


def boot(body: InstancesBody, *, key: str) -> Call[AcceptedInstances]:
    """Boot instances."""
    path = path_of("instances")
    return Call(method="POST", path=path, body=encode_body(body), key=key, read=answer_reader(AcceptedInstances))


def show(uuid: str) -> Call[DetailedInstance]:
    """Show an instance."""
    return Call(method="GET", path=path_of("instances", uuid), read=answer_reader(DetailedInstance))


def list_page(query: InstancesQuery) -> Call[InstancesPage]:
    """List a page of instances."""
    return Call(method="GET", path=path_of("instances", query=query), read=answer_reader(InstancesPage))


def change(uuid: str, act: Act, body: msgspec.Struct | None, *, key: str) -> Call[OperationReference]:
    """Begin an operation on an instance."""
    return Call(
        method="POST",
        path=path_of("instances", uuid, act),
        body=b"" if body is None else encode_body(body),
        key=key,
        read=answer_reader(OperationReference),
    )


def delete(uuid: str, query: DeleteQuery, *, key: str) -> Call[OperationReference | None]:
    """Delete an instance, or release a claim."""
    accepted = answer_reader(OperationReference)

    def read(answer: Answer) -> OperationReference | None:
        return accepted(answer) if answer.status == 202 else None

    return Call(method="DELETE", path=path_of("instances", uuid, query=query), key=key, read=read)


def show_operation(uuid: str, query: OperationQuery) -> Call[ShownOperation]:
    """Show an operation; wait for its end."""
    return Call(method="GET", path=path_of("operations", uuid, query=query), read=answer_reader(ShownOperation))


def list_operations(query: OperationsQuery) -> Call[OperationsPage]:
    """List a page of operations."""
    return Call(method="GET", path=path_of("operations", query=query), read=answer_reader(OperationsPage))


def cancel(uuid: str) -> Call[None]:
    """Cancel a drain or an applied plan."""
    return Call(method="DELETE", path=path_of("operations", uuid), read=ignore_answer)


def pause(uuid: str) -> Call[None]:
    """Pause a drain or an applied plan."""
    return Call(method="POST", path=path_of("operations", uuid, "pause"), read=ignore_answer)


def resume(uuid: str) -> Call[None]:
    """Resume a drain or an applied plan."""
    return Call(method="POST", path=path_of("operations", uuid, "resume"), read=ignore_answer)
