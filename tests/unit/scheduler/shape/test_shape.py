from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roost.model.flavor import Flavor
from roost.scheduler.filters.compute import Compute, ComputeOptions
from roost.scheduler.framework.host_view import HostView
from roost.scheduler.framework.plugin import Rules
from roost.scheduler.shape.shape import Shape
from roost.scheduler.weighers.build_failure import BuildFailure, BuildFailureOptions
from roost.scheduler.weighers.cpu import Cpu, CpuOptions
from roost.scheduler.weighers.disk import Disk, DiskOptions
from roost.scheduler.weighers.hypervisor_version import HypervisorVersion, HypervisorVersionOptions
from roost.scheduler.weighers.io_ops import IoOps, IoOpsOptions
from roost.scheduler.weighers.metrics import Metrics, MetricsOptions
from roost.scheduler.weighers.num_instances import NumInstances, NumInstancesOptions
from roost.scheduler.weighers.pci import Pci, PciOptions
from roost.scheduler.weighers.ram import Ram, RamOptions
from tests.reference.rules import normalise
from tests.support.fleets.crowd_changes import STEPS, compare, random_crowd, small_pools
from tests.support.fleets.crowds import (
    Kind,
    ShapeProbe,
    Tenancy,
    allocate_flavor,
    crowd,
    pick_best,
    remove_a_third,
)

MULTIPLIERS = (1.0, 1.0, -1.0, 0.3, -2.5, 0.0)


def random_weighers(random: Random):
    weighers = [
        BuildFailure(BuildFailureOptions()),
        Cpu(CpuOptions(cpu_weight_multiplier=random.choice(MULTIPLIERS))),
        Disk(DiskOptions(disk_weight_multiplier=random.choice(MULTIPLIERS))),
        HypervisorVersion(HypervisorVersionOptions(hypervisor_version_weight_multiplier=random.choice(MULTIPLIERS))),
        Metrics(MetricsOptions(weight_setting=("load=2",), required=False)),
        Pci(PciOptions()),
        IoOps(IoOpsOptions(io_ops_weight_multiplier=random.choice(MULTIPLIERS))),
        NumInstances(NumInstancesOptions(num_instances_weight_multiplier=random.choice(MULTIPLIERS))),
        Ram(RamOptions(ram_weight_multiplier=random.choice(MULTIPLIERS))),
    ]
    return random.sample(weighers, random.randint(0, len(weighers)))


def random_rules(random: Random) -> Rules:
    return Rules(filters=(Compute(ComputeOptions()),), weighers=tuple(random_weighers(random)))


