"""One route of ``/v1``: its handler, body, query and answer."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from roost.api.http import Work
from roost.api.v1.call import JSON, Handler

Kind = type[msgspec.Struct]
# Limit for bodies of users. Reports of agents have no such limit: they grow with the hosts.
_BODY_MAX_BYTES = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One method of one path."""

    handler: Handler
    about: str  # the summary in the OpenAPI document: one sentence
    answer: Kind | None  # None: no body
    media_type: str = JSON  # of the answer
    status: int = 200
    later: Kind | None = None  # body of a 202 answer, for work that an operation completes; None: no 202
    body: Kind | None = None
    query: Kind | None = None
    policy: str = ""  # its authorization; see ``policies``
    is_open: bool = False  # whether it needs neither authentication nor a policy
    is_keyed: bool = False  # whether the route uses the header Idempotency-Key
    body_max_bytes: int | None = _BODY_MAX_BYTES  # None: only the limit placement.body_max_bytes
    is_long: Callable[[Any], bool] | None = None  # whether a query makes the work "past"; None: never
    needs_columns: bool = True  # False: the handler runs on the event loop, and returns a response at once
    is_batch: bool = False  # whether its body has several requests, which have the route of one in ``decisions``
    work: Work = "point"  # the work for an answer; with ``dry_run`` false in the body: always "point"
