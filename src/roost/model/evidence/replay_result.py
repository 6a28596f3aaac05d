"""A stored decision made again, and how the two differ."""

import msgspec

from roost.model.evidence.decision import Decision


class HostStanding(msgspec.Struct, frozen=True):
    """How one host stands for the first instance of a request."""

    refused_by: str = ""  # the first rule that refuses it; empty: none does
    total: float | None = None  # sum of the contributions of all weighers; None: refused


class HostDifference(msgspec.Struct, frozen=True, kw_only=True):
    """One host that was treated otherwise."""

    node: str
    picks_then: int  # instances of the request that went there
    picks_now: int
    then: HostStanding
    now: HostStanding


class Replayed(msgspec.Struct, frozen=True, kw_only=True):
    """A decision as it was stored and as it comes out now, from what it saw."""

    stored: Decision
    again: Decision
    is_same: bool  # in everything but durations and the numbers of documents
    fields: list[str] = []  # names of the fields of a decision that differ
    differences: list[HostDifference] = []  # hosts chosen then or now first, then by name
