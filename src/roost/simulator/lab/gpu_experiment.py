"""A fleet of GPUs, filled by pods in random order until 130 % of its GPUs were requested; pods never leave.

Source:
    The experiment of "Beware of Fragmentation" (USENIX ATC 2023): same order of random draws, so with an equal seed
    the pods arrive in the same order, and ties between equal hosts are broken alike.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from roost.model.fleet import Fleet
from roost.model.host import HostFacts, HostSpec
from roost.model.image import Image
from roost.model.provider import ProviderSpec
from roost.model.request import Request
from roost.model.settings.roost_settings import FilterScheduler, Scheduler, Settings
from roost.scheduler.framework.host_view import HostView
from roost.scheduler.framework.plugin import Rules
from roost.scheduler.pipeline.budget import lift_search_limit
from roost.simulator.lab.go_random import GoRandom
from roost.simulator.lab.gpu_pods import Node, Pod, Workload
from roost.simulator.lab.gpu_policies import MODEL_STAT, POLICIES, TAG_PROPERTY, Fgd, GpuPolicyOptions, tag_of
from roost.simulator.lab.typical_pods import CAUSES, find_typical_pods, sum_causes
from roost.simulator.replay import Progress
from roost.simulator.traces.openb import GPU_MILLI, PodShape, build_query, build_tree

if TYPE_CHECKING:
    from roost.product import Roost

LOAD_PERCENT = 130  # requested GPU milli at the end, of those of the fleet
_LOAD = LOAD_PERCENT / 100
_WATCHERS = 10  # draws of the published program between the arrivals and the order of nodes
_CHUNK_MAX = 64
_PLACEMENTS_MAX = 1_000_000  # so that all pairs of a seed and a placement have different seeds


class Arrivals(msgspec.Struct, frozen=True):
    """The random part of a run."""

    pods: list[Pod]  # in order of arrival
    nodes: list[Node]  # the first wins ties


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


def draw_arrivals(workload: Workload, seed: int) -> Arrivals:
    """Draw the pods and the order of nodes of a run.

    Pods are shuffled. Too few are followed by further ones, drawn with replacement; of too many, random ones are
    removed.
    """
    random = GoRandom(seed)
    random.int63()
    pods = list(workload.pods)
    random.shuffle(pods)
    target = _LOAD * workload.capacity_milli
    total = sum(pod.total_milli for pod in pods)
    if total > target:
        while total > target:
            total -= pods.pop(random.intn(len(pods))).total_milli
    else:
        while True:
            pod = workload.pods[random.intn(len(workload.pods))]
            # As published: the milli of one GPU, not of all.
            if total + pod.gpu_milli > target:
                break
            total += pod.total_milli
            pods.append(pod)
    for _ in range(_WATCHERS):
        random.int63()
    rank = random.perm(len(workload.nodes))
    order = np.argsort(rank).tolist()
    return Arrivals(pods, [workload.nodes[at] for at in order])


def run_policy(
    workload: Workload, policy: str, seed: int, *, placement: int = 0, progress: Progress | None = None
) -> RunResult:
    """Fill the fleet under a policy, and measure.

    Args:
        workload: the fleet and the pods.
        policy: a name of ``POLICIES``.
        seed: seed of the arrivals.
        placement: number of the placement, for the random policy.
        progress: called now and then.
    """
    arrivals = draw_arrivals(workload, seed)
    models = sorted({node.model for node in workload.nodes})
    tags = sorted({tag_of(pod.gpu_count, pod.gpu_milli) for pod in workload.pods} - {""})
    options = GpuPolicyOptions(
        typical=find_typical_pods(workload.pods), models=models, tags=tags, seed=seed * _PLACEMENTS_MAX + placement
    )
    roost = _open_fleet(arrivals.nodes, policy, options)
    # The measure is that of one of the policies, whatever the policy of this run.
    run = _Run(roost, Fgd(options), workload)
    with lift_search_limit(roost.state):
        run.work(arrivals.pods, progress)
    return run.result()


def _open_fleet(nodes: Sequence[Node], policy: str, options: GpuPolicyOptions) -> "Roost":
    """Return a Roost without a database, with the nodes as hosts in this order and the policy as its only rule."""
    # Imported here, because only workers need the whole program.
    from roost.engine.columns.state import State
    from roost.placement.current import Current
    from roost.product import Roost
    from roost.simulator.seeded_random import SeededRandom
    from roost.store.dry_store import DryStore

    settings = Settings(
        scheduler=Scheduler(driver="chance" if policy == "random" else "filter", max_attempts=1),
        filter_scheduler=FilterScheduler(host_subset_size=1, enabled_filters=()),
    )
    store = DryStore(position=0, next_ids={})
    roost = Roost(
        store,
        settings,
        random=SeededRandom(options.seed),
        current=Current(store, state=State()),
        rules=Rules(filters=(), weighers=(POLICIES[policy](options),)),
    )
    roost.install(_fleet(nodes))
    return roost


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

    def __init__(self, roost: "Roost", measure: Fgd, workload: Workload) -> None:
        self._roost = roost
        self._measure = measure
        self._capacity = workload.capacity_milli
        self._gpus_max = max(pod.gpu_count for pod in workload.pods)
        self._arrived_milli = self._arrived = self._refused = self._refused_largest = 0
        self._requests: dict[Pod, Request] = {}
        self._curves: dict[int, tuple[float, float]] = {}
        self._at_load: list[tuple[float, float]] = []

    def work(self, pods: Sequence[Pod], progress: Progress | None) -> None:
        """Let pods arrive one after another; measure after each percent of load, and at the end after each pod."""
        chunk: list[Pod] = []
        for at, pod in enumerate(pods):
            before = self._load()
            self._arrived_milli += pod.total_milli
            chunk.append(pod)
            is_measured = self._load() > before or self._load() == LOAD_PERCENT
            if is_measured or len(chunk) == _CHUNK_MAX or at + 1 == len(pods):
                self._decide(chunk)
                chunk = []
            if is_measured:
                self._record()
                if progress is not None:
                    progress(at + 1, len(pods))

    def _load(self) -> int:
        """Return the requested GPU milli in percent, rounded half to even as published."""
        return round(self._arrived_milli / self._capacity * 100)

    def _decide(self, pods: Sequence[Pod]) -> None:
        decisions = self._roost.work([self._find_request(pod) for pod in pods])
        for pod, decision in zip(pods, decisions, strict=True):
            assert decision is not None
            self._arrived += 1
            self._refused += not decision.is_granted
            self._refused_largest += not decision.is_granted and pod.gpu_count == self._gpus_max

    def _find_request(self, pod: Pod) -> Request:
        """Return the request of a pod, the same for equal pods."""
        request = self._requests.get(pod)
        if request is None:
            request = self._requests[pod] = _request(pod)
        return request

    def _record(self) -> None:
        used, _ = self._roost.utilisation()[GPU_MILLI]
        allocated = round(100 * used / self._capacity, 2)
        unusable = 100 * float(sum_causes(self._unusable().T).sum()) / self._capacity
        self._curves[self._load()] = allocated, unusable
        if self._load() == LOAD_PERCENT:
            self._at_load.append((allocated, unusable))

    def _unusable(self) -> np.ndarray:
        return self._measure.unusable(HostView(self._roost.state))

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
