"""The request in a call of ``select_destinations``."""

from typing import Any

import msgspec

from roost.engine.columns.state import State
from roost.errors import BadRequest
from roost.model.names import uuid_bytes
from roost.model.request import Move, Request
from roost.nova.messages.request_spec import SpecRequest, read_request_spec
from roost.nova.rpc.rpc_call import Call
from roost.scheduler.rule_support.scopes import has_zone

# Instances in one message; more are refused. Nova's default for one request is 10, and its maximum is a quota.
_INSTANCES_MAX = 10_000


def read_call(call: Call) -> SpecRequest:
    """Read the request of a call.

    Raises:
        BadRequest: an argument is malformed.
    """
    return read_request_spec(call.args.get("spec_obj"), _instance_uuids(call.args.get("instance_uuids")))


def with_known_zone(request: Request, state: State) -> Request:
    """Return the request without its availability zone if no aggregate defines the zone: Nova then accepts every host.

    For other clients of Roost, the default zone consists of the hosts without another zone.
    """
    zone = request.availability_zone
    if zone is None or has_zone(state, zone):
        return request
    return msgspec.structs.replace(request, availability_zone=None)


def as_move(request: Request, state: State, *, is_move: bool = False) -> Request:
    """Return the request of an instance with allocations as a move that keeps them, as for an evacuation.

    Args:
        is_move: whether the instance is known to have allocations at a remote Placement.
    """
    uuids = request.instance_uuids
    number = uuid_bytes(uuids[0]) if len(uuids) == 1 else None
    if number is None or not (is_move or number in state.holders):
        return request
    return msgspec.structs.replace(request, move=Move(instance_uuid=uuids[0], migration_uuid=uuids[0], may_stay=True))


def _instance_uuids(value: Any) -> list[str]:
    """Return the uuids of the instances; empty: choose hosts without claims.

    Raises:
        BadRequest: it is not a list of texts, or too long.
    """
    uuids = value or []
    if not isinstance(uuids, list) or len(uuids) > _INSTANCES_MAX or not all(isinstance(each, str) for each in uuids):
        raise BadRequest(f"instance_uuids must be a list of up to {_INSTANCES_MAX:,} UUIDs")
    return uuids
