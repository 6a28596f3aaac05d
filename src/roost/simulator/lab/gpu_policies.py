"""The policies for GPUs, as weighers: which host and which GPUs a pod gets.

Scores of the published ones are whole numbers, truncated, so ties are frequent; the first host wins them. The
truncation and the order of hosts are part of each policy's quality.
"""

import functools
from collections.abc import Callable, Hashable, Iterator
from typing import ClassVar, NamedTuple

import msgspec
import numpy as np

from roost.engine.columns.types import Amounts, Mask, Rows, Scores
from roost.scheduler.framework.base_rule import BaseWeigher
from roost.scheduler.framework.host_view import HostView
from roost.scheduler.framework.plugin import Weigher
from roost.scheduler.framework.spec import Spec
from roost.scheduler.weighers.gpu_value import GpuValue, GpuValueOptions
from roost.simulator.lab.typical_pods import Fragmentation, HostState, TypicalPod
from roost.simulator.traces.openb import GPU_MILLI, GPU_WHOLE

MODEL_STAT = "gpu_model"  # fact of a host: the model of its GPUs
TAG_PROPERTY = "gpu_tag"  # property of a request's image: see ``tag_of``
SHARED = "share"

_CPU_LARGEST, _GPU_LARGEST = 128_000, 8_000  # largest host: milli of processors and of GPUs
_SCORE_MAX = 100
_UNFIT = 1e6  # cost of a GPU that is never preferred
_ONE_BY_ONE_MAX = 64  # upper bound on hosts with scores from known states
_FEW_STATES = 256  # below, a search for equal states takes longer than it saves
# Odd factors of a hash of states; equal hashes are compared.
_HASH_FACTOR = 0x9E3779B97F4A7C15


class GpuPolicyOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of the lab's weighers."""

    typical: list[TypicalPod] = []
    models: list[str] = []  # of the fleet
    tags: list[str] = []  # of the workload
    seed: int = 0


class Demand(NamedTuple):
    """The needs of a request."""

    cpu_milli: int
    gpu_count: int
    gpu_milli: int  # of each GPU

    @property
    def total_milli(self) -> int:
        """The GPU milli of all GPUs."""
        return self.gpu_count * self.gpu_milli

    @property
    def is_shared(self) -> bool:
        """Whether it takes a part of one GPU."""
        return 0 < self.gpu_milli < GPU_WHOLE


def demand_of(spec: Spec) -> Demand:
    """Return the needs of a request: each GPU is a resource group."""
    amounts = [group.resources[GPU_MILLI] for group in spec.request.groups if GPU_MILLI in group.resources]
    return Demand(spec.flavor.vcpus, len(amounts), amounts[0] if amounts else 0)


def tag_of(gpu_count: int, gpu_milli: int) -> str:
    """Return the kind of a pod for ``GpuClustering``: "share", or its number of GPUs; "" without GPUs."""
    if not gpu_count:
        return ""
    return SHARED if gpu_milli < GPU_WHOLE else str(gpu_count)


def free_gpus(hosts: HostView) -> Amounts:
    """Return the free milli of each GPU, 0 where there is none: int64, shape (hosts, GPUs)."""
    return np.maximum(hosts.class_rows(GPU_MILLI).free, 0)


class GpuPolicy(BaseWeigher[GpuPolicyOptions]):
    """The common part of the policies: a score is of one host alone, and the pod takes the fullest GPU with room."""

    name = "gpu_policy"
    options: ClassVar[type[msgspec.Struct]] = GpuPolicyOptions
    aggregate_key = "gpu_policy"

    @property
    def multiplier(self) -> float:
        """Return 1: the lab has no other weigher to compete with."""
        return 1.0

    def raw(self, hosts: HostView, spec: Spec) -> Scores:
        """Return equal weights."""
        return np.zeros(len(hosts))

    def weight_key(self, hosts: HostView, spec: Spec) -> Hashable:
        """Return the needs of the request."""
        return demand_of(spec)

    def provider_costs(self, host: HostView, spec: Spec, *, resource_class: str, amount: int) -> Scores | None:
        """Return the free milli of each GPU: the fullest is the cheapest. Whole GPUs are taken in order."""
        if resource_class != GPU_MILLI or amount == GPU_WHOLE:
            return None
        costs: Scores = free_gpus(host)[0].astype(np.float64)
        return costs


