"""Fragmentation: the part of the free resources that no expected request can use."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from roost.engine.columns.types import Amounts
from roost.model.fleet import Fleet
from roost.model.request import Request
from roost.simulator.traces.openb import GPU_MILLI
from roost.simulator.workload import Workload

FreeByProvider = Callable[[str], Amounts]
# The GPUs of one instance: amount and any-of traits of each.
_GpuNeed = tuple[tuple[int, tuple[frozenset[str], ...]], ...]


def compute_stranded_share(free: Amounts, piece: int) -> float:
    """Return the share of the free amount in pieces smaller than ``piece``.

    Args:
        free: int64, shape (providers,), free amounts of one class.
        piece: same unit, >= 1.

    >>> compute_stranded_share(np.array([1, 3, 4, 8]), 4)
    0.25
    """
    total = int(free.sum())
    return float(free[free < piece].sum() / total) if total else 0.0


def find_typical_amounts(workload: Workload) -> dict[str, int]:
    """Return the lower median of the requested pieces of each resource class.

    A piece is the amount of the class in one request group of one instance.
    """
    pieces: dict[str, Counter[int]] = {}
    for request in _requests(workload):
        for group in _pieces(request):
            for resource_class, amount in group.items():
                pieces.setdefault(resource_class, Counter())[amount] += request.count
    return {resource_class: _lower_median(counts) for resource_class, counts in pieces.items()}


class GpuFragmentation:
    """The expected fragment of all GPUs of a fleet, for the requests of a workload.

    A need is the request of one instance. The fragment of a node for a need is the free amount of those
    GPUs that cannot serve it: all GPUs if the need does not fit, or has no GPU. Nodes are summed, and needs
    are weighted by their frequency in the workload.

    Source:
        "Beware of Fragmentation" (FGD), USENIX ATC 2023, section 4. It takes the most frequent 95 % of
        needs and ignores memory; here all needs count, and memory must fit.
    """

    def __init__(self, workload: Workload) -> None:
        """Collect the nodes and the needs, once for all moments."""
        self._fleet = _find_gpu_nodes(workload.fleet)
        # Frequency of each pair of VCPU and MEMORY_MB, by the GPUs of the same need.
        self._needs: dict[_GpuNeed, Counter[tuple[int, int]]] = {}
        for request in () if self._fleet is None else _requests(workload):
            sizes = self._needs.setdefault(_gpu_need(request), Counter())
            sizes[request.flavor.vcpus, request.flavor.memory_mb] += request.count

    def share(self, free: FreeByProvider) -> float | None:
        """Return the fragment as a share of the capacity of all GPUs; None for a fleet without ``CUSTOM_GPU_MILLI``."""
        if self._fleet is None or not self._needs:
            return None
        nodes = _read_free(self._fleet, free)
        fragments = sum(_sum_fragments(nodes, gpus, sizes) for gpus, sizes in self._needs.items())
        request_count = sum(sizes.total() for sizes in self._needs.values())
        return float(fragments / request_count / self._fleet.capacity)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Fleet:
    """Places of free amounts in matrices: a row per root and, for GPUs, a column per GPU of the largest root."""

    rows: dict[str, Amounts]  # for VCPU and MEMORY_MB: the row of each provider's root, shape (providers,)
    gpus: tuple[Amounts, ...]  # rows and columns, each of shape (GPUs,)
    kinds: Amounts  # shape (roots, widest), index in ``traits``
    traits: list[frozenset[str]]
    capacity: int  # of all GPUs


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Nodes:
    """Free amounts of all roots at one moment."""

    vcpus: Amounts  # shape (roots,)
    memory_mb: Amounts  # shape (roots,)
    gpus: Amounts  # shape (roots, widest), 0 for padding
    kinds: Amounts  # same shape, index in ``traits``
    traits: list[frozenset[str]]


def _find_gpu_nodes(fleet: Fleet) -> _Fleet | None:
    gpus = [provider for provider in fleet.providers if GPU_MILLI in provider.inventories]
    if not gpus:
        return None
    roots = (provider.uuid for provider in fleet.providers if provider.parent_uuid is None)
    rows = {uuid: row for row, uuid in enumerate(roots)}
    traits: dict[frozenset[str], int] = {}
    widths: Counter[int] = Counter()
    places: list[tuple[int, int]] = []
    for gpu in gpus:
        row = rows[gpu.parent_uuid or gpu.uuid]
        places.append((row, widths[row]))
        widths[row] += 1
        traits.setdefault(gpu.traits, len(traits))
    kinds = np.zeros((len(rows), max(widths.values())), dtype=np.int64)
    at = tuple(np.array(places, dtype=np.int64).T)
    kinds[at] = [traits[gpu.traits] for gpu in gpus]
    return _Fleet(
        rows={resource_class: _find_rows(fleet, rows, resource_class) for resource_class in ("VCPU", "MEMORY_MB")},
        gpus=at,
        kinds=kinds,
        traits=list(traits),
        capacity=sum(gpu.inventories[GPU_MILLI].capacity for gpu in gpus),
    )


def _find_rows(fleet: Fleet, rows: Mapping[str, int], resource_class: str) -> Amounts:
    providers = (provider for provider in fleet.providers if resource_class in provider.inventories)
    return np.array([rows[provider.parent_uuid or provider.uuid] for provider in providers], dtype=np.int64)


def _read_free(fleet: _Fleet, free: FreeByProvider) -> _Nodes:
    gpus = np.zeros_like(fleet.kinds)
    gpus[fleet.gpus] = free(GPU_MILLI)
    own = {resource_class: np.zeros(len(gpus), dtype=np.int64) for resource_class in fleet.rows}
    for resource_class, rows in fleet.rows.items():
        if len(rows):
            np.add.at(own[resource_class], rows, free(resource_class))
    return _Nodes(vcpus=own["VCPU"], memory_mb=own["MEMORY_MB"], gpus=gpus, kinds=fleet.kinds, traits=fleet.traits)


def _sum_fragments(nodes: _Nodes, gpus: _GpuNeed, sizes: Counter[tuple[int, int]]) -> int:
    """Return the sum of the fragments of all needs for these GPUs, weighted by frequency."""
    idle = int(nodes.gpus.sum())
    if not gpus:
        return idle * sizes.total()
    # All GPUs of a need are equal, as in the pods of the trace, so the first one suffices.
    amount, required = gpus[0]
    allowed = np.array([all(traits & any_of for any_of in required) for traits in nodes.traits])
    usable = (nodes.gpus >= amount) & allowed[nodes.kinds]
    useful: Amounts = np.where(usable, nodes.gpus, 0).sum(axis=1)
    has_enough = usable.sum(axis=1) >= len(gpus)
    fragments = 0
    for (vcpus, memory_mb), count in sizes.items():
        fits = has_enough & (nodes.vcpus >= vcpus) & (nodes.memory_mb >= memory_mb)
        fragments += count * (idle - int(useful[fits].sum()))
    return fragments


def _gpu_need(request: Request) -> _GpuNeed:
    groups = (group for group in request.groups if GPU_MILLI in group.resources)
    return tuple((group.resources[GPU_MILLI], group.required) for group in groups)


def _requests(workload: Workload) -> list[Request]:
    return [event.act for event in workload.events if isinstance(event.act, Request)]


def _pieces(request: Request) -> list[dict[str, int]]:
    flavor = request.flavor
    swap_gb = -(-flavor.swap // 1024)
    flavor_amounts = {
        "VCPU": flavor.vcpus,
        "MEMORY_MB": flavor.memory_mb,
        "DISK_GB": flavor.root_gb + flavor.ephemeral_gb + swap_gb,
    }
    return [
        {resource_class: amount for resource_class, amount in flavor_amounts.items() if amount},
        *(group.resources for group in request.groups),
    ]


def _lower_median(counts: Counter[int]) -> int:
    half = (counts.total() + 1) // 2
    seen = 0
    for amount in sorted(counts):
        seen += counts[amount]
        if seen >= half:
            return amount
    raise AssertionError("a median of nothing")
