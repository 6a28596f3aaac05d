"""One route of ``/v1``: its handler, and what it reads and writes."""

from dataclasses import dataclass

import msgspec

from roost.api.http import Work
from roost.api.v1.call import JSON, Handler

Kind = type[msgspec.Struct]
# What people and programs ask is small; what agents report grows with their hosts.
_BODY_MAX_BYTES = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One method of one path."""

    handler: Handler
    about: str  # in a sentence
    answer: Kind | None  # None: nothing is said but that it was done
    media_type: str = JSON  # of the answer
    status: int = 200
    later: Kind | None = None  # the answer with 202, where what is asked may take its time; None: it never does
    body: Kind | None = None
    query: Kind | None = None
    policy: str = ""  # who may ask it; see ``policies``
    is_keyed: bool = False  # whether an idempotency key is minded
    body_max_bytes: int | None = _BODY_MAX_BYTES  # None: as many as placement.body_max_bytes allows
    work: Work = "point"  # what answering takes; where the body can ask for a dry run, what that takes
