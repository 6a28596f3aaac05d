"""The replay of a stored decision, and its differences."""

import msgspec

from roost.model.evidence.decision import Decision


class HostStanding(msgspec.Struct, frozen=True):
    """The result of one host for the first instance of a request."""

    refused_by: str = ""  # the first rule that rejects it; empty: none
    total: float | None = None  # sum of the contributions of all weighers; None: refused


class HostDifference(msgspec.Struct, frozen=True, kw_only=True):
    """A host with different results."""

    node: str
    picks_then: int  # instances on this host
    picks_now: int
    then: HostStanding
    now: HostStanding


class ReplayResult(msgspec.Struct, frozen=True, kw_only=True):
    """A stored decision, and the result of deciding it again from the same state."""

    stored: Decision
    again: Decision
    is_same: bool  # whether decisions are equal, except for durations, texts and document ids
    fields: list[str] = []  # names of the fields of a decision that differ
    differences: list[HostDifference] = []  # hosts of either decision first, then the others; both by name
