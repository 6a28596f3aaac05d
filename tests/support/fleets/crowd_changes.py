"""Random crowds of hosts, random changes of them, and the comparison of a shape with a fresh one."""

from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from unittest.mock import patch

from roost.engine.ranking import top_pool
from roost.model.host import HostFacts, PciPool
from roost.scheduler.shape import shape as pipeline_shape
from tests.support.fleets.crowds import (
    Kind,
    ShapeProbe,
    allocate_anywhere,
    bits,
    fill,
    pick_best,
    pick_near_best,
    remove_one,
    run_many_events,
)

STEPS = (
    (pick_best,) * 8
    + (pick_near_best,) * 3
    + (allocate_anywhere,) * 3
    + (fill,) * 2
    + (remove_one,) * 4
    + (run_many_events,)
)


def random_kind(random: Random) -> Kind:
    facts = HostFacts(
        num_io_ops=random.choice((0, 0, 3)),
        failed_builds=random.choice((0, 0, 0, 2)),
        hypervisor_version=random.choice((0, 4_001_000)),
        is_disabled=random.random() < 0.1,
        metrics={"load": random.choice((0.25, 0.5))} if random.random() < 0.8 else {},
        pci_pools=(PciPool(vendor_id="8086", product_id="154c", count=random.choice((1, 7, 99))),)
        if random.random() < 0.3
        else (),
    )
    memory = random.choice((8, 16, 16, 33))
    return Kind(
        vcpus=random.choice((2, 8, 8, 64)),
        memory_mb=memory,
        disk_gb=random.choice((0, 10)),
        memory_reserved=random.choice((0, 0, memory // 4, memory)),
        facts=facts,
    )


def random_crowd(random: Random, hosts: int) -> list[Kind]:
    """Return hosts of one kind (all scores tie), of a few kinds, or each of its own kind."""
    kinds = [random_kind(random) for _ in range(random.choice((1, 1, 2, 5, hosts)))]
    return [random.choice(kinds) for _ in range(hosts)]


def compare(shape: ShapeProbe, count: int) -> None:
    """Assert that the ranking and evidence of a shape equal those of a fresh shape, to the last bit."""
    fresh = shape.fresh()
    ranking, expected = shape.rank(count), fresh.rank(count)
    assert bits(ranking) == bits(expected)
    assert shape.shape.evidence.stages(ranking) == fresh.evidence.stages(expected)
    assert shape.shape.evidence.scales(ranking) == fresh.evidence.scales(expected)
    assert shape.shape.evidence.table(ranking) == fresh.evidence.table(expected)


@contextmanager
def small_pools(random: Random) -> Iterator[None]:
    """Shrink pools at random, so that most hosts of a small crowd are outside and few are sorted."""
    size = random.choice((8, 64, pipeline_shape.SIZE))
    with (
        patch.object(pipeline_shape, "SIZE", size),
        patch.object(pipeline_shape, "_POOL_PER_TOUCH", 3),
        patch.object(top_pool, "_SORTED_MIN", random.choice((1, 6, 48))),
    ):
        yield
