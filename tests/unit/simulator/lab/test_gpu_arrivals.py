from collections import Counter

from roost.simulator.lab.gpu_arrivals import draw_arrivals
from roost.simulator.lab.gpu_pods import Node, Pod, Workload
from tests.unit.simulator.lab.gpu_files import mixed

SMALL, LARGE = Pod(1000, 1024, 1, 300), Pod(1000, 1024, 2, 1000)


def workload(*pods, nodes=4):
    return Workload(
        name="w", nodes=[Node(f"n{number}", 1000, 1000, 2, "T4") for number in range(nodes)], pods=list(pods)
    )


def total(pods):
    return sum(pod.total_milli for pod in pods)


def test_too_few_pods_are_followed_by_further_ones():
    given = workload(SMALL, LARGE)
    pods = draw_arrivals(given, 42).pods
    target = 1.3 * given.capacity_milli
    assert Counter(pods[:2]) == Counter(given.pods)
    assert target - 1000 < total(pods) <= target + 1000


def test_the_last_pod_counts_with_the_milli_of_one_gpu():
    """A pod of two GPUs that would exceed the target by less than one GPU is appended, as published."""
    totals = {total(draw_arrivals(workload(LARGE, nodes=5), seed).pods) for seed in range(5)}
    assert totals == {14_000}  # 1.3 * 10,000 is 13,000: 12,000 + 1,000 does not exceed it.


def test_of_too_many_pods_some_are_removed():
    given = workload(*[SMALL] * 60, *[LARGE] * 3)
    pods = draw_arrivals(given, 42).pods
    assert total(pods) <= 1.3 * given.capacity_milli < total(pods) + 2000
    assert not Counter(pods) - Counter(given.pods)


def test_the_order_of_nodes_depends_on_the_seed():
    given = workload(SMALL, nodes=30)
    orders = [[node.name for node in draw_arrivals(given, seed).nodes] for seed in (1, 1, 2)]
    assert orders[0] == orders[1] != orders[2]
    assert sorted(orders[0]) == [node.name for node in sorted(given.nodes, key=lambda node: node.name)]


MIXED = mixed(1, sizes=[200, 330, 500, 700])
OTHER = mixed(2, sizes=[450, 600])


def present(arrivals, workload_milli):
    """Return the share of GPU milli that the present pods request after each step."""
    milli, shares = 0, []
    for number, is_departure in arrivals.steps:
        milli += (-1 if is_departure else 1) * arrivals.pods[number].total_milli
        shares.append(milli / workload_milli)
    return shares


def test_pods_leave_after_they_arrived_and_the_load_reaches_its_end():
    arrivals = draw_arrivals(MIXED, 42, has_departures=True)
    seen = set()
    for number, is_departure in arrivals.steps:
        assert (number in seen) == is_departure
        (seen.discard if is_departure else seen.add)(number)
    assert [step.number for step in arrivals.steps if not step.is_departure] == list(range(len(arrivals.pods)))
    assert total(arrivals.pods) > 2 * total(draw_arrivals(MIXED, 42).pods) * 0.95
    assert 1.2 < present(arrivals, MIXED.capacity_milli)[-1] <= 1.3
    assert len(arrivals.steps) > len(arrivals.pods) * 1.3


def test_the_mix_changes_at_half_of_the_load():
    arrivals = draw_arrivals(MIXED, 42, later=OTHER)
    own = draw_arrivals(MIXED, 42)
    is_new = [pod in set(OTHER.pods) - set(MIXED.pods) for pod in arrivals.pods]
    change = is_new.index(True)
    half = 1.3 * MIXED.capacity_milli / 2
    assert half - 4000 < total(arrivals.pods[:change]) <= half + 4000
    assert arrivals.pods[: change - 5] == own.pods[: change - 5]
    assert arrivals.nodes == own.nodes
    assert not set(arrivals.pods[change:]) & (set(MIXED.pods) - set(OTHER.pods))
    assert 1.25 < total(arrivals.pods) / MIXED.capacity_milli <= 1.3


def test_each_pod_leaves_after_its_own_duration():
    short, long, forever = (Pod(1000, 1024, 1, milli) for milli in (100, 101, 102))
    pods = [short, long, forever] * 40
    given = Workload(
        name="w",
        nodes=[Node(f"n{number}", 1000, 1000, 2, "T4") for number in range(8)],
        pods=pods,
        durations_s=[{short: 20.0, long: 60.0, forever: 1e6}[pod] for pod in pods],
    )
    arrivals = draw_arrivals(given, 42, has_departures=True)
    arrived, waits = 0, {pod: set() for pod in (short, long, forever)}  # arrivals between arrival and departure
    for number, is_departure in arrivals.steps:
        if is_departure:
            waits[arrivals.pods[number]].add(arrived - number)
        else:
            arrived += 1
    assert waits[forever] == set()
    assert max(waits[short]) - min(waits[short]) <= 1
    assert max(waits[long]) - min(waits[long]) <= 1
    assert 2.5 < max(waits[long]) / max(waits[short]) < 3.5