class RandomPlacement(GpuPolicy):
    """Any feasible host, drawn by the scheduler, and any of its feasible GPUs."""

    name = "random"

    def provider_costs(self, host: HostView, spec: Spec, *, resource_class: str, amount: int) -> Scores | None:
        """Return random costs, drawn from the seed and the present state of the host."""
        if resource_class != GPU_MILLI:
            return None
        free = free_gpus(host)[0]
        state = [self._options.seed, int(host.rows[0]), amount, *free.tolist(), *host.column("free_vcpus").tolist()]
        return np.random.default_rng([int(each) for each in state]).random(len(free))


class DotProd(GpuPolicy):
    """The host with the smallest product of request and free amounts."""

    name = "dotprod"

    def raw(self, hosts: HostView, spec: Spec) -> Scores:
        """Return 0 to 100."""
        demand = demand_of(spec)
        cpu = hosts.column("free_vcpus") / _CPU_LARGEST * (demand.cpu_milli / _CPU_LARGEST)
        gpu = free_gpus(hosts).sum(axis=1) / _GPU_LARGEST * (demand.total_milli / _GPU_LARGEST)
        scores: Scores = np.trunc(_SCORE_MAX * (1 - (cpu + gpu) / 2))
        return scores


class GpuClustering(GpuPolicy):
    """A host with pods of the same kind."""

    name = "gpuclustering"

    def weight_key(self, hosts: HostView, spec: Spec) -> Hashable:
        """Return the kind of the pod."""
        demand = demand_of(spec)
        return tag_of(demand.gpu_count, demand.gpu_milli)

    def raw(self, hosts: HostView, spec: Spec) -> Scores:
        """Return 0 to 100."""
        demand = demand_of(spec)
        if not demand.gpu_count:
            return np.zeros(len(hosts))
        has_tag = {tag: hosts.image_counts(TAG_PROPERTY, tag) > 0 for tag in self._options.tags}
        kinds = sum(mask.astype(np.int64) for mask in has_tag.values())
        has_own = has_tag[tag_of(demand.gpu_count, demand.gpu_milli)]
        used = _GPU_LARGEST - free_gpus(hosts).sum(axis=1)
        bonus = np.where(has_own, np.where(kinds == 1, 75, 50), np.where(kinds == 0, 25, 0))
        scores: Scores = (25 * used // _GPU_LARGEST + bonus).astype(np.float64)
        return scores


class GpuPacking(GpuPolicy):
    """First GPUs in use, then free GPUs of hosts in use, then free hosts."""

    name = "gpupacking"

    def raw(self, hosts: HostView, spec: Spec) -> Scores:
        """Return 0 to 100."""
        demand = demand_of(spec)
        if not demand.gpu_count:
            return np.zeros(len(hosts))
        providers, _ = hosts.class_rows(GPU_MILLI)
        free = free_gpus(hosts)
        gpus = (providers >= 0).sum(axis=1)
        ordered = np.sort(np.where(free >= demand.gpu_milli, free, 2 * GPU_WHOLE), axis=1)[:, : demand.gpu_count]
        new = (ordered == GPU_WHOLE).sum(axis=1)
        shares = (ordered * 100 // GPU_WHOLE).sum(axis=1) // 10
        is_idle: Mask = (free == GPU_WHOLE).sum(axis=1) == gpus
        scores = np.where(new > 0, np.maximum(50 - new, 33), np.maximum(_SCORE_MAX - shares, 50))
        found: Scores = np.where(is_idle, np.maximum(33 - gpus, gpus), scores).astype(np.float64)
        return found


class BestFit(GpuPolicy):
    """The host with the least left afterwards."""

    name = "bestfit"

    def raw(self, hosts: HostView, spec: Spec) -> Scores:
        """Return about 0 to 100."""
        demand = demand_of(spec)
        cpu = (hosts.column("free_vcpus") - demand.cpu_milli) / _CPU_LARGEST
        gpu = (free_gpus(hosts).sum(axis=1) - demand.total_milli) / _GPU_LARGEST
        scores: Scores = np.trunc(_SCORE_MAX * (1 - (cpu * 0.5 + gpu * 0.5)))
        return scores


class Fgd(GpuPolicy):
    """Fragmentation gradient descent: the host and the GPU with the least growth of unusable GPUs."""

    name = "fgd"

    def __init__(self, options: GpuPolicyOptions) -> None:
        super().__init__(options)
        self._fragmentation = Fragmentation(options.typical, options.models)
        self._numbers = {model: number for number, model in enumerate(options.models)}

    def raw(self, hosts: HostView, spec: Spec) -> Scores:
        """Return 0 to 100: 50 if nothing changes, 0 also where the request does not fit."""
        best: Scores = self._ways(hosts, demand_of(spec)).max(axis=1)
        return best

    def provider_costs(self, host: HostView, spec: Spec, *, resource_class: str, amount: int) -> Scores | None:
        """Return the negated score of each GPU. Whole GPUs are taken in order."""
        if resource_class != GPU_MILLI or amount == GPU_WHOLE:
            return None
        scores = self._ways(host, demand_of(spec))[0]
        return np.where(scores < 0, _UNFIT, -scores)

    def model_of(self, hosts: HostView) -> Amounts:
        """Return the number of each host's GPU model: int64, shape (hosts,)."""
        return hosts.memoize(
            "gpu model", lambda view: np.array([self._numbers[facts.stats[MODEL_STAT]] for facts in view.all_facts()])
        )

    def unusable(self, hosts: HostView) -> Scores:
        """Return the unusable GPU milli of each host by cause: float64, shape (hosts, causes)."""
        return hosts.follow(
            (self, "unusable"),
            lambda view: self._fragmentation.by_cause(
                cpu=view.column("free_vcpus"), model=self.model_of(view), free=free_gpus(view)
            ).T.copy(),
        )

    def _ways(self, hosts: HostView, demand: Demand) -> Scores:
        """Return ``_scores``, kept for hosts that did not change."""
        return hosts.follow((self, "ways", demand), lambda view: self._scores(view, demand))

    def _scores(self, hosts: HostView, demand: Demand) -> Scores:
        """Return the score of each way to serve a request: float64, shape (hosts, ways); -1: it does not fit.

        A way is a GPU for a part of one GPU, else there is one way. Of GPUs with equal free amounts on a host, only
        the first is scored.
        """
        if len(hosts) <= _ONE_BY_ONE_MAX:
            return self._scores_one_by_one(hosts, demand)
        cpu, free = hosts.column("free_vcpus"), free_gpus(hosts)
        has_cpu: Mask = cpu >= demand.cpu_milli
        if demand.is_shared:
            is_first = ~((free[:, :, np.newaxis] == free[:, np.newaxis, :]) & _earlier(free.shape[1])).any(axis=2)
            rows, gpus = np.nonzero(has_cpu[:, np.newaxis] & is_first & (free >= demand.gpu_milli))
            after = free[rows]
            after[np.arange(len(rows)), gpus] -= demand.gpu_milli
            scores = np.full(free.shape, -1.0)
        else:
            is_whole: Mask = free == GPU_WHOLE
            rank = np.cumsum(is_whole, axis=1)
            rows = np.flatnonzero(has_cpu & (rank[:, -1] >= demand.gpu_count))
            gpus = np.zeros(len(rows), dtype=np.intp)
            after = np.where(is_whole & (rank <= demand.gpu_count), 0, free)[rows]
            scores = np.full((len(free), 1), -1.0)
        model = self.model_of(hosts)
        # One measurement of the hosts before and after is faster than two.
        unusable = self._total(
            np.concatenate([cpu, cpu[rows] - demand.cpu_milli]),
            np.concatenate([model, model[rows]]),
            np.concatenate([free, after]),
        )
        change = unusable[rows] - unusable[len(cpu) :]
        scores[rows, gpus] = _score_changes(change)
        return scores

    def _scores_one_by_one(self, hosts: HostView, demand: Demand) -> Scores:
        """Return the same as ``_scores``, from the states of each host before and after each way."""
        free = free_gpus(hosts).tolist()
        width = len(free[0]) if demand.is_shared else 1
        before, after, places = list[HostState](), list[HostState](), list[int]()
        for at, (cpu, model, gpus) in enumerate(
            zip(hosts.column("free_vcpus").tolist(), self.model_of(hosts).tolist(), free, strict=True)
        ):
            if cpu < demand.cpu_milli:
                continue
            now = HostState(cpu, model, tuple(sorted(gpus)))
            for way, left in _ways_on(gpus, demand):
                before.append(now)
                after.append(HostState(cpu - demand.cpu_milli, model, tuple(sorted(left))))
                places.append(at * width + way)
        scores = np.full(len(free) * width, -1.0)
        if places:
            unusable = np.array(self._fragmentation.totals_of(before + after))
            scores[places] = _score_changes(unusable[: len(places)] - unusable[len(places) :])
        return scores.reshape(-1, width)

    def _total(self, cpu: Scores, model: Amounts, free: Amounts) -> Scores:
        """Return the unusable GPU milli of states of hosts; of many states, equal ones are measured once."""
        if len(cpu) < _FEW_STATES:
            return self._fragmentation.total(cpu=cpu, model=model, free=free)
        states = np.column_stack([cpu.astype(np.int64), model, np.sort(free, axis=1)])
        first, number = _find_distinct(states)
        found = self._fragmentation.total(cpu=cpu[first], model=model[first], free=states[first, 2:])
        return found[number]


def _score_changes(change: Scores) -> Scores:
    """Return the scores of ways by which the unusable GPU milli of their hosts fall."""
    scores: Scores = np.trunc(_SCORE_MAX * (1 / (1 + np.exp(-change / GPU_WHOLE))))
    return scores


def _ways_on(gpus: list[int], demand: Demand) -> Iterator[tuple[int, list[int]]]:
    """Yield the ways to serve a request on one host: the number of the way, and the free amounts afterwards."""
    if demand.is_shared:
        for way, amount in enumerate(gpus):
            if amount >= demand.gpu_milli and gpus.index(amount) == way:
                yield way, [*gpus[:way], amount - demand.gpu_milli, *gpus[way + 1 :]]
        return
    whole = [at for at, amount in enumerate(gpus) if amount == GPU_WHOLE][: demand.gpu_count]
    if len(whole) == demand.gpu_count:
        yield 0, [0 if at in whole else amount for at, amount in enumerate(gpus)]


@functools.cache
def _earlier(count: int) -> Mask:
    """Return which GPUs come before each GPU: bool, shape (count, count)."""
    return np.tri(count, k=-1, dtype=np.bool_)


def _find_distinct(states: Amounts) -> tuple[Rows, Rows]:
    """Return the first position of each distinct row, and the number of the distinct row of each position."""
    factors = (np.arange(1, states.shape[1] + 1, dtype=np.uint64) * np.uint64(2) + np.uint64(1)) ** np.uint64(7)
    hashes = (states.astype(np.uint64) * (factors * np.uint64(_HASH_FACTOR))).sum(axis=1, dtype=np.uint64)
    _, first, number = np.unique(hashes, return_index=True, return_inverse=True)
    if not np.array_equal(states[first][number], states):  # Different rows have equal hashes.
        return np.arange(len(states)), np.arange(len(states))
    return first, number


def _build_gpu_value(_: GpuPolicyOptions) -> Weigher:
    """Return the weigher that learns the mix of requests as they arrive: it knows nothing of the workload."""
    return GpuValue(GpuValueOptions(gpu_value_weight_multiplier=1.0))


# The published policies, and Roost's own.
POLICIES: dict[str, Callable[[GpuPolicyOptions], Weigher]] = {
    **{policy.name: policy for policy in (RandomPlacement, DotProd, GpuClustering, GpuPacking, BestFit, Fgd)},
    "gpu_value": _build_gpu_value,
}
