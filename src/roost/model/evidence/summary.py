"""Counts of recent refusals."""

import msgspec


class RefusedRequests(msgspec.Struct, frozen=True, kw_only=True):
    """Refused requests for one flavor in one zone."""

    flavor: str  # empty: the request is no longer stored
    zone: str  # empty: any
    refusals: int
    instances: int  # requested in total


class RefusalReason(msgspec.Struct, frozen=True, kw_only=True):
    """All refusals of one reason."""

    reason: str  # without numbers
    refusals: int
    instances: int  # requested in total
    projects: int
    first_at_s: float
    last_at_s: float
    newest: str  # uuid of the newest decision
    requests: list[RefusedRequests]  # most refusals first


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """Refusals since a moment, most frequent reason first."""

    since_s: float
    refusals: int
    is_complete: bool  # False: older refusals were not read
    reasons: list[RefusalReason]
