from pathlib import Path

import pytest

from roost.errors import BadFile
from roost.model.fleet import Departure
from roost.model.request import Request
from roost.simulator.traces.formats import open_workload
from roost.simulator.workload import Options
from tests.unit.simulator.traces.files import NODES, PODS, real, write


def load(folder: Path, *, nodes=NODES, pods=PODS, **options):
    return open_workload(write(folder, nodes=nodes, pods=pods), Options(**options))


def test_a_node_is_a_root_with_a_child_for_each_gpu(tmp_path):
    fleet = load(tmp_path).fleet
    root, *gpus = (provider for provider in fleet.providers if provider.name.startswith("n0"))
    assert {name: offer.total for name, offer in root.inventories.items()} == {"VCPU": 64000, "MEMORY_MB": 262144}
    assert [gpu.parent_uuid for gpu in gpus] == [root.uuid, root.uuid]
    assert [gpu.inventories["CUSTOM_GPU_MILLI"].total for gpu in gpus] == [1000, 1000]
    assert {gpu.traits for gpu in gpus} == {frozenset({"CUSTOM_GPU_P100"})}
    assert [host.host for host in fleet.hosts] == ["n0", "n1"]
    assert len(fleet.providers) == 4


def test_gpu_fraction_is_one_group_and_whole_gpus_are_isolated_groups(tmp_path):
    requests = [event.act for event in load(tmp_path, has_departures=False).events]
    fraction, whole, plain = requests
    assert [group.resources for group in fraction.groups] == [{"CUSTOM_GPU_MILLI": 460}]
    assert fraction.groups[0].suffix
    assert [group.resources for group in whole.groups] == [{"CUSTOM_GPU_MILLI": 1000}] * 2
    assert whole.flavor.extra_specs == {"group_policy": "isolate"}
    assert whole.groups[0].required == (frozenset({"CUSTOM_GPU_P100", "CUSTOM_GPU_V100M16"}),)
    assert whole.groups[0].suffix != whole.groups[1].suffix
    assert (plain.flavor.vcpus, plain.flavor.memory_mb, plain.groups) == (8000, 30517, ())


def test_departures_precede_arrivals_except_their_own(tmp_path):
    events = load(tmp_path).events
    kinds = [(event.at_s, type(event.act)) for event in events]
    assert kinds == [(0, Request), (10, Request), (10, Departure), (50, Departure), (50, Request)]
    assert events[2].act.instance_uuids == events[1].act.instance_uuids


def test_pods_without_times_arrive_in_file_order_and_stay(tmp_path):
    pods = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\nb,1,1,0,0\na,1,1,0,0\n"
    workload = load(tmp_path, pods=pods)
    assert [event.at_s for event in workload.events] == [0, 1]
    assert all(isinstance(event.act, Request) for event in workload.events)


def test_limit_keeps_the_earliest_requests(tmp_path):
    events = load(tmp_path, limit=2).events
    assert [event.at_s for event in events] == [0, 10, 10]


@pytest.mark.parametrize(
    ("row", "column", "problem"),
    [
        ("x,-1,1,0,0,,,,0,1,", "cpu_milli", "must be 0.."),
        ("x,99999999999,1,0,0,,,,0,1,", "cpu_milli", "must be 0..2147483647"),
        ("x,1e30,1,0,0,,,,0,1,", "cpu_milli", "must be 0..2147483647"),
        ("x,1.5,1,0,0,,,,0,1,", "cpu_milli", "whole number"),
        ("x,nan,1,0,0,,,,0,1,", "cpu_milli", "whole number"),
        ("x,1_0,1,0,0,,,,0,1,", "cpu_milli", "whole number"),
        ("x,,1,0,0,,,,0,1,", "cpu_milli", "is empty"),
        ("x,1,1,1,1001,,,,0,1,", "gpu_milli", "must be 0..1000"),
        ("x,1,1,0,500,,,,0,1,", "gpu_milli", "does not match num_gpu 0"),
        ("x,1,1,1,0,,,,0,1,", "gpu_milli", "does not match num_gpu 1"),
        ("x,1,1,1,500,P100|,,,0,1,", "gpu_spec", "separated by bars"),
        ("x,1,1,1,500,P100|" + "x" * 129 + ",,,0,1,", "gpu_spec", "separated by bars"),
        ("x,0,0,0,0,,,,0,1,", None, "requests nothing"),
        ("x,1,1,0,0,,,,5,4,", "deletion_time", "4 is before creation_time 5"),
        ("x,1,1,0,0,,,,nan,4,", "creation_time", "must be a number"),
        ("x,1,1,0,0,,,,0,inf,", "deletion_time", "must be finite"),
        ("p0,1,1,0,0,,,,0,1,", "name", "p0 is repeated"),
        ("x,1,1,0", None, "4 cells where the header has 11"),
    ],
)
def test_a_malformed_pod_is_named_with_line_and_column(tmp_path, row, column, problem):
    with pytest.raises(BadFile, match=problem) as caught:
        load(tmp_path, pods=PODS + row + "\n")
    assert (caught.value.line, caught.value.column) == (5, column)
    assert caught.value.path.endswith("pods.csv")


@pytest.mark.parametrize(
    ("row", "column"),
    [
        ("n2,0,1,0,", "cpu_milli"),
        ("n2,1,1,1,", "model"),
        (f"n2,1,1,1,{'x' * 129}", "model"),
        ("n0,1,1,0,", "sn"),
        ("n\0,1,1,0,", "sn"),
        ("n2,1,1,100000,T4", "gpu"),
    ],
)
def test_a_malformed_node_is_named_with_line_and_column(tmp_path, row, column):
    with pytest.raises(BadFile) as caught:
        load(tmp_path, nodes=NODES + row + "\n")
    assert (caught.value.line, caught.value.column) == (4, column)


def test_published_trace_is_read_completely():
    workload = open_workload(
        real("openb/openb_node_list_all_node.csv", "openb/openb_pod_list_default.csv"), Options(has_departures=False)
    )
    assert len(workload.fleet.hosts) == 1523
    assert len(workload.fleet.providers) - 1523 == 6212
    assert len(workload.events) == 8152
