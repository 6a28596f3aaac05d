"""A slow, obvious model of requests for several instances on small hosts: every processor is in a list."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from tests.reference.rules import normalise


@dataclass
class Cell:
    """A NUMA cell: its free processors and its memory."""

    number: int
    free: list[int]
    memory_mb: int


@dataclass
class Pool:
    """Devices near a NUMA cell, or near none."""

    node: int | None
    count: int


@dataclass
class Host:
    """A host with its free resources."""

    name: str
    cells: list[Cell]
    pools: list[Pool]
    io_ops: int


@dataclass(frozen=True)
class Wish:
    """A request for instances with dedicated processors and devices near them."""

    count: int
    vcpus: int
    memory_mb: int
    nodes: int
    devices: int
    policy: str
    isolates_emulator: bool


@dataclass
class Outcome:
    """The hosts of the placed instances, and the hosts that fit one more, best first."""

    chosen: list[str]
    others: list[str]


def decide(hosts: list[Host], wish: Wish, *, limit: int) -> Outcome:
    """Place each instance on the best host; this changes ``hosts``.

    Args:
        limit: hosts with this number of I/O operations accept no instance.
    """
    chosen: list[str] = []
    while len(chosen) < wish.count:
        left = rank([host for host in hosts if host.io_ops < limit and way_on(host, wish) is not None])
        if not left:
            return Outcome(chosen, [])
        take(left[0], wish)
        chosen.append(left[0].name)
    left = rank([host for host in hosts if host.io_ops < limit and way_on(host, wish) is not None])
    return Outcome(chosen, [host.name for host in left if host.name not in chosen])


def rank(hosts: list[Host]) -> list[Host]:
    """Order hosts: those with few I/O operations and few devices come first."""
    operations = normalise([float(host.io_ops) for host in hosts], minval=0.0)
    devices = normalise([100.0 - min(sum(pool.count for pool in host.pools), 99) for host in hosts])
    order = sorted(range(len(hosts)), key=lambda at: operations[at] - devices[at])
    return [hosts[at] for at in order]


def way_on(host: Host, wish: Wish) -> tuple[Cell, ...] | None:
    """Return the NUMA cells of a host that an instance would use."""
    cells = list(host.cells)
    if len(cells) > wish.nodes:
        cells.sort(key=lambda cell: -cell.memory_mb)
        cells.sort(key=lambda cell: -len(cell.free))
        sign = -1 if wish.devices else 1
        cells.sort(key=lambda cell: sign * sum(pool.count for pool in host.pools if pool.node == cell.number))
    for way in itertools.permutations(cells, wish.nodes):
        has_room = all(
            len(cell.free) >= processors and cell.memory_mb >= wish.memory_mb // wish.nodes
            for cell, processors in zip(way, processors_of(wish), strict=True)
        )
        if has_room and devices_near(host, wish, way) is not None:
            return way
    return None


def processors_of(wish: Wish) -> list[int]:
    """Return the number of processors of each NUMA cell of an instance."""
    each = wish.vcpus // wish.nodes
    return [each + wish.isolates_emulator, *[each] * (wish.nodes - 1)]


def devices_near(host: Host, wish: Wish, way: Sequence[Cell]) -> list[Pool] | None:
    """Return the pool of each device of an instance, or None without enough devices nearby."""
    near = [pool for pool in host.pools if pool.node in {cell.number for cell in way}]
    near_or_unbound = [pool for pool in host.pools if pool in near or pool.node is None]
    far = [pool for pool in host.pools if pool not in near_or_unbound]
    allowed = {
        "required": [near],
        "legacy": [near, near_or_unbound],
        "preferred": [near, near_or_unbound, near_or_unbound + far],
    }
    for pools in allowed[wish.policy]:
        single = [pool for pool in pools for _ in range(pool.count)]
        if len(single) >= wish.devices:
            return single[: wish.devices]
    return None


def take(host: Host, wish: Wish) -> None:
    """Take the resources of an instance from a host."""
    way = way_on(host, wish)
    assert way is not None
    devices = devices_near(host, wish, way)
    assert devices is not None
    for cell, processors in zip(way, processors_of(wish), strict=True):
        assert processors <= len(cell.free)
        del cell.free[:processors]
        cell.memory_mb -= wish.memory_mb // wish.nodes
        assert cell.memory_mb >= 0
    for pool in devices:
        pool.count -= 1
        assert pool.count >= 0
    host.io_ops += 1
