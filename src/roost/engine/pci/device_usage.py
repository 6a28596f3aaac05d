"""Free devices of a host, without those of its guests."""

from collections.abc import Iterable, Sequence

import msgspec

from roost.model.host import PciPool


def subtract_devices(pools: Sequence[PciPool], devices: Iterable[PciPool]) -> tuple[PciPool, ...]:
    """Subtract the devices of guests from the pools of a host.

    If the tags or providers of a pool changed, its hardware identifies the guests' devices. Devices that the host
    no longer has are ignored. The order of guests does not matter.

    Args:
        pools: all devices of the host.
        devices: devices of guests, with the count from each pool.
    """
    counts = [pool.count for pool in pools]
    relabelled = []
    for each in devices:
        same = [at for at, pool in enumerate(pools) if clear_count(pool) == clear_count(each)]
        if same:
            _take(counts, same, each.count)
        else:
            relabelled.append(each)
    for each in relabelled:
        _take(counts, [at for at, pool in enumerate(pools) if _kind(pool) == _kind(each)], each.count)
    return tuple(msgspec.structs.replace(pool, count=count) for pool, count in zip(pools, counts, strict=True))


def _take(counts: list[int], positions: Iterable[int], count: int) -> None:
    """Take up to ``count`` devices, from the first pools first."""
    for at in positions:
        taken = min(count, counts[at])
        counts[at] -= taken
        count -= taken


def clear_count(pool: PciPool) -> PciPool:
    """Return a pool with a count of 0, to compare kinds of devices."""
    return msgspec.structs.replace(pool, count=0)


def _kind(pool: PciPool) -> tuple[object, ...]:
    return pool.vendor_id, pool.product_id, pool.dev_type, pool.numa_node, pool.address
