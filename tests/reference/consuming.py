"""Requests for several instances on small hosts once more, slow and obvious: every processor is in a list."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from tests.reference.rules import normalise


@dataclass
class Cell:
    """A memory node: the processors that nobody has, and the memory."""

    number: int
    free: list[int]
    memory_mb: int


@dataclass
class Pool:
    """Devices near a memory node, or near none."""

    node: int | None
    count: int


@dataclass
class Host:
    """A host with what is free of it."""

    name: str
    cells: list[Cell]
    pools: list[Pool]
    io_ops: int


@dataclass(frozen=True)
class Wish:
    """Instances with processors of their own and devices near to them."""

    count: int
    vcpus: int
    memory_mb: int
    nodes: int
    devices: int
    policy: str
    isolates_emulator: bool


@dataclass
class Outcome:
    """The hosts of the instances that found one, and those which would do for one more, best first."""

    chosen: list[str]
    others: list[str]


def decide(hosts: list[Host], wish: Wish, *, limit: int) -> Outcome:
    """Let each instance have the best host; hosts are changed.

    Args:
        limit: hosts with so many I/O operations in flight take none.
    """
    chosen: list[str] = []
    while len(chosen) < wish.count:
        left = ranked([host for host in hosts if host.io_ops < limit and way_on(host, wish) is not None])
        if not left:
            return Outcome(chosen, [])
        take(left[0], wish)
        chosen.append(left[0].name)
    left = ranked([host for host in hosts if host.io_ops < limit and way_on(host, wish) is not None])
    return Outcome(chosen, [host.name for host in left if host.name not in chosen])


def ranked(hosts: list[Host]) -> list[Host]:
    """Order hosts: few operations in flight and few devices first."""
    operations = normalise([float(host.io_ops) for host in hosts], minval=0.0)
    devices = normalise([100.0 - min(sum(pool.count for pool in host.pools), 99) for host in hosts])
    order = sorted(range(len(hosts)), key=lambda at: operations[at] - devices[at])
    return [hosts[at] for at in order]


def way_on(host: Host, wish: Wish) -> tuple[Cell, ...] | None:
    """Return the memory nodes of a host on which an instance would be."""
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
    """Return how many processors each memory node of an instance takes."""
    each = wish.vcpus // wish.nodes
    return [each + wish.isolates_emulator, *[each] * (wish.nodes - 1)]


def devices_near(host: Host, wish: Wish, way: Sequence[Cell]) -> list[Pool] | None:
    """Return the pool of each device that an instance takes; None where they are too few or too far."""
    near = [pool for pool in host.pools if pool.node in {cell.number for cell in way}]
    nowhere = [pool for pool in host.pools if pool in near or pool.node is None]
    far = [pool for pool in host.pools if pool not in nowhere]
    allowed = {"required": [near], "legacy": [near, nowhere], "preferred": [near, nowhere, nowhere + far]}
    for pools in allowed[wish.policy]:
        single = [pool for pool in pools for _ in range(pool.count)]
        if len(single) >= wish.devices:
            return single[: wish.devices]
    return None


def take(host: Host, wish: Wish) -> None:
    """Take from a host what an instance takes."""
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
