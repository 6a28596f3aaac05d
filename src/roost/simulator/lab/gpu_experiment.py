"""A fleet of GPUs, filled by pods in random order until 130 % of its GPUs were requested; pods never leave.

Source:
    The experiment of "Beware of Fragmentation" (USENIX ATC 2023): same order of random draws, so with an equal seed
    the pods arrive in the same order, and ties between equal hosts are broken alike.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from roost.model.evidence.decision import Decision
from roost.model.fleet import Departure, Fleet
from roost.model.host import HostFacts, HostSpec
from roost.model.image import Image
from roost.model.provider import ProviderSpec
from roost.model.request import Request
from roost.model.settings.roost_settings import FilterScheduler, Scheduler, Settings
from roost.placement.current import pause_collection
from roost.scheduler.framework.host_view import HostView
from roost.scheduler.framework.plugin import Rules
from roost.scheduler.pipeline.budget import lift_search_limit
from roost.simulator.lab.gpu_arrivals import LOAD_PERCENT, Arrivals, draw_arrivals
from roost.simulator.lab.gpu_pods import Node, Pod, Workload
from roost.simulator.lab.gpu_policies import MODEL_STAT, POLICIES, TAG_PROPERTY, Fgd, GpuPolicyOptions, tag_of
from roost.simulator.lab.typical_pods import CAUSES, find_typical_pods, sum_causes
from roost.simulator.replay import Progress
from roost.simulator.traces.openb import GPU_MILLI, PodShape, build_query, build_tree

if TYPE_CHECKING:
    from roost.engine.columns.state import State
    from roost.product import Roost

_CHUNK_MAX = 64
_PLACEMENTS_MAX = 1_000_000  # so that all pairs of a seed and a placement have different seeds


class Conditions(msgspec.Struct, frozen=True, kw_only=True):
    """Differences to the published experiment."""

    later: Workload | None = None  # the pods from half of the load on
    has_departures: bool = False  # whether pods leave after their durations
    has_restart: bool = False  # whether the engine is closed half way, and opened again


PUBLISHED = Conditions()


class RunResult(msgspec.Struct, frozen=True, kw_only=True):
    """The measurements of one run; percentages are of the fleet's GPU milli."""

    arrived: int  # pods
    refused: int
    refused_largest: int  # of these, pods with the most GPUs of the workload
    allocated_percent: float  # mean at a load of 130 %, rounded as published
    unusable_percent: float
    load: list[int]  # points of the curves: requested GPU milli in percent
    allocated: list[float]  # percent, by point
    unusable: list[float]  # percent, by point
    left: dict[str, float]  # unusable GPU milli at the end in percent, by cause


def run_policy(
    workload: Workload,
    policy: str,
    seed: int,
    *,
    placement: int = 0,
    conditions: Conditions = PUBLISHED,
    progress: Progress | None = None,
) -> RunResult:
    """Fill the fleet under a policy, and measure.

    Args:
        workload: the fleet and the pods.
        policy: a name of ``POLICIES``.
        seed: seed of the arrivals.
        placement: number of the placement, for the random policy.
        conditions: differences to the published experiment.
        progress: called now and then.
    """
    later = conditions.later
    arrivals = draw_arrivals(workload, seed, later=later, has_departures=conditions.has_departures)
    pods = workload.pods if later is None else workload.pods + later.pods
    options = GpuPolicyOptions(
        typical=find_typical_pods(pods),
        models=sorted({node.model for node in workload.nodes}),
        tags=sorted({tag_of(pod.gpu_count, pod.gpu_milli) for pod in pods} - {""}),
        seed=seed * _PLACEMENTS_MAX + placement,
    )
    with pause_collection():
        engine = _Engine(policy, options, is_stored=conditions.has_restart)
        engine.install(_fleet(arrivals.nodes))
        # The measure is that of one of the policies, whatever the policy of this run.
        run = _Run(engine, Fgd(options), arrivals, capacity_milli=workload.capacity_milli)
        run.work(progress, has_restart=conditions.has_restart)
        return run.result()


class _Engine:
    """A Roost in memory with a policy as its only rule.

    Args:
        policy: a name of ``POLICIES``.
        options: of the policy.
        is_stored: whether it can be opened again: it keeps all rows.
    """

    def __init__(self, policy: str, options: GpuPolicyOptions, *, is_stored: bool) -> None:
        # Imported here, because only workers need the whole program.
        from roost.simulator.seeded_random import SeededRandom
        from roost.store.dry_store import DryStore
        from roost.store.memory_store import MemoryStore

        self._policy = policy
        self._options = options
        self._store = MemoryStore() if is_stored else DryStore(position=0, next_ids={})
        self._random = SeededRandom(options.seed)
        self._roost = self._open()

    @property
    def state(self) -> "State":
        """The columns."""
        return self._roost.state

    def install(self, fleet: Fleet) -> None:
        """Create the hosts; the first one wins ties."""
        self._roost.install(fleet)

    def work(self, acts: Sequence[Request | Departure]) -> list[Decision | None]:
        """Execute acts, without a limit of time."""
        with lift_search_limit(self._roost.state):
            return self._roost.work(acts)

    def sum_used_milli(self) -> int:
        """Return the allocated GPU milli."""
        return self._roost.utilisation()[GPU_MILLI][0]

    def restart(self) -> None:
        """Close Roost, and open it again from the stored rows."""
        self._roost.close()
        self._roost = self._open()

    def _open(self) -> "Roost":
        from roost.engine.columns.state import State
        from roost.placement.current import Current
        from roost.product import Roost
        from roost.store.memory_store import MemoryStore

        is_random = self._policy == "random"
        settings = Settings(
            scheduler=Scheduler(driver="chance" if is_random else "filter", max_attempts=1),
            filter_scheduler=FilterScheduler(host_subset_size=1, enabled_filters=()),
        )
        is_stored = isinstance(self._store, MemoryStore)
        return Roost(
            self._store,
            settings,
            random=self._random,
            current=Current(self._store, state=None if is_stored else State()),
            rules=Rules(filters=(), weighers=(POLICIES[self._policy](self._options),)),
        )


