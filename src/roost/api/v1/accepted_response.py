"""The 202 response for an operation, new or replayed under its idempotency key."""

import msgspec

from roost.api.http import Response
from roost.api.v1.call import Call, json_response, plan_response
from roost.api.v1.idempotency import mark_replay
from roost.api.v1.schemas.instances import OperationReference
from roost.model.work.work_rows import OperationRow
from roost.placement.write_plan import Plan

# A new operation, or an existing one.
OperationPlan = Plan[OperationRow] | OperationRow


def respond_accepted(
    call: Call, plan: OperationPlan, uuid: str, *, body: msgspec.Struct | None = None
) -> Response | Plan[Response]:
    """Return the 202 response in the plan of a new operation, or as a replay for an existing operation.

    Args:
        uuid: of the operation.
        body: content of the response; None: an ``OperationReference``.
    """
    call.note(operation=uuid)
    response = respond_with_location(call, uuid, body=body)
    return plan_response(plan, response) if isinstance(plan, Plan) else mark_replay(response)


def respond_with_location(call: Call, uuid: str, *, body: msgspec.Struct | None = None) -> Response:
    """Return the 202 response with the location of an operation; see ``respond_accepted``."""
    location = call.request.location(f"/operations/{uuid}")["location"]
    return json_response(body or OperationReference(operation=uuid), status=202, location=location)
