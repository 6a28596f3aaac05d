"""The packing lab equals its slow twin on small generated fleets."""

from random import Random

import numpy as np
import pytest

from roost.simulator.lab import gpu_policies
from roost.simulator.lab.gpu_arrivals import draw_arrivals
from roost.simulator.lab.gpu_experiment import run_policy
from roost.simulator.lab.gpu_pods import Node, Pod, Workload
from roost.simulator.lab.typical_pods import Fragmentation, HostState, find_typical_pods
from tests.reference import gpu_packing
from tests.reference.gpu_packing import SCORES, Host

MODELS = ("A10", "G2", "T4")


def random_pod(random):
    cpu, memory = random.choice([500, 1000, 4000, 8000, 12000]), random.choice([512, 4096, 30000])
    kind = random.random()
    if kind < 0.2:
        return Pod(cpu, memory, 0, 0)
    spec = random.choice(["", "", "", "T4", "A10|G2"])
    if kind < 0.7:
        return Pod(cpu, memory, 1, random.choice([100, 250, 333, 500, 700, 810]), spec)
    return Pod(cpu, memory, random.choice([1, 1, 2, 4]), 1000, spec)


def random_workload(seed, *, nodes, pods):
    random = Random(seed)
    kinds = [random_pod(random) for _ in range(12)]
    return Workload(
        name="random",
        nodes=[
            Node(
                f"n{number:02}",
                random.choice([16000, 32000, 64000]),
                random.choice([65536, 131072]),
                random.choice([1, 2, 4, 8]),
                random.choice(MODELS),
            )
            for number in range(nodes)
        ],
        pods=[random.choice(kinds) for _ in range(pods)],
    )


@pytest.mark.parametrize("seed", range(4))
def test_scores_of_hosts_one_by_one_equal_those_of_columns(seed, monkeypatch):
    """The next test compares the scores of hosts one by one, because its fleet is small."""
    workload = random_workload(seed, nodes=10, pods=40 + 60 * (seed % 2))
    expected = run_policy(workload, "fgd", seed)
    monkeypatch.setattr(gpu_policies, "_ONE_BY_ONE_MAX", 0)
    assert run_policy(workload, "fgd", seed) == expected


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("policy", SCORES)
def test_a_run_equals_the_slow_one(policy, seed):
    workload = random_workload(seed, nodes=10, pods=40 + 60 * (seed % 2))
    arrivals = draw_arrivals(workload, seed)
    refused, points, at_load = gpu_packing.run(arrivals.nodes, arrivals.pods, workload.pods, policy)
    result = run_policy(workload, policy, seed)
    assert (result.arrived, result.refused) == (len(arrivals.pods), refused)
    assert result.load == list(points)
    assert result.allocated == [point for point, _ in points.values()]
    np.testing.assert_allclose(result.unusable, [point for _, point in points.values()], atol=0.006)
    last = at_load or [points[max(points)]]
    assert result.allocated_percent == round(float(np.mean([point for point, _ in last])), 2)
    assert refused > 0


def test_random_placements_differ_and_are_repeatable():
    workload = random_workload(7, nodes=10, pods=60)
    results = [run_policy(workload, "random", 7, placement=placement) for placement in (0, 1, 0)]
    assert results[0] == results[2]
    assert results[0].allocated != results[1].allocated


@pytest.mark.parametrize("seed", range(10))
def test_fragmentation_equals_the_slow_one_to_the_last_bit(seed):
    random = Random(seed)
    pods = [random_pod(random) for _ in range(200)]
    typical = find_typical_pods(pods)
    slow = gpu_packing.typical_pods(pods)
    assert [((*map(int, kind[:3]), kind[3]), share) for kind, share in slow] == [
        ((each.kind.cpu_milli, each.kind.gpu_milli, each.kind.gpu_count, each.kind.gpu_spec), each.share)
        for each in typical
    ]
    hosts = [
        Host(
            random.randrange(0, 16000, 500),
            0,
            random.choice(MODELS),
            [random.choice([0, 0, 190, 300, 500, 1000]) for _ in range(random.choice([1, 4, 8]))],
        )
        for _ in range(1500)
    ]
    free = np.array([host.free + [0] * (8 - len(host.free)) for host in hosts])
    columns = {
        "cpu": np.array([float(host.cpu) for host in hosts]),
        "model": np.array([MODELS.index(host.model) for host in hosts]),
        "free": free,
    }
    fragmentation = Fragmentation(typical, MODELS)
    models = columns["model"].tolist()
    states = [
        HostState(float(host.cpu), model, tuple(sorted(gpus)))
        for host, model, gpus in zip(hosts, models, free.tolist(), strict=True)
    ]
    for _ in range(2):  # The second time, known totals are returned.
        assert fragmentation.totals_of(states) == fragmentation.total(**columns).tolist()
    expected = [gpu_packing.causes(host, slow) for host in hosts]
    assert fragmentation.by_cause(**columns).T.tolist() == expected
    assert fragmentation.total(**columns).tolist() == [gpu_packing.unusable(host, slow) for host in hosts]
