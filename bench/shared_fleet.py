"""The load of one of several processes that share a nearly full fleet: requests, and as many departures."""

import random
from collections import Counter
from collections.abc import Iterable, Sequence

from roost.errors import RoostError
from roost.model.evidence.decision import Decision
from roost.model.flavor import Flavor
from roost.model.fleet import Departure, Fleet
from roost.model.host import HostFacts, HostSpec
from roost.model.provider import Inventory, ProviderSpec
from roost.model.request import Request
from roost.model.settings.roost_settings import FilterScheduler, Scheduler, Settings
from roost.product import Roost
from roost.simulator.stable_uuids import uuid_of

_HOST_VCPUS = 64
_VCPUS = (1, 2, 4, 8)  # of the flavors
LARGEST_VCPUS = _VCPUS[-1]
# Weighers by the aim of a policy: the multiplier of free memory.
POLICIES = {"spread": 1.0, "pack": -1.0}

Outcome = Decision | RoostError | None


def build_fleet(hosts: int) -> Fleet:
    """Return hosts with 64 processors and 256 GiB each."""
    offers = {"VCPU": Inventory(total=_HOST_VCPUS), "MEMORY_MB": Inventory(total=_HOST_VCPUS * 4_096)}
    names = [f"host-{number:05d}" for number in range(hosts)]
    return Fleet(
        providers=[ProviderSpec(uuid=uuid_of("bench", name), name=name, inventories=offers) for name in names],
        hosts=[
            HostSpec(provider_uuid=uuid_of("bench", name), host=name, node=name, facts=HostFacts()) for name in names
        ],
    )


def build_settings(policy: str, partition: str) -> Settings:
    """Return settings with one weigher."""
    return Settings(
        scheduler=Scheduler(partition=partition),
        filter_scheduler=FilterScheduler(weight_classes=("ram",)),
        tables={"filter_scheduler": {"ram_weight_multiplier": POLICIES[policy]}},
    )


def request_for(vcpus: int) -> Request:
    """Return a request for one instance."""
    return Request(flavor=Flavor(name=f"vcpu{vcpus}", vcpus=vcpus, memory_mb=4_096 * vcpus))


def fill(roost: Roost, share: float, draw: random.Random) -> list[tuple[str, int]]:
    """Fill a fleet to a share of its processors; return uuid and processors of each instance."""
    used, capacity = roost.utilisation()["VCPU"]
    placed: list[tuple[str, int]] = []
    while used < share * capacity:
        sizes = draw.choices(_VCPUS, k=64)
        for size, outcome in zip(sizes, roost.work([request_for(size) for size in sizes]), strict=True):
            assert outcome is not None
            used += size * outcome.is_granted
            placed += [(pick.instance_uuid, size) for pick in outcome.picks]
    return placed


class Load:
    """The requests and departures of one process; the use of the fleet stays about equal.

    Args:
        placed: uuid and processors of the present instances of this process.
        draw: source of randomness.
    """

    def __init__(self, placed: Iterable[tuple[str, int]], draw: random.Random) -> None:
        self._placed, self._draw = list(placed), draw
        self._surplus = 0  # processors placed since the begin, minus those of departures
        self.counts = Counter[str]()

    def next(self, size: int) -> list[Request | Departure]:
        """Return departures, then ``size`` requests."""
        leaving = []
        while self._surplus > 0 and self._placed:
            at = self._draw.randrange(len(self._placed))
            self._placed[at], self._placed[-1] = self._placed[-1], self._placed[at]
            uuid, vcpus = self._placed.pop()
            leaving.append(Departure(instance_uuids=(uuid,)))
            self._surplus -= vcpus
        sizes = self._draw.choices(_VCPUS, k=size)
        self._surplus += sum(sizes)
        return [*leaving, *map(request_for, sizes)]

    def note(self, acts: Sequence[Request | Departure], outcomes: Sequence[Outcome]) -> list[Request]:
        """Count outcomes; return the requests without a host."""
        refused = []
        for act, outcome in zip(acts, outcomes, strict=True):
            if isinstance(act, Departure):
                continue
            self.counts["requests"] += 1
            if isinstance(outcome, Decision):
                self.counts["lost races"] += len(outcome.conflicts)
                self.counts["within part"] += outcome.part is not None and outcome.part.is_within
            if isinstance(outcome, Decision) and outcome.is_granted:
                self.counts["granted"] += 1
                self._placed.append((outcome.picks[0].instance_uuid, act.flavor.vcpus))
            else:
                refused.append(act)
                self._surplus -= act.flavor.vcpus
        return refused
