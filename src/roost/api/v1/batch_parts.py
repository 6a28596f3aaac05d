"""Batches: requests that arrive together, and are answered as if each had come alone."""

from collections.abc import Sequence
from http import HTTPStatus

import msgspec

from roost.api.http import Request, Response, new_request_id
from roost.api.v1.call import JSON
from roost.api.v1.schemas.decisions import EncodedBatch
from roost.api.v1.wire.decode_body import decode_body

_KEY = "idempotency-key"


class _EncodedAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A ``BatchedAnswer`` whose parts are encoded already."""

    status: int
    replayed: bool
    decision: msgspec.Raw | None
    problem: msgspec.Raw | None


def split_batch(request: Request) -> list[Request]:
    """Return the requests of a batch: each has the client of the batch, and an id and a key of its own.

    Raises:
        Problem: 400, the body is not a valid batch.
    """
    return [
        _part_of(request, bytes(each.request), key=each.idempotency_key)
        for each in decode_body(request.body, EncodedBatch).requests
    ]


def join_batch(responses: Sequence[Response]) -> Response:
    """Return the response to a batch from those to its requests."""
    answers = [
        _EncodedAnswer(
            status=response.status,
            replayed="idempotency-replayed" in response.headers,
            decision=msgspec.Raw(response.body) if response.status < HTTPStatus.BAD_REQUEST else None,
            problem=msgspec.Raw(response.body) if response.status >= HTTPStatus.BAD_REQUEST else None,
        )
        for response in responses
    ]
    return Response(body=msgspec.json.encode({"answers": answers}), headers={"content-type": JSON})


def _part_of(request: Request, body: bytes, *, key: str | None) -> Request:
    headers = {name: text for name, text in request.headers.items() if name != _KEY} | {"content-type": JSON}
    if key is not None:
        headers[_KEY] = key
    return Request(
        method=request.method,
        path="/decisions",
        headers=headers,
        body=body,
        is_body_read=True,
        prefix=request.prefix,
        host_url=request.host_url,
        request_id=new_request_id(),
        identity=request.identity,
        client=request.client,
        session_end_s=request.session_end_s,
    )