def _fleet(nodes: Sequence[Node]) -> Fleet:
    providers: list[ProviderSpec] = []
    hosts: list[HostSpec] = []
    for node in nodes:
        tree = build_tree(
            node.name,
            cpu_milli=node.cpu_milli,
            memory_mib=node.memory_mib,
            gpu_count=node.gpu_count,
            model=node.model,
        )
        providers += tree
        facts = HostFacts(stats={MODEL_STAT: node.model})
        hosts.append(HostSpec(provider_uuid=tree[0].uuid, host=node.name, node=node.name, facts=facts))
    return Fleet(providers=providers, hosts=hosts)


def _request(pod: Pod) -> Request:
    shape = PodShape(pod.cpu_milli, pod.memory_mib, pod.gpu_count, pod.gpu_milli, "|".join(pod.models))
    flavor, groups = build_query(shape)
    tag = tag_of(pod.gpu_count, pod.gpu_milli)
    return Request(flavor=flavor, groups=groups, image=Image(properties={TAG_PROPERTY: tag}) if tag else None)


class _Run:
    """The decisions of a run, and its measurements."""

    def __init__(self, engine: _Engine, measure: Fgd, arrivals: Arrivals, *, capacity_milli: int) -> None:
        self._engine = engine
        self._measure = measure
        self._arrivals = arrivals
        self._capacity = capacity_milli
        self._gpus_max = max(pod.gpu_count for pod in arrivals.pods)
        self._requested_milli = self._arrived = self._refused = self._refused_largest = 0
        self._requests: dict[Pod, Request] = {}
        self._instances: dict[int, str] = {}  # placed pods that have not left, by number
        self._chunk: list[Request | Departure] = []
        self._arriving: list[int | None] = []  # numbers of the chunk's pods; None: a departure
        self._curves: dict[int, tuple[float, float]] = {}
        self._at_load: list[tuple[float, float]] = []

    def work(self, progress: Progress | None, *, has_restart: bool) -> None:
        """Execute all steps; measure when the load reaches a further percent, and at the end after each pod.

        Args:
            progress: called after measurements.
            has_restart: whether to close and open the engine half way.
        """
        load_max = 0
        steps = self._arrivals.steps
        for at, (number, is_departure) in enumerate(steps):
            if is_departure:
                self._leave(number)
            else:
                pod = self._arrivals.pods[number]
                self._requested_milli += pod.total_milli
                self._chunk.append(self._find_request(pod))
                self._arriving.append(number)
            load = self._load()
            is_measured = not is_departure and (load > load_max or load == LOAD_PERCENT)
            load_max = max(load_max, load)
            if is_measured or len(self._chunk) == _CHUNK_MAX or at + 1 == len(steps):
                self._decide()
                if has_restart and 2 * at >= len(steps):
                    self._engine.restart()
                    has_restart = False
            if is_measured:
                self._record()
                if progress is not None:
                    progress(at + 1, len(steps))

    def _load(self) -> int:
        """Return the requested GPU milli of pods that have not left, in percent, rounded half to even as published."""
        return round(self._requested_milli / self._capacity * 100)

    def _leave(self, number: int) -> None:
        """Let a pod leave, if it was placed."""
        self._requested_milli -= self._arrivals.pods[number].total_milli
        if number in self._arriving:
            self._decide()
        uuid = self._instances.pop(number, None)
        if uuid is not None:
            self._chunk.append(Departure(instance_uuids=(uuid,)))
            self._arriving.append(None)

    def _decide(self) -> None:
        decisions = self._engine.work(self._chunk)
        for number, decision in zip(self._arriving, decisions, strict=True):
            if number is None:
                continue
            assert decision is not None
            self._arrived += 1
            if decision.is_granted:
                self._instances[number] = decision.picks[0].instance_uuid
            else:
                self._refused += 1
                self._refused_largest += self._arrivals.pods[number].gpu_count == self._gpus_max
        self._chunk, self._arriving = [], []

    def _find_request(self, pod: Pod) -> Request:
        """Return the request of a pod, the same for equal pods."""
        request = self._requests.get(pod)
        if request is None:
            request = self._requests[pod] = _request(pod)
        return request

    def _record(self) -> None:
        allocated = round(100 * self._engine.sum_used_milli() / self._capacity, 2)
        unusable = 100 * float(sum_causes(self._unusable().T).sum()) / self._capacity
        self._curves[self._load()] = allocated, unusable
        if self._load() == LOAD_PERCENT:
            self._at_load.append((allocated, unusable))

    def _unusable(self) -> np.ndarray:
        return self._measure.unusable(HostView(self._engine.state))

    def result(self) -> RunResult:
        """Return the measurements."""
        allocated, unusable = np.mean(self._at_load or [self._curves[max(self._curves)]], axis=0).tolist()
        left = (100 * self._unusable().sum(axis=0) / self._capacity).tolist()
        return RunResult(
            arrived=self._arrived,
            refused=self._refused,
            refused_largest=self._refused_largest,
            allocated_percent=round(allocated, 2),
            unusable_percent=round(unusable, 2),
            load=list(self._curves),
            allocated=[round(point, 2) for point, _ in self._curves.values()],
            unusable=[round(point, 2) for _, point in self._curves.values()],
            left=dict(zip(CAUSES, left, strict=True)),
        )
