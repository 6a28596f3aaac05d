"""Filled fleets for plans, and their refused requests; no agents, and every instance can move."""

import gc
import math
import random
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from roost.model.evidence.move_plans import PlanMove
from roost.model.fleet import Departure, Event, Fleet
from roost.model.request import Destination, Move, Request
from roost.model.settings.roost_settings import Scheduler, Settings
from roost.product import Roost
from roost.scheduler.plans.board import Resident
from roost.simulator.seeded_random import SeededRandom
from roost.simulator.traces.cospot import build_fleet
from roost.simulator.workload import Workload
from roost.store.memory_store import MemoryStore

_replace = msgspec.structs.replace
_MIGRATION = "00000000-0000-4000-8000-00000000000f"
# A fleet counts as filled after this number of refusals in a row, even below the wanted share.
_REFUSED_MAX = 500


class FilledFleet:
    """A fleet in memory, and the requests of its instances."""

    def __init__(self, fleet: Fleet) -> None:
        settings = Settings(scheduler=Scheduler(search_budget_s=60.0))
        self.roost = Roost(MemoryStore(), settings, random=SeededRandom(1))
        self.roost.install(fleet)
        self._requests: dict[str, tuple[str, Request]] = {}  # uuid -> service, request for this instance alone
        self._on_host: dict[str, dict[str, None]] = {}

    @property
    def instances(self) -> Sequence[str]:
        """The uuids of all instances, oldest first."""
        return list(self._requests)

    def place(self, request: Request) -> bool:
        """Return whether a request was granted."""
        decision = self.roost.decide(request)
        for pick in decision.picks if decision.is_granted else ():
            uuid = pick.instance_uuid
            one = _replace(request, count=1, instance_uuids=(uuid,), move=Move(instance_uuid=uuid))
            self._requests[uuid] = pick.host, _replace(one, ignore_hosts=(*request.ignore_hosts, pick.host))
            self._on_host.setdefault(pick.host, {})[uuid] = None
        return decision.is_granted

    def remove(self, uuids: Iterable[str]) -> None:
        """Remove the instances among these uuids."""
        known = tuple(uuid for uuid in uuids if uuid in self._requests)
        if known:
            self.roost.work([Departure(instance_uuids=known)])
        for uuid in known:
            host, _ = self._requests.pop(uuid)
            del self._on_host[host][uuid]

    def residents(self, host: str) -> list[Resident]:
        """Return the instances of a service; all move live."""
        uuids = self._on_host.get(host, {})
        return [Resident(uuid, "", "live_migrate", self._requests[uuid][1]) for uuid in uuids]

    def used_share(self, resource_class: str) -> float:
        """Return the used share of a class."""
        used, capacity = self.roost.utilisation()[resource_class]
        return used / max(capacity, 1)

    def hosts_at_least(self) -> int:
        """Return a lower bound on the hosts for the instances: the sum of the largest class, on equal hosts."""
        hosts = len(self.roost.state.hosts)
        totals = self.roost.utilisation().values()
        return max(math.ceil(used * hosts / capacity) for used, capacity in totals if capacity)

    def drain_plainly(self, hosts: Sequence[str]) -> list[str]:
        """Let each instance leave some hosts for another one by an ordinary claim, on a fork, in order.

        Returns:
            The host of each instance without another one.
        """
        fork, staying = self.roost.fork(), []
        for host in hosts:
            for uuid in self._on_host.get(host, {}):
                request = self._requests[uuid][1]
                own = _replace(Move(instance_uuid=uuid), migration_uuid=_MIGRATION)
                moving = _replace(request, move=own, ignore_hosts=(*request.ignore_hosts, *hosts))
                decision, _ = fork.outcomes([moving, Departure(instance_uuids=(_MIGRATION,))])
                if not getattr(decision, "is_granted", False):
                    staying.append(host)
        return staying

    def freeze(self) -> None:
        """Leave what the fleet has now out of later collections of garbage, as a server does with loaded columns."""
        gc.collect()
        gc.freeze()

    def carry_out(self, moves: Sequence[PlanMove]) -> tuple[Roost, int]:
        """Make the moves of a plan on a fork, one after the other, each by an ordinary claim.

        Returns:
            The fork, and the number of moves that a rule refused.
        """
        fork, refused = self.roost.fork(), 0
        for move in moves:
            request = self._requests[move.instance_uuid][1]
            own = _replace(Move(instance_uuid=move.instance_uuid), migration_uuid=_MIGRATION)
            destination = _replace(request.destination or Destination(), host=move.target)
            moving = _replace(request, move=own, destination=destination)
            decision, _ = fork.outcomes([moving, Departure(instance_uuids=(_MIGRATION,))])
            refused += not getattr(decision, "is_granted", False)
        return fork, refused


def refused_by_draws(
    filled: FilledFleet, requests: Sequence[Request], *, resource_class: str, share: float, rng: random.Random
) -> Iterator[Request]:
    """Fill a fleet with drawn requests to a used share of a class, and keep it there; yield refused requests.

    For each granted request beyond the share, random instances depart. A fleet that grants no more counts as full.
    """
    refused, is_full = 0, False
    while True:
        request = _replace(rng.choice(requests), count=1, instance_uuids=())
        if filled.place(request):
            refused = 0
            while filled.used_share(resource_class) > share:
                is_full = True
                filled.remove([rng.choice(filled.instances)])
            continue
        refused += 1
        is_full |= refused == _REFUSED_MAX
        if is_full:
            yield _replace(request, instance_uuids=())
            filled.remove([rng.choice(filled.instances)])


def refused_by_events(filled: FilledFleet, events: Iterable[Event]) -> Iterator[Request]:
    """Replay events; yield refused requests."""
    for event in events:
        if isinstance(event.act, Departure):
            filled.remove(event.act.instance_uuids)
        elif isinstance(event.act, Request) and not filled.place(event.act):
            yield event.act


def fleet_for_peak(workload: Workload, *, cores: int, ram: int, spare: float) -> Fleet:
    """Return equal hosts for the largest sums of cores and ram at one time, and a spare share of hosts."""
    sizes: dict[str, tuple[int, int]] = {}
    now, peak = [0, 0], [0, 0]
    for event in workload.events:
        if isinstance(event.act, Request):
            size = event.act.flavor.vcpus, event.act.flavor.memory_mb
            sizes |= dict.fromkeys(event.act.instance_uuids, size)
            now = [before + more for before, more in zip(now, size, strict=True)]
            peak = [max(pair) for pair in zip(peak, now, strict=True)]
        elif isinstance(event.act, Departure):
            gone = [sizes[uuid] for uuid in event.act.instance_uuids]
            now = [before - sum(each[at] for each in gone) for at, before in enumerate(now)]
    hosts = math.ceil(max(peak[0] / cores, peak[1] / ram) * (1 + spare))
    return build_fleet((f"{hosts}x{cores}c/{ram}m",))


def requests_in(workload: Workload) -> list[Request]:
    """Return the requests of a workload in order."""
    return [event.act for event in workload.events if isinstance(event.act, Request)]
