"""A slow, obvious model of a host and its guests: a list of the processors and devices of each guest."""

import itertools

import msgspec

from tests.reference import numa


class PlainHost:
    """A host with a list of guests and their uses.

    Args:
        bare: the facts of the host without guests.
    """

    def __init__(self, bare):
        self.bare = bare
        self.guests = {}  # name -> use

    def facts(self, *, without=None):
        """Return the facts of the host with the uses of its guests, optionally without one of them."""
        uses = [use for name, use in self.guests.items() if name != without]
        return msgspec.structs.replace(self.bare, numa=self._numa(uses), pci_pools=self._pools(uses))

    def _numa(self, uses):
        if self.bare.numa is None:
            return None
        return msgspec.structs.replace(
            self.bare.numa, cells=tuple(_add_guests(cell, uses) for cell in self.bare.numa.cells)
        )

    def _pools(self, uses):
        single = [at for at, pool in enumerate(self.bare.pci_pools) for _ in range(pool.count)]
        for held in (pool for use in uses for pool in use.devices for _ in range(pool.count)):
            single.remove(next(at for at in single if _device(self.bare.pci_pools[at]) == _device(held)))
        return tuple(
            msgspec.structs.replace(pool, count=single.count(at)) for at, pool in enumerate(self.bare.pci_pools)
        )


def _add_guests(cell, uses):
    placed = [each for use in uses for each in use.cells if each.host_cell == cell.id]
    pinned = set(cell.pinned_cpus)
    for each in placed:
        own = {cpu for _, cpu in each.pins.pairs} | set(each.pins.reserved)
        pinned |= own
        if each.cell.threads == "isolate":
            pinned |= {other for core in cell.siblings for cpu in core if cpu in own for other in core}
    smallest = min((pages.size_kb for pages in cell.mempages), default=None)
    mempages = []
    for pages in cell.mempages:
        users = [each for each in placed if (each.page_size or smallest) == pages.size_kb]
        used = sum(each.cell.memory_mb * 1024 // pages.size_kb for each in users)
        mempages.append(msgspec.structs.replace(pages, used=pages.used + used))
    return msgspec.structs.replace(
        cell,
        cpu_usage=cell.cpu_usage + sum(len(each.cell.cpus) for each in placed),
        memory_usage=cell.memory_usage + sum(each.cell.memory_mb for each in placed),
        pinned_cpus=tuple(sorted(pinned)) if placed else cell.pinned_cpus,
        mempages=tuple(mempages),
    )


def _device(pool):
    return pool.product_id, pool.numa_node


def has_room(facts, topology, requests, *, needs, ratios):
    """Return whether an arrangement of cells exists with the requested devices near it.

    Args:
        requests: requests for different products.
        needs, ratios: see ``numa.arrangements``.
    """
    if topology is None or facts.numa is None:
        return True
    ways = numa.arrangements(facts.numa, topology, needs=needs, ratios=ratios)
    if not facts.pci_pools:
        return any(True for _ in ways)
    return any(all(nearness(facts, request, way) is not None for request in requests) for way in ways)


def has_devices(facts, requests):
    """Return whether the host has the devices of all requests, on any node."""
    return all(
        sum(pool.count for pool in facts.pci_pools if pool.product_id == wanted_product(request)) >= request.count
        for request in requests
    )


def nearness(facts, request, way):
    """Return the nearest nodes with enough devices for a request, or None."""
    ids = {cell.id for cell in way}
    sockets = {cell.id: cell.socket for cell in facts.numa.cells}
    beside = {node for node, socket in sockets.items() if socket in {sockets[each] for each in ids}}
    everywhere = {pool.numa_node for pool in facts.pci_pools}
    allowed = {
        "required": [ids],
        "legacy": [ids, ids | {None}],
        "preferred": [ids, ids | {None}, everywhere],
        "socket": [ids, set() if None in sockets.values() else beside],
    }
    product = wanted_product(request)
    for nodes in allowed[request.numa_policy]:
        found = [pool for pool in facts.pci_pools if pool.product_id == product and pool.numa_node in nodes]
        if sum(pool.count for pool in found) >= request.count:
            return nodes
    return None


def wanted_product(request):
    """Return the single product of a request."""
    (alternative,) = request.alternatives
    return alternative["product_id"]


def check(facts, topology, requests, use):
    """Check that the use of a guest was free before, and matches its request.

    Args:
        facts: the facts of the host before the claim.
    """
    by_id = {} if facts.numa is None else {cell.id: cell for cell in facts.numa.cells}
    way = [by_id[each.host_cell] for each in use.cells]
    assert len({cell.id for cell in way}) == len(way) == (len(topology.cells) if topology and facts.numa else 0)
    for at, (cell, each) in enumerate(zip(way, use.cells, strict=True)):
        assert each.cell == topology.cells[at]
        _check_pins(cell, each, reserved=int(topology.isolates_emulator and at == 0))
        _check_pages(cell, each)
    wanted = {wanted_product(request): request for request in requests}
    for product, devices in itertools.groupby(sorted(use.devices, key=_product), key=_product):
        held = list(devices)
        request = wanted.pop(product)
        assert sum(pool.count for pool in held) == request.count
        assert not way or {pool.numa_node for pool in held} <= nearness(facts, request, way)
    assert not wanted


def _product(pool):
    return pool.product_id


def _check_pins(host, placed, *, reserved):
    virtual, own = [cpu for cpu, _ in placed.pins.pairs], [cpu for _, cpu in placed.pins.pairs]
    all_cpus = own + list(placed.pins.reserved)
    assert set(virtual) == placed.cell.pcpus
    assert len(set(all_cpus)) == len(all_cpus)
    assert set(all_cpus) <= set(host.pcpus) - set(host.pinned_cpus)
    if placed.cell.is_pinned:
        assert len(placed.pins.reserved) == reserved
    cores = [[cpu for cpu in own if cpu in core] for core in host.siblings]
    if placed.cell.threads == "isolate":
        assert max(map(len, cores), default=0) <= 1


def _check_pages(host, placed):
    wanted, size = placed.cell, placed.page_size
    assert (size is None) == (wanted.page_size is None)
    if size is not None:
        (pages,) = (each for each in host.mempages if each.size_kb == size)
        assert pages.used + pages.reserved + wanted.memory_mb * 1024 // size <= pages.total
