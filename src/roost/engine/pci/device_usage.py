"""What of a host's devices is free beside those of its guests."""

from collections.abc import Iterable, Sequence

import msgspec

from roost.model.host import PciPool


def subtract_devices(pools: Sequence[PciPool], devices: Iterable[PciPool]) -> tuple[PciPool, ...]:
    """Return the pools of a host without the devices that guests have.

    A pool of which tags or providers are told anew is found by what its devices are. Devices that the host has no more
    are passed over. The order of guests makes no difference.

    Args:
        pools: all devices that there are.
        devices: those of guests, of each pool so many.
    """
    counts = [pool.count for pool in pools]
    told_anew = []
    for each in devices:
        same = [at for at, pool in enumerate(pools) if clear_count(pool) == clear_count(each)]
        if same:
            _take(counts, same, each.count)
        else:
            told_anew.append(each)
    for each in told_anew:
        _take(counts, [at for at, pool in enumerate(pools) if _kind(pool) == _kind(each)], each.count)
    return tuple(msgspec.structs.replace(pool, count=count) for pool, count in zip(pools, counts, strict=True))


def _take(counts: list[int], positions: Iterable[int], count: int) -> None:
    """Take as many as there are, from the first pools first."""
    for at in positions:
        taken = min(count, counts[at])
        counts[at] -= taken
        count -= taken


def clear_count(pool: PciPool) -> PciPool:
    """Return what the devices of a pool are, however many there are."""
    return msgspec.structs.replace(pool, count=0)


def _kind(pool: PciPool) -> tuple[object, ...]:
    return pool.vendor_id, pool.product_id, pool.dev_type, pool.numa_node, pool.address
