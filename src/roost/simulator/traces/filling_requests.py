"""Requests that fill a generated fleet fast: ten large instances each, and then a tail of mixed ones."""

import random
from collections.abc import Iterator, Sequence
from typing import Protocol

from roost.model.evidence.decision import Decision
from roost.model.fleet import Departure
from roost.model.request import Request
from roost.simulator.traces.generated_requests import MIXES, RequestKind

_BATCH = 32
_INSTANCES = 10  # of one large request
# Used shares of memory at which the large requests end, and the mixed ones. Zones and generations differ by then.
_LARGE_UNTIL, _MIXED_UNTIL = 0.78, 0.86
_LARGE_MB = 32_768
_PROJECTS = 20
# A mixed request may be refused. This share of refusals ends the filling of a fleet with few fitting hosts.
_REFUSED_MAX = 0.5


class Target(Protocol):
    """A scheduler to fill."""

    def work(self, acts: Sequence[Request | Departure]) -> list[Decision | None]:
        """Do the acts in order."""

    def utilisation(self) -> dict[str, tuple[int, int]]:
        """Return used amount and capacity by class."""


def fill(target: Target, *, rng: random.Random) -> Iterator[float]:
    """Fill a fleet until most of its memory is used; yield the progress from 0 to 1 after each batch."""
    kinds = MIXES["mixed"].kinds
    large = [kind for kind in kinds if kind.flavor.memory_mb >= _LARGE_MB and not kind.groups]
    for chosen, count, until in ((large, _INSTANCES, _LARGE_UNTIL), (kinds, 1, _MIXED_UNTIL)):
        while (share := _memory_share(target)) < until:
            decisions = target.work([random_request(rng, chosen, count=count) for _ in range(_BATCH)])
            yield min(1.0, share / _MIXED_UNTIL)
            refused = sum(decision is not None and not decision.is_granted for decision in decisions)
            if refused > _REFUSED_MAX * _BATCH:
                break
    yield 1.0


def random_request(
    rng: random.Random, kinds: Sequence[RequestKind] = MIXES["mixed"].kinds, *, count: int = 1
) -> Request:
    """Return one request of the kinds, chosen by their weights."""
    (kind,) = rng.choices(kinds, [each.weight for each in kinds])
    return Request(
        flavor=kind.flavor, groups=kind.groups, count=count, project_id=f"project-{rng.randrange(_PROJECTS):02d}"
    )


def _memory_share(target: Target) -> float:
    used, capacity = target.utilisation()["MEMORY_MB"]
    return used / max(1, capacity)
