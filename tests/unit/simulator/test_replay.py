import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roost.errors import BadRequest
from roost.model.fleet import Departure
from roost.simulator.replay import replay
from roost.simulator.traces.cospot import build_fleet
from roost.simulator.traces.formats import open_workload
from roost.simulator.traces.generated_workload import Recipe, generate
from roost.simulator.workload import Options, Stay, build_workload
from tests.unit.simulator.first_fit import FirstFit
from tests.unit.simulator.traces.files import HOSTS, NODES, PODS, RACKS, SEQUENCE, VMS, write
from tests.unit.simulator.values import request


def step_clock(step_s):
    """Return a clock that advances by one step at each read."""
    now_s = 0.0

    def elapsed_s():
        nonlocal now_s
        now_s += step_s
        return now_s

    return elapsed_s


def small_workload():
    """Return a workload for two hosts of 8 cores: two VMs of 6 fit, a third is too early, a fourth fits later."""
    stays = [
        Stay(request("a", vcpus=6, memory_mb=4), 0.0, 3.0),
        Stay(request("b", "c", vcpus=1, memory_mb=1), 1.0, 9.0),
        Stay(request("d", vcpus=6, memory_mb=4), 1.5),
        Stay(request("e", vcpus=6, memory_mb=4), 2.0, 5.0),
        Stay(request("f", vcpus=6, memory_mb=4), 4.0),
    ]
    return build_workload(stays, name="small", fleet=build_fleet(("2x8c/32m",)), options=Options())


@pytest.mark.parametrize("chunk", [1, 2, 64])
def test_report_equals_figures_computed_by_hand(chunk):
    report = replay(small_workload(), FirstFit(), chunk=chunk, elapsed_s=step_clock(0.5))
    assert (report.requests, report.placed, report.refused) == (5, 4, 1)
    assert (report.instances_placed, report.instances_alive) == (5, 4)
    assert [(entry.reason, entry.count) for entry in report.refused_reasons] == [("lack room for 6c", 1)]
    assert report.refused_reasons[0].example == "0 of 2 hosts: 2 lack room for 6c"
    vcpu, memory = report.classes
    # b and c on host-0 with f, d on host-1: 2 free there, 0 free on host-0; the median piece is 6.
    assert (vcpu.resource_class, vcpu.used, vcpu.capacity, vcpu.typical) == ("VCPU", 14, 16, 6)
    assert vcpu.stranded_share == 1.0
    assert (memory.used, memory.capacity, memory.typical, memory.stranded_share) == (10, 64, 4, 0.0)
    assert report.decision_us_p50 == report.decision_us_p99 == pytest.approx(1500)
    assert report.install_s == 0.5
    calls = -(-len(small_workload().events) // chunk)
    assert report.work_s == 0.5 * calls
    assert report.decisions_per_s == 5 / report.work_s
    assert report.gpu_fragmentation is None


def test_peak_use_is_sampled_between_chunks():
    stays = [Stay(request("a", vcpus=6, memory_mb=4), 0.0, 1.0), Stay(request("b", vcpus=2, memory_mb=4), 2.0)]
    workload = build_workload(stays, name="peak", fleet=build_fleet(("1x8c/8m",)), options=Options())
    use = replay(workload, FirstFit(), chunk=1).classes[0]
    assert (use.peak, use.used) == (6, 2)


def test_acts_are_sent_in_chunks_and_progress_counts_requests():
    scheduling, progress = FirstFit(), []
    replay(small_workload(), scheduling, chunk=4, progress=lambda done, total: progress.append((done, total)))
    assert scheduling.chunks == [4, 2]
    assert progress == [(4, 5), (5, 5)]


def test_a_chunk_below_one_is_refused():
    with pytest.raises(BadRequest, match="1 act or more"):
        replay(small_workload(), FirstFit(), chunk=0)


@pytest.mark.parametrize(
    ("texts", "options", "placed"),
    [
        ({"nodes": NODES, "pods": PODS}, Options(has_departures=False), 2),
        ({"nodes": NODES, "pods": PODS}, Options(), 2),
        ({"vms": VMS}, Options(hosts=("1x200c/28m", "1x50c/14m")), 3),
        (
            {"hosts": HOSTS, "racks": RACKS, "vms": SEQUENCE},
            Options(),
            4,
        ),  # the third finds no host with room on both NUMA nodes
    ],
)
def test_traces_of_every_format_are_replayed(tmp_path, texts, options, placed):
    report = replay(open_workload(write(tmp_path, **texts), options), FirstFit())
    assert report.placed == placed
    assert report.requests == report.placed + report.refused


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from(["few", "mixed"]), st.integers(1, 70))
def test_every_request_is_placed_or_refused_for_any_chunk_size(seed, mix, chunk):
    workload = generate(Recipe(hosts=20, requests=60, seed=seed, mix=mix), Options())
    scheduling = FirstFit()
    report = replay(workload, scheduling, chunk=chunk)
    assert report.placed + report.refused == report.requests == 60
    assert report.instances_alive == len(scheduling.claims)
    assert all(amount >= 0 for offers in scheduling.free.values() for amount in offers.values())
    assert sum(entry.count for entry in report.refused_reasons) == report.refused
    departed = {
        uuid for event in workload.events if isinstance(event.act, Departure) for uuid in event.act.instance_uuids
    }
    assert departed.isdisjoint(scheduling.claims)
