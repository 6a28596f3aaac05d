"""Errors of the client library: the refusal of a server, or the lack of an answer.

Each class also is one of ``roost.errors``, by the reaction of the caller:

.. code-block:: text

    RoostError
    ├── ApiError             the server refuses a request: ``problem`` has its reasons
    │   ├── InvalidRequest   BadRequest     fix the request
    │   ├── RequestDenied    AccessDenied   use another token
    │   ├── ObjectMissing    NotFound       use the name of an existing object
    │   ├── RequestConflict  Conflict       read again and retry
    │   └── ServerTrouble    Unavailable    retry later
    ├── NoAnswer             Unavailable    call again with the same idempotency key
    └── OperationOpen        Unavailable    wait again
"""

import msgspec

from roost import errors
from roost.api.v1.schemas.operations import ShownOperation
from roost.api.v1.wire.problem_details import ProblemDetails
from roost.client.library.exchange import Answer

_DETAIL_MAX = 500  # characters of an answer that is not from Roost


class ApiError(errors.RoostError):
    """A server refuses a request.

    Args:
        problem: the error as the server describes it.
        key: the idempotency key of the request; empty: it had none.
    """

    def __init__(self, problem: ProblemDetails, *, key: str = "") -> None:
        self.problem, self.idempotency_key = problem, key
        # The type of the error, such as ``choice-changed``; docs/api-v1.md lists all types.
        self.problem_type = problem.type.rpartition("#")[2]
        # The other base classes build their messages from other fields.
        Exception.__init__(self, problem.detail)

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self.problem.status


class InvalidRequest(ApiError, errors.BadRequest):
    """The request is invalid, too large, or has the idempotency key of another request."""


class RequestDenied(ApiError, errors.AccessDenied):
    """The server does not know the token, or a policy does not allow the request."""


class ObjectMissing(ApiError, errors.NotFound):
    """An object of the request does not exist."""


class RequestConflict(ApiError, errors.Conflict):
    """The current state does not permit the request."""


class ServerTrouble(ApiError, errors.Unavailable):
    """The server cannot answer now, even after retries; or it has a bug."""


class NoAnswer(errors.Unavailable):
    """No answer arrived, even after retries: the server may have carried out the request.

    A call with ``idempotency_key`` gets the answer of that request, or carries it out now.
    """

    def __init__(self, message: str, *, key: str = "") -> None:
        self.idempotency_key = key
        super().__init__(message)


class OperationOpen(errors.Unavailable):
    """An operation did not end within the limit of a wait; ``operation`` is its last state."""

    def __init__(self, operation: ShownOperation, *, limit_s: float) -> None:
        self.operation = operation
        super().__init__(f"the operation {operation.uuid} did not end within {limit_s:g} s")


_KINDS: dict[int, type[ApiError]] = {
    401: RequestDenied,
    403: RequestDenied,
    404: ObjectMissing,
    409: RequestConflict,
    429: ServerTrouble,
}


def error_of(answer: Answer, *, key: str = "") -> ApiError:
    """Return the error in an answer with an error status."""
    status = answer.status
    kind = _KINDS.get(status, InvalidRequest if status < 500 else ServerTrouble)
    return kind(problem_of(answer), key=key)


def problem_of(answer: Answer) -> ProblemDetails:
    """Return the description of an error; that of a proxy has no type."""
    try:
        return msgspec.json.decode(answer.body, type=ProblemDetails)
    except msgspec.MsgspecError:
        text = " ".join(answer.body.decode(errors="replace").split())[:_DETAIL_MAX]
        detail = f"status {answer.status}: {text}" if text else f"status {answer.status}"
        return ProblemDetails(type="", title="", status=answer.status, detail=detail, request_id="")
