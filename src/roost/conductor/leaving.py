"""How an instance leaves its host for good."""

from typing import Literal, NamedTuple

import msgspec

from roost.conductor.remembered import Documents, request_of
from roost.conductor.targets import away_from
from roost.model.operation import may_begin
from roost.model.request import Request
from roost.model.work import StatusRow

How = Literal["live_migrate", "migrate", "offload"]
_WAYS: dict[str, How] = {"ACTIVE": "live_migrate", "SHUTOFF": "migrate", "SHELVED": "offload"}


class Way(NamedTuple):
    """How an instance leaves its host."""

    how: How | None  # None: it does not
    problem: str = ""  # why not


def way_of(status: StatusRow) -> Way:
    """Return how an instance leaves its host, or why it cannot."""
    how = _WAYS.get(status.status)
    if how is None:
        return Way(None, f"an instance in status {status.status} is not moved")
    problem = may_begin(how, status)
    return Way(None, problem) if problem else Way(how)


def asked_of(documents: Documents, status: StatusRow, *, migration_uuid: str) -> Request:
    """Return what the scheduler is asked for an instance that leaves its host.

    Raises:
        StoreBroken: what it was asked with is not kept.
    """
    asked = away_from(request_of(documents, status), status)
    assert asked.move is not None, "whoever leaves moves"
    return msgspec.structs.replace(asked, move=msgspec.structs.replace(asked.move, migration_uuid=migration_uuid))
