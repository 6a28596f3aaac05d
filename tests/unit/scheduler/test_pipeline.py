from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roost.model.flavor import Flavor
from roost.model.host import HostFacts
from roost.scheduler.filters.compute import Compute, ComputeOptions
from roost.scheduler.weighers.build_failure import BuildFailure, BuildFailureOptions
from roost.scheduler.weighers.cpu import Cpu, CpuOptions
from roost.scheduler.weighers.disk import Disk, DiskOptions
from roost.scheduler.weighers.hypervisor_version import HypervisorVersion, HypervisorVersionOptions
from roost.scheduler.weighers.io_ops import IoOps, IoOpsOptions
from roost.scheduler.weighers.num_instances import NumInstances, NumInstancesOptions
from roost.scheduler.weighers.ram import Ram, RamOptions
from tests.crowds import (
    Kind,
    Tenancy,
    bits,
    crowd,
    crowd_in,
    depart,
    fill,
    many_leave,
    pick_best,
    pick_near_best,
    shape_of,
    touch_any,
)

MULTIPLIERS = (1.0, 1.0, -1.0, 0.3, -2.5, 0.0)
STEPS = (pick_best,) * 8 + (pick_near_best,) * 3 + (touch_any,) * 3 + (fill,) * 2 + (depart,) * 4 + (crowd_in,)


def random_kind(random: Random) -> Kind:
    facts = HostFacts(
        num_io_ops=random.choice((0, 0, 3)), failed_builds=random.choice((0, 0, 0, 2)),
        hypervisor_version=random.choice((0, 4_001_000)), is_disabled=random.random() < 0.1,
    )  # fmt: skip
    memory = random.choice((8, 16, 16, 33))
    return Kind(
        vcpus=random.choice((2, 8, 8, 64)), memory_mb=memory, disk_gb=random.choice((0, 10)),
        memory_reserved=random.choice((0, 0, memory // 4, memory)), facts=facts,
    )  # fmt: skip


def random_crowd(random: Random, hosts: int) -> list[Kind]:
    """Hosts of one kind (everything is a tie), of a few kinds, or each of its own."""
    kinds = [random_kind(random) for _ in range(random.choice((1, 1, 2, 5, hosts)))]
    return [random.choice(kinds) for _ in range(hosts)]


def random_weighers(random: Random):
    made = [
        BuildFailure(BuildFailureOptions()),
        Cpu(CpuOptions(cpu_weight_multiplier=random.choice(MULTIPLIERS))),
        Disk(DiskOptions(disk_weight_multiplier=random.choice(MULTIPLIERS))),
        HypervisorVersion(HypervisorVersionOptions(hypervisor_version_weight_multiplier=random.choice(MULTIPLIERS))),
        IoOps(IoOpsOptions(io_ops_weight_multiplier=random.choice(MULTIPLIERS))),
        NumInstances(NumInstancesOptions(num_instances_weight_multiplier=random.choice(MULTIPLIERS))),
        Ram(RamOptions(ram_weight_multiplier=random.choice(MULTIPLIERS))),
    ]
    return random.sample(made, random.randint(0, len(made)))


def follow(seed: int, *, hosts: int, looks: int) -> tuple[int, int]:
    """Compare what a shape remembers with a look by a new one, again and again; return looks and passes."""
    random = Random(seed)
    state = crowd(random_crowd(random, hosts))
    tenancy = Tenancy(state)
    for _ in range(random.choice((0, hosts // 2, 2 * hosts))):
        tenancy.arrive(random.randrange(hosts), VCPU=1, MEMORY_MB=random.choice((1, 2)))
    rules = {"filters": [Compute(ComputeOptions())], "weighers": random_weighers(random)}
    flavors = [
        Flavor(name="f", vcpus=random.choice((0, 1)), memory_mb=random.choice((1, 2, 5)), root_gb=random.choice((0, 0, 1)))
        for _ in range(2)
    ]
    shapes = [shape_of(state, flavor, **rules) for flavor in flavors]
    steps = random.sample(STEPS, random.randint(1, len(STEPS)))
    for _ in range(looks):
        shape = random.choice(shapes)
        random.choice(steps)(random, tenancy, shape)
        if random.random() < 0.01:
            many_leave(random, tenancy, shape)
        for shape in shapes:
            wanted = random.choice((1, 1, 5, 5, 40, 129))
            fresh = shape_of(state, shape.spec.flavor, **rules)
            seen, slow = shape.rank(wanted), fresh.rank(wanted)
            assert bits(seen) == bits(slow)
            assert shape.stages(seen) == fresh.stages(slow)
            assert shape.scales(seen) == fresh.scales(slow)
            assert shape.table(seen) == fresh.table(slow)
    return 2 * looks, sum(shape.passes for shape in shapes)


@settings(max_examples=100)
@given(st.integers(0, 2**32), st.sampled_from([1, 2, 3, 20, 130, 200, 300, 450]))
def test_what_a_shape_remembers_is_what_a_new_look_at_all_hosts_says(seed, hosts):
    follow(seed, hosts=hosts, looks=40)
