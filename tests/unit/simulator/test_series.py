import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.simulator import series
from roost.simulator.replay import replay
from roost.simulator.traces.cospot import build_fleet
from roost.simulator.traces.formats import open_workload
from roost.simulator.traces.generated_workload import Recipe, generate
from roost.simulator.workload import Options, Stay, build_workload
from tests.unit.simulator.first_fit import FirstFit
from tests.unit.simulator.traces.files import NODES, PODS, write
from tests.unit.simulator.values import request


def small_workload():
    stays = [
        Stay(request("a", vcpus=6, memory_mb=4), -5.0, 3.0),
        Stay(request("b", vcpus=1, memory_mb=8), 1.0),
        Stay(request("c", vcpus=8, memory_mb=4), 2.0),
        Stay(request("d", vcpus=8, memory_mb=4), 4.0),
        Stay(request("e", vcpus=9, memory_mb=4), 5.0),
    ]
    return build_workload(stays, name="small", fleet=build_fleet(("3x8c/16m",)), options=Options())


def test_series_equals_figures_computed_by_hand():
    points = replay(small_workload(), FirstFit(), chunk=1).series
    # a and b on host-0, c on host-1, a ends, d on host-2, e fits nowhere.
    assert points.at_s == [-5.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    assert points.requests == [1, 2, 3, 3, 4, 5]
    assert points.placed == [1, 2, 3, 3, 4, 4]
    assert points.refused == [0, 0, 0, 0, 0, 1]
    assert points.instances_alive == [1, 2, 3, 2, 3, 3]
    assert points.used == {"VCPU": [6, 7, 15, 9, 17, 17], "MEMORY_MB": [4, 12, 16, 12, 16, 16]}
    # The median piece is 8: of 18 free, 2 are in a smaller one, then 1 of 17, and so on.
    assert points.stranded_share["VCPU"] == pytest.approx([2 / 18, 1 / 17, 1 / 9, 7 / 15, 1.0, 1.0])
    assert points.gpu_fragmentation is None
    # The moment of the departure saw no decision.
    assert points.decision_us_p50 == [pytest.approx(1500)] * 3 + [None] + [pytest.approx(1500)] * 2


def test_host_use_is_sorted_by_fullness():
    use = replay(small_workload(), FirstFit(), chunk=64).host_use
    assert (use.hosts, use.hosts_empty, use.hosts_per_cell) == (3, 0, 1)
    assert use.used_share == {"VCPU": [1.0, 1.0, 0.125], "MEMORY_MB": [0.25, 0.25, 0.5]}


def test_host_use_includes_children_and_is_none_without_inventory(tmp_path):
    workload = open_workload(write(tmp_path, nodes=NODES, pods=PODS), Options(has_departures=False))
    report = replay(workload, FirstFit())
    # 460 of two GPUs on the first host, none on the second.
    assert report.host_use.used_share["CUSTOM_GPU_MILLI"] == [0.23, None]
    assert report.series.gpu_fragmentation[-1] == report.gpu_fragmentation


def test_many_hosts_share_cells_of_the_host_use(monkeypatch):
    monkeypatch.setattr(series, "CELLS_MAX", 2)
    use = replay(small_workload(), FirstFit()).host_use
    assert use.hosts_per_cell == 2
    assert use.used_share["VCPU"] == [1.0, 0.125]


@given(st.integers(1, 40), st.integers(1, 12), st.integers(1, 9))
def test_series_length_is_bounded_and_ends_at_the_last_event(requests, moments, chunk):
    workload = generate(Recipe(hosts=3, requests=requests, mix="few"), Options())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(series, "MOMENTS_MAX", moments)
        report = replay(workload, FirstFit(), chunk=chunk)
    points = report.series
    columns = [
        points.at_s,
        points.requests,
        points.placed,
        points.refused,
        points.instances_alive,
        points.decision_us_p50,
    ]
    columns += [*points.used.values(), *points.stranded_share.values(), points.decision_us_p99]
    assert {len(column) for column in columns} == {len(points.at_s)}
    assert 1 <= len(points.at_s) <= moments
    assert (points.requests[-1], points.placed[-1]) == (report.requests, report.placed)
    assert points.at_s[-1] == workload.events[-1].at_s
    assert {name: used[-1] for name, used in points.used.items()} == {
        use.resource_class: use.used for use in report.classes
    }
