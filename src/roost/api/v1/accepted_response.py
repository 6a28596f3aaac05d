"""What is told of an operation that was accepted, now or when it was asked before."""

import msgspec

from roost.api.http import Response
from roost.api.v1 import idempotency
from roost.api.v1.call import Call, json_response, plan_response
from roost.api.v1.schemas.instances import Accepted
from roost.model.names import uuid_bytes
from roost.model.work.work_rows import OperationRow
from roost.placement.write_plan import Plan

# A new operation, or the one that is there already.
OperationPlan = Plan[OperationRow] | OperationRow


def operation_uuid(call: Call) -> bytes:
    """Return what an operation is to be called: it follows from the key, or else from the request alone."""
    kind, word = ("operation", call.key) if call.key is not None else ("request", call.request.request_id)
    found = uuid_bytes(idempotency.uuid_for(kind, call.owner, word))
    assert found is not None, "it was made as one"
    return found


def respond_accepted(
    call: Call, taken: OperationPlan, uuid: str, *, told: msgspec.Struct | None = None
) -> Response | Plan[Response]:
    """Return the answer, which comes with a plan where something is new; else it is told as given once more.

    Args:
        uuid: of the operation.
        told: the body; None: it says no more than the operation.
    """
    response = respond_with_location(call, uuid, told=told)
    return plan_response(taken, response) if isinstance(taken, Plan) else idempotency.mark_replay(response)


def respond_with_location(call: Call, uuid: str, *, told: msgspec.Struct | None = None) -> Response:
    """Return the answer that says where an operation is shown; parameters as those of ``accepted``."""
    location = call.request.location(f"/operations/{uuid}")["location"]
    return json_response(told or Accepted(operation=uuid), status=202, location=location)