def follow(seed: int, *, hosts: int, rounds: int) -> list[ShapeProbe]:
    """Compare two shapes with fresh ones after each of many random changes of a crowd."""
    random = Random(seed)
    state = crowd(random_crowd(random, hosts))
    tenancy = Tenancy(state)
    for _ in range(random.choice((0, hosts // 2, 2 * hosts))):
        tenancy.arrive(random.randrange(hosts), VCPU=1, MEMORY_MB=random.choice((1, 2)))
    rules = random_rules(random)
    flavors = [
        Flavor(
            name="f", vcpus=random.choice((0, 1)), memory_mb=random.choice((1, 2, 5)), root_gb=random.choice((0, 0, 1))
        )
        for _ in range(2)
    ]
    shapes = [ShapeProbe(state, flavor, rules) for flavor in flavors]
    steps = random.sample(STEPS, random.randint(1, len(STEPS)))
    with small_pools(random):
        for _ in range(rounds):
            random.choice(steps)(random, tenancy, random.choice(shapes))
            if random.random() < 0.01:
                remove_a_third(random, tenancy)
            for shape in shapes:
                compare(shape, random.choice((1, 1, 5, 5, 40, 129)))
    return shapes


@settings(max_examples=40)
@given(st.integers(0, 2**32), st.sampled_from([1, 2, 3, 20, 130, 200, 300, 450]))
def test_cached_ranking_equals_a_fresh_ranking(seed, hosts):
    follow(seed, hosts=hosts, rounds=40)


@pytest.mark.soak
@settings(max_examples=3_000)
@given(st.integers(0, 2**32), st.sampled_from([1, 3, 12, 13, 96, 97, 384, 385, 500, 1000]))
def test_cached_ranking_equals_a_fresh_ranking_in_long_runs(seed, hosts):
    follow(seed, hosts=hosts, rounds=120)


def even_crowd(hosts: int, **weights: float) -> tuple[Tenancy, ShapeProbe]:
    """Return equal hosts, and a shape that by default spreads by memory and processors."""
    state = crowd([Kind(vcpus=64, memory_mb=256)] * hosts)
    ram = Ram(RamOptions(ram_weight_multiplier=weights.get("ram", 1.0)))
    cpu = Cpu(CpuOptions(cpu_weight_multiplier=weights.get("cpu", 1.0)))
    shape = ShapeProbe(state, Flavor(name="f", vcpus=1, memory_mb=4), Rules(filters=(), weighers=(cpu, ram)))
    return Tenancy(state), shape


@pytest.mark.parametrize("weights", [{}, {"ram": -1.0, "cpu": -1.0}, {"ram": 1.0, "cpu": -0.5}], ids=str)
def test_pool_of_a_large_fleet_serves_most_rankings(weights):
    tenancy, shape = even_crowd(2000, **weights)
    for _ in range(300):
        compare(shape, 5)
        allocate_flavor(tenancy, shape.rank(1).rows[0], shape.flavor)
    assert shape.from_pool > 0.9 * shape.looks


def test_full_pool_is_rebuilt_by_a_full_pass():
    tenancy, shape = even_crowd(2000)
    for row in range(1000, 1400):
        tenancy.arrive(row, MEMORY_MB=1)
        compare(shape, 1)
    assert shape.from_pool < shape.looks


def test_host_below_all_others_moves_the_scale():
    tenancy, shape = even_crowd(600, ram=-1.0)
    compare(shape, 5)
    for amount in (8, 16, 200, 300):
        tenancy.arrive(599, MEMORY_MB=amount)
        compare(shape, 5)
    for number in list(tenancy.living):
        tenancy.leave(number)
        compare(shape, 5)


@pytest.mark.parametrize("multiplier", [1.0, -1.0])
def test_scale_moves_when_its_last_extreme_host_changes_with_many_others(multiplier):
    state = crowd([Kind(vcpus=64, memory_mb=256)] * 600)
    options = NumInstancesOptions(num_instances_weight_multiplier=multiplier)
    rules = Rules(filters=(), weighers=(NumInstances(options),))
    tenancy, shape = Tenancy(state), ShapeProbe(state, Flavor(name="f", vcpus=1, memory_mb=4), rules)
    instances = {row: [tenancy.arrive(row, MEMORY_MB=1) for _ in range(3 + row % 3)] for row in range(600)}
    for number in instances[0] if multiplier < 0 else ():
        tenancy.leave(number)
    extreme = [tenancy.arrive(0, MEMORY_MB=1) for _ in range(9 if multiplier > 0 else 0)]
    compare(shape, 5)
    tenancy.arrive(599, MEMORY_MB=1)
    compare(shape, 5)
    for number in extreme:
        tenancy.leave(number)
    for row in range(10):
        for _ in range(4 if multiplier < 0 and not row else 1):
            tenancy.arrive(row, MEMORY_MB=1)
    compare(shape, 5)
    assert shape.from_pool


def test_pool_of_a_large_fleet_outlasts_rounds_of_many_shapes():
    tenancy, shape = even_crowd(10_000)
    compare(shape, 1)
    for turn in range(60):
        for row in range(20):
            tenancy.arrive(20 * turn + row, VCPU=1, MEMORY_MB=4)
        compare(shape, 1)
    assert shape.from_pool > 55


def test_scale_moves_when_its_last_extreme_host_changes():
    tenancy, shape = even_crowd(600)
    for row in range(1, 600):
        tenancy.arrive(row, MEMORY_MB=2 + row % 7)
    compare(shape, 5)
    compare(shape, 5)
    for amount in (1, 1, 1, 4, 60):
        tenancy.arrive(0, MEMORY_MB=amount)
        compare(shape, 5)


def test_full_hosts_leave_the_ranking_and_return():
    tenancy, shape = even_crowd(500)
    compare(shape, 5)
    instances = []
    for _ in range(150):
        row = shape.rank(1).rows[0]
        instances.append(tenancy.arrive(row, MEMORY_MB=256))
        compare(shape, 5)
    for number in instances:
        tenancy.leave(number)
        compare(shape, 5)


@settings(max_examples=40)
@given(st.integers(0, 2**32), st.sampled_from([2, 20, 300]))
def test_shape_in_a_full_fleet_equals_a_fresh_shape(seed, hosts):
    """Instances arrive and leave on full hosts; now and then a host has room again."""
    random = Random(seed)
    state = crowd(random_crowd(random, hosts))
    tenancy = Tenancy(state)
    filling = [tenancy.arrive(row, MEMORY_MB=256) for row in range(hosts)]
    flavor = Flavor(name="f", vcpus=random.choice((0, 1)), memory_mb=2)
    shape = ShapeProbe(state, flavor, random_rules(random))
    for _ in range(40):
        act = random.choice(("fill", "fill many", "empty", "pick"))
        if act == "empty" and filling and random.random() < 0.3:
            tenancy.leave(filling.pop(random.randrange(len(filling))))
        elif act == "pick":
            pick_best(random, tenancy, shape)
        else:
            for _ in range(10 if act == "fill many" else 1):
                tenancy.arrive(random.randrange(hosts), VCPU=1)
        compare(shape, random.choice((1, 5)))


def test_refusals_in_a_full_fleet_need_two_passes(monkeypatch):
    tenancy, shape = even_crowd(100)
    instances = [tenancy.arrive(row, MEMORY_MB=256) for row in range(100)]
    passes = []
    run_pass = Shape._run_pass
    monkeypatch.setattr(Shape, "_run_pass", lambda *args, **options: passes.append(1) or run_pass(*args, **options))
    for row in range(50):
        assert shape.rank(5).rows == []
        tenancy.arrive(row, VCPU=1)
    assert len(passes) == 2
    tenancy.leave(instances[7])
    assert shape.rank(5).rows == [7]


def series_of(shape: ShapeProbe, tenancy: Tenancy, count: int) -> list[int]:
    """Return the hosts of a request for many, picked one by one from a fresh ranking each time."""
    rows = []
    for _ in range(count):
        ranking = shape.fresh().rank(1)
        if not ranking.rows:
            break
        rows.append(ranking.rows[0])
        place(tenancy, ranking.rows[0], shape)
    return rows


def place(tenancy: Tenancy, row: int, shape: ShapeProbe) -> None:
    """Place an instance; in a request for many it is an operation in flight for the next ones."""
    allocate_flavor(tenancy, row, shape.flavor)
    if shape.shape.spec.is_multiple:
        hosts = tenancy.state.hosts
        hosts.consume(row, hosts.facts[row])


@settings(max_examples=40)
@given(st.integers(0, 2**32), st.sampled_from([2, 20, 200, 300, 450]))
def test_series_equals_picking_one_by_one(seed, hosts):
    random = Random(seed)
    state = crowd(random_crowd(random, hosts))
    before = Tenancy(state)
    for _ in range(random.choice((0, hosts))):
        before.arrive(random.randrange(hosts), VCPU=1, MEMORY_MB=random.choice((1, 2)))
    flavor = Flavor(name="f", vcpus=random.choice((0, 1)), memory_mb=random.choice((1, 2, 5)))
    shape = ShapeProbe(state, flavor, random_rules(random), count=random.choice((1, 60)))
    fork = state.fork()
    shape.shape.rank(5, is_series=True)
    rows = shape.shape.series(60)
    assert rows == series_of(
        ShapeProbe(fork, flavor, shape.rules, count=shape.shape.spec.request.count), Tenancy(fork), len(rows)
    )
    for row in rows:
        place(before, row, shape)
    compare(shape, 5)


# --- full ranking, compared with plain Python ------------------------------------------------------------------------


@pytest.mark.shows("S096", "S142", "S146")
@settings(max_examples=60)
@given(st.integers(0, 2**32), st.sampled_from([2, 5, 40, 700]))
def test_full_ranking_sums_the_scaled_weights(seed, hosts):
    random = Random(seed)
    state = crowd(random_crowd(random, hosts))
    tenancy = Tenancy(state)
    for _ in range(hosts):
        tenancy.arrive(random.randrange(hosts), VCPU=1, MEMORY_MB=random.choice((1, 2)))
    shape = ShapeProbe(state, Flavor(name="f", memory_mb=2), random_rules(random))
    fit = [row for row in range(hosts) if state.best_free(2)[row] >= 2 and not state.hosts.facts[row].is_disabled]
    totals = dict.fromkeys(fit, 0.0)
    if len(fit) > 1:
        for weigher in shape.rules.weighers:
            raws = weigher.raw(HostView(state), shape.shape.spec).tolist()
            if weigher.minval is not None:
                raws = [max(raw, weigher.minval) for raw in raws]
            scaled = normalise([raws[row] for row in fit], minval=weigher.minval)
            for row, value in zip(fit, scaled, strict=True):
                totals[row] += value * weigher.multiplier
    expected = sorted(fit, key=lambda row: -totals[row])
    ranking = shape.shape.rank_all()
    assert ranking.totals == pytest.approx([totals[row] for row in expected], abs=1e-9)
    assert ranking.totals == pytest.approx([totals[row] for row in ranking.rows], abs=1e-9)
    assert sorted(ranking.rows) == fit
