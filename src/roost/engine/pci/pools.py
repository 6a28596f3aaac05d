"""Allocation of free PCI devices: requests take devices, in order, from pools of equal devices."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

import msgspec

from roost.model.allocation import Mappings
from roost.model.devices.pci import PciRequest, PciTraits
from roost.model.host import HostFacts, PciPool
from roost.model.switches import is_true

Value = str | tuple[str, ...] | None

UNMAPPED: Mappings = MappingProxyType({})
_SOCKETLESS: Mapping[int, int | None] = MappingProxyType({})
# Keys of a request that only Placement reads; pools ignore them.
_PLACEMENT_KEYS = frozenset({"resource_class", "traits", "rp_uuids"})
_FIELDS = ("vendor_id", "product_id", "dev_type", "address")


def supports(
    pools: Sequence[PciPool],
    requests: Iterable[PciRequest],
    *,
    cells: Sequence[int] | None = None,
    sockets: Mapping[int, int | None] = _SOCKETLESS,
    mappings: Mappings = UNMAPPED,
) -> bool:
    """Return whether a host has the devices of all requests together.

    Args:
        pools: the free devices of the host.
        requests: served in order.
        cells: ids of the instance's host NUMA cells; None: any.
        sockets: socket of each host NUMA cell; None if unknown.
        mappings: the providers of each resource group; the groups of a device request are
            ``<request_id>-<number>``.
    """
    free = FreePools(pools, sockets=sockets)
    return all(free.take(request, cells=cells, mappings=mappings) for request in requests)


def subtract_requests(
    pools: Sequence[PciPool],
    requests: Iterable[PciRequest],
    *,
    cells: Sequence[int] | None,
    sockets: Mapping[int, int | None],
    mappings: Mappings,
) -> tuple[PciPool, ...] | None:
    """Subtract the devices of all requests from the pools; None if the pools lack some.

    Args:
        pools, requests, cells, sockets, mappings: as for ``supports``.
    """
    free = FreePools(pools, sockets=sockets)
    if not all(free.take(request, cells=cells, mappings=mappings) for request in requests):
        return None
    return tuple(msgspec.structs.replace(pool, count=count) for pool, count in zip(pools, free.counts, strict=True))


def choose_devices(
    pools: Sequence[PciPool],
    requests: Iterable[PciRequest],
    *,
    cells: Sequence[int] | None,
    sockets: Mapping[int, int | None],
    mappings: Mappings,
) -> tuple[PciPool, ...] | None:
    """Choose the devices of all requests, as pools with counts; None if the pools lack some.

    Args:
        pools, requests, cells, sockets, mappings: as for ``supports``.
    """
    behind = subtract_requests(pools, requests, cells=cells, sockets=sockets, mappings=mappings)
    if behind is None:
        return None
    counts = [pool.count - after.count for pool, after in zip(pools, behind, strict=True)]
    return tuple(msgspec.structs.replace(pool, count=count) for pool, count in zip(pools, counts, strict=True) if count)


class FreePools:
    """The free devices of a host, reduced request by request."""

    __slots__ = ("_left", "_order", "_pools", "_sockets")

    def __init__(self, pools: Sequence[PciPool], *, sockets: Mapping[int, int | None] = _SOCKETLESS) -> None:
        self._pools = pools
        self._left = [pool.count for pool in pools]
        # The least specific devices go first, so special ones remain for requests that need them.
        self._order = sorted(range(len(pools)), key=lambda at: _count_details(pools[at]))
        self._sockets = sockets

    @property
    def counts(self) -> list[int]:
        """The number of free devices by pool, in the order of the pools."""
        return list(self._left)

    def take(self, request: PciRequest, *, cells: Sequence[int] | None = None, mappings: Mappings = UNMAPPED) -> bool:
        """Take the devices of a request and return True; if too few are free, take none and return False.

        Args:
            request: the devices.
            cells, mappings: as for ``supports``.
        """
        providers = _count_providers(request, mappings)
        chosen = self._find_suitable(request, cells, providers)
        if chosen is None:
            return False
        missing = request.count
        for at in chosen:
            taken = _count_requested(self._pools[at], providers) if providers else min(missing, self._left[at])
            self._left[at] -= taken
            missing -= taken
        return True

    def _find_suitable(
        self, request: PciRequest, cells: Sequence[int] | None, providers: Counter[str]
    ) -> list[int] | None:
        """Find the pools to take from, in order; None if they have too few devices."""
        pools, wanted = self._pools, request.alternatives
        chosen = [
            at
            for at in self._order
            if self._left[at] and any(is_match(pools[at], alternative) for alternative in wanted)
        ]
        if self._count(chosen) < request.count:
            return None
        if cells is not None:
            chosen = self._keep_near(chosen, request, cells)
            if self._count(chosen) < request.count:
                return None
        if not any(alternative.get("dev_type") == "type-PF" for alternative in wanted):
            chosen = [at for at in chosen if pools[at].dev_type != "type-PF"]
            if self._count(chosen) < request.count:
                return None
        if not any(alternative.get("dev_type") == "vdpa" for alternative in wanted):
            chosen = [at for at in chosen if pools[at].dev_type != "vdpa"]
        if not any(_is_on(alternative.get("remote_managed")) for alternative in wanted):
            chosen = [at for at in chosen if not _is_on(pools[at].tags.get("remote_managed"))]
        if providers:
            chosen = [at for at in chosen if 0 < _count_requested(pools[at], providers) <= self._left[at]]
        chosen = _keep_migratable(pools, chosen, wanted)
        return chosen if self._count(chosen) >= request.count else None

    def _keep_near(self, chosen: list[int], request: PciRequest, cells: Sequence[int]) -> list[int]:
        """Keep the pools near enough to the NUMA cells, the nearest first."""
        node_of = [pool.numa_node for pool in self._pools]
        near = [at for at in chosen if node_of[at] in cells]
        policy = request.numa_policy
        if policy == "required" or self._count(near) >= request.count:
            return near
        if policy == "socket":
            return [at for at in chosen if node_of[at] in self._socket_nodes(cells)]
        near_or_nowhere = [at for at in chosen if node_of[at] is None or node_of[at] in cells]
        if policy == "legacy" or self._count(near_or_nowhere) >= request.count:
            return near_or_nowhere
        return near_or_nowhere + [at for at in chosen if at not in near_or_nowhere]

    def _socket_nodes(self, cells: Sequence[int]) -> frozenset[int]:
        """Return all NUMA cells on the sockets of some cells; none if any socket is unknown."""
        if None in self._sockets.values():
            return frozenset()
        wanted = {self._sockets.get(cell) for cell in cells}
        return frozenset(node for node, socket in self._sockets.items() if socket in wanted)

    def _count(self, chosen: list[int]) -> int:
        return sum(self._left[at] for at in chosen)


def bare_pools(facts: HostFacts) -> list[PciPool]:
    """Return the pools of a host without their providers."""
    return [msgspec.structs.replace(pool, rp_uuids=()) for pool in facts.pci_pools]


def is_match(pool: PciPool, wanted: PciTraits) -> bool:
    """Return whether the devices of a pool match a request, ignoring case.

    If both values are lists, the pool's must contain all requested elements.
    """
    for name, value in wanted.items():
        if name in _PLACEMENT_KEYS:
            continue
        has = _value(pool, name)
        if isinstance(value, tuple) and isinstance(has, tuple):
            if not set(value) <= set(has):
                return False
        elif isinstance(value, str) and isinstance(has, str):
            if value.lower() != has.lower():
                return False
        elif value != has:
            return False
    return True


def _count_details(pool: PciPool) -> int:
    return len(pool.tags) + bool(pool.rp_uuids) + bool(pool.address)


def _value(pool: PciPool, name: str) -> Value:
    if name in _FIELDS:
        value: str = getattr(pool, name)
        return value or None
    return pool.tags.get(name)


def _count_providers(request: PciRequest, mappings: Mappings) -> Counter[str]:
    """Count the resource groups of a request by provider; empty if the request did not go to Placement."""
    if request.source != "flavor" or not request.request_id:
        return Counter()
    own = (mappings[suffix] for suffix in mappings if suffix.rpartition("-")[0] == request.request_id)
    return Counter(uuid for providers in own for uuid in providers)


def _count_requested(pool: PciPool, providers: Counter[str]) -> int:
    """Count the devices that a request must take from a pool, given its providers."""
    return sum(providers[uuid] for uuid in pool.rp_uuids)


def _keep_migratable(pools: Sequence[PciPool], chosen: list[int], wanted: Sequence[PciTraits]) -> list[int]:
    """Keep only the live-migratable pools if all alternatives demand them, only the others if all exclude them."""
    flags = {str(alternative.get("live_migratable")).lower() for alternative in wanted}
    if flags not in ({"true"}, {"false"}):
        return chosen
    return [at for at in chosen if str(pools[at].tags.get("live_migratable")).lower() in flags]


def _is_on(value: Value) -> bool:
    return isinstance(value, str) and is_true(value)
