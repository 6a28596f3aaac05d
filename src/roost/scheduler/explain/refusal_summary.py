"""Summary of refusals, by reason and by request."""

from collections.abc import Callable, Iterable

import msgspec

from roost.errors import report_corruption
from roost.model.evidence.summary import RefusalReason, RefusedRequests, Summary
from roost.model.names import uuid_text
from roost.model.request import Request
from roost.model.stored_decision import request_of
from roost.model.writes import EvidenceRow
from roost.scheduler.framework.reasons import bare_reason

_request = msgspec.json.Decoder(Request)


class _Tally:
    """Counts for one reason, or for one request within it."""

    def __init__(self) -> None:
        self.refusals = 0
        self.instances = 0
        self.projects: set[str] = set()
        self.times: list[float] = []
        self.newest = b""
        self.requests: dict[int, _Tally] = {}

    def add(self, row: EvidenceRow, count: int) -> None:
        """Count one refusal; the caller must add the newest refusal first."""
        self.refusals += 1
        self.instances += count
        self.projects.add(row.project_id)
        self.newest = self.newest or row.uuid
        self.times = [*self.times[:1], row.decided_at_s]


def summarise(
    rows: Iterable[EvidenceRow], *, since_s: float, is_complete: bool, document: Callable[[int], bytes | None]
) -> Summary:
    """Count refusals by reason and, for each reason, by request.

    Args:
        rows: refused decisions, newest first.
        since_s: start of the period, in seconds since the epoch.
        is_complete: whether ``rows`` covers the whole period.
        document: returns the body of a stored request.
    """
    reasons: dict[str, _Tally] = {}
    for row in rows:
        with report_corruption(f"decision {uuid_text(row.uuid)}"):
            request_id, count = request_of(row)
        tally = reasons.setdefault(bare_reason(row.reason), _Tally())
        tally.add(row, count)
        tally.requests.setdefault(request_id, _Tally()).add(row, count)
    ordered = sorted(reasons.items(), key=lambda entry: -entry[1].refusals)
    return Summary(
        since_s=since_s,
        refusals=sum(tally.refusals for tally in reasons.values()),
        is_complete=is_complete,
        reasons=[
            RefusalReason(
                reason=reason,
                refusals=tally.refusals,
                instances=tally.instances,
                projects=len(tally.projects),
                first_at_s=tally.times[-1],
                last_at_s=tally.times[0],
                newest=uuid_text(tally.newest),
                requests=_count_requests(tally, document),
            )
            for reason, tally in ordered
        ],
    )


def _count_requests(tally: _Tally, document: Callable[[int], bytes | None]) -> list[RefusedRequests]:
    counts_by_key: dict[tuple[str, str], list[int]] = {}  # flavor, zone -> refusals, instances
    for request_id, part in tally.requests.items():
        with report_corruption("the request of a decision"):
            body = document(request_id)
            request = None if body is None else _request.decode(body)
        key = ("", "") if request is None else (request.flavor.name, request.availability_zone or "")
        counts = counts_by_key.setdefault(key, [0, 0])
        counts[0] += part.refusals
        counts[1] += part.instances
    return [
        RefusedRequests(flavor=flavor, zone=zone, refusals=refusals, instances=instances)
        for (flavor, zone), (refusals, instances) in sorted(counts_by_key.items(), key=lambda entry: -entry[1][0])
    ]
