"""Fragmentation: how much of what is free can no longer be used as it is asked for."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from roost.engine.types import Amounts
from roost.model.fleet import Fleet
from roost.model.request import Request
from roost.simulator.traces.openb import GPU_MILLI
from roost.simulator.world import Workload

FreeByProvider = Callable[[str], Amounts]
# Per distinct need of one instance: VCPU, MEMORY_MB, then one entry a GPU: amount and any-of traits.
_Need = tuple[int, int, tuple[tuple[int, tuple[frozenset[str], ...]], ...]]


def stranded_share(free: Amounts, piece: int) -> float:
    """Return the share of the free amount that lies in pieces smaller than ``piece``.

    Args:
        free: int64, shape (providers,), what each has free of one class.
        piece: same unit, >= 1.

    >>> stranded_share(np.array([1, 3, 4, 8]), 4)
    0.25
    """
    total = int(free.sum())
    return float(free[free < piece].sum() / total) if total else 0.0


def typical_amounts(workload: Workload) -> dict[str, int]:
    """Return for each resource class the amount that at least half of all asked pieces do not exceed.

    A piece is what one resource group of one instance asks of the class: the lower median of all.
    """
    pieces: dict[str, Counter[int]] = {}
    for request in _requests(workload):
        for group in _pieces(request):
            for resource_class, amount in group.items():
                pieces.setdefault(resource_class, Counter())[amount] += request.count
    return {resource_class: _lower_median(counts) for resource_class, counts in pieces.items()}


def gpu_fragmentation(workload: Workload, free: FreeByProvider) -> float | None:
    """Return the expected fragment of all GPUs, as a share of their capacity; None without fractions of GPUs.

    The fragment of a node for one need is what it has free of GPUs, if the need does not fit there or
    asks no GPU; else what is free on GPUs that cannot serve it. Nodes are summed, needs are weighted by
    how often the workload asks them.

    Source:
        "Beware of Fragmentation" (FGD), USENIX ATC 2023, section 4; there needs are the most frequent
        95 %, and memory is not looked at. Here all needs count, and memory must fit.
    """
    nodes = _nodes(workload.fleet, free)
    if nodes is None:
        return None
    needs: Counter[_Need] = Counter()
    for request in _requests(workload):
        needs[_need(request)] += request.count
    if not needs:
        return None
    fragments = sum(count * _fragment(nodes, need) for need, count in needs.items())
    return float(fragments / needs.total() / nodes.capacity)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Nodes:
    """Free amounts of all roots; GPUs as a matrix with as many columns as the widest has GPUs."""

    vcpus: Amounts  # shape (roots,)
    memory_mb: Amounts  # shape (roots,)
    gpus: Amounts  # shape (roots, widest), 0 where there is none
    kinds: Amounts  # same shape, row in ``traits``
    traits: list[frozenset[str]]
    capacity: int  # of all GPUs


def _nodes(fleet: Fleet, free: FreeByProvider) -> _Nodes | None:
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
    free_gpus = np.zeros((len(rows), max(widths.values())), dtype=np.int64)
    kinds = np.zeros_like(free_gpus)
    at = tuple(np.array(places, dtype=np.int64).T)
    free_gpus[at] = free(GPU_MILLI)
    kinds[at] = [traits[gpu.traits] for gpu in gpus]
    return _Nodes(
        vcpus=_by_root(fleet, rows, free=free, resource_class="VCPU"),
        memory_mb=_by_root(fleet, rows, free=free, resource_class="MEMORY_MB"),
        gpus=free_gpus,
        kinds=kinds,
        traits=list(traits),
        capacity=sum(gpu.inventories[GPU_MILLI].capacity for gpu in gpus),
    )


def _by_root(fleet: Fleet, rows: Mapping[str, int], *, free: FreeByProvider, resource_class: str) -> Amounts:
    amounts = np.zeros(len(rows), dtype=np.int64)
    offering = [provider for provider in fleet.providers if resource_class in provider.inventories]
    if not offering:
        return amounts
    at = np.array([rows[provider.parent_uuid or provider.uuid] for provider in offering], dtype=np.int64)
    np.add.at(amounts, at, free(resource_class))
    return amounts


def _fragment(nodes: _Nodes, need: _Need) -> int:
    vcpus, memory_mb, gpus = need
    idle: Amounts = nodes.gpus.sum(axis=1)
    if not gpus:
        return int(idle.sum())
    # All GPUs of a need ask the same: such are the pods of the trace, and the first speaks for the others.
    amount, required = gpus[0]
    allowed = np.array([all(traits & any_of for any_of in required) for traits in nodes.traits])
    serving = (nodes.gpus >= amount) & allowed[nodes.kinds]
    fits = (nodes.vcpus >= vcpus) & (nodes.memory_mb >= memory_mb) & (serving.sum(axis=1) >= len(gpus))
    useful = np.where(serving, nodes.gpus, 0).sum(axis=1)
    return int((idle - np.where(fits, useful, 0)).sum())


def _need(request: Request) -> _Need:
    asking = (group for group in request.groups if GPU_MILLI in group.resources)
    gpus = tuple((group.resources[GPU_MILLI], group.required) for group in asking)
    return request.flavor.vcpus, request.flavor.memory_mb, gpus


def _requests(workload: Workload) -> list[Request]:
    return [event.act for event in workload.events if isinstance(event.act, Request)]


def _pieces(request: Request) -> list[dict[str, int]]:
    flavor = request.flavor
    swap_gb = -(-flavor.swap // 1024)
    own = {
        "VCPU": flavor.vcpus,
        "MEMORY_MB": flavor.memory_mb,
        "DISK_GB": flavor.root_gb + flavor.ephemeral_gb + swap_gb,
    }
    return [
        {resource_class: amount for resource_class, amount in own.items() if amount},
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
