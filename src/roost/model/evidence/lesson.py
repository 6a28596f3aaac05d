"""Lessons of weighers from requests: documents of the database, equal for all processes."""

import msgspec

from roost.model.request import Request

# Kind of these documents. Each refresh writes a new document; the highest version is in force.
LEARNED = "learned"


class Lesson(msgspec.Struct, frozen=True, array_like=True):
    """One version of the lesson of a weigher."""

    name: str  # of the weigher, with the settings that its observations depend on
    version: int  # from 0
    requests: int  # counted ones
    # First and last number of stored decisions that are counted, or need not be: ascending, without overlaps.
    counted: list[tuple[int, int]]
    body: bytes  # the weigher's own


class Arrival(msgspec.Struct, frozen=True):
    """A request with a stored decision."""

    number: int  # of the decision
    request: Request  # without uuids
    first_uuid: bytes  # of its first instance; empty: unknown
    is_granted: bool
