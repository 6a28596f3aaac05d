import pytest

from roost.errors import BadFile, BadRequest
from roost.model.fleet import Departure
from roost.simulator.traces.cospot import build_fleet
from roost.simulator.traces.formats import open_workload
from roost.simulator.workload import Options
from tests.unit.simulator.traces.files import VMS, real, write


def load(folder, vms=VMS, **options):
    return open_workload(write(folder, vms=vms), Options(**{"hosts": ("2x400c/64m",), **options}))


def test_times_are_days_and_running_vms_arrive_first(tmp_path):
    workload = load(tmp_path)
    assert [event.at_s / 86400 for event in workload.events] == [-1497, 0.5, 2, 2]
    assert isinstance(workload.events[2].act, Departure)
    assert "1 VMs are running when the trace starts" in workload.notes
    first = workload.events[0].act
    assert (first.flavor.vcpus, first.flavor.memory_mb, first.project_id) == (200, 28, "70")


def test_fleet_may_have_hosts_of_several_sizes():
    fleet = build_fleet(("2x8c/64m,1x16c/32m", "1x4c/4m"))
    sizes = [(p.inventories["VCPU"].total, p.inventories["MEMORY_MB"].total) for p in fleet.providers]
    assert sizes == [(8, 64), (8, 64), (16, 32), (4, 4)]
    assert len({provider.uuid for provider in fleet.providers}) == 4


@pytest.mark.parametrize(
    "hosts",
    [(), ("",), ("2x8c",), ("0x8c/8m",), ("2x0c/8m",), ("2x8c/9999999999m",), ("9999999x1c/1m",), ("2x8c/8m,",)],
)
def test_malformed_fleet_is_refused(hosts):
    with pytest.raises(BadRequest, match="host"):
        build_fleet(hosts)


@pytest.mark.parametrize(
    ("row", "column", "problem"),
    [
        ("1,1,0,1,0,0,1", "cores", "must be 1.."),
        ("1,1,1,-3,0,0,1", "ram", "must be 1.."),
        ("1,1,1,3,0,2,1", "endtime", "1 is before starttime 2"),
        ("1,1,1,3,0,inf,inf", "starttime", "must be finite"),
        ("1,1,1,3,0,0,-inf", "endtime", "must be finite"),
        ("1,1,1,3,0,0,nan", "endtime", "must be a number"),
        ("7,1,1,3,0,0,1", "vmId", "7 is repeated"),
        (f"1,{'x' * 129},1,3,0,0,1", "tenantId", "1..128 characters of text"),
        ("1,a\0b,1,3,0,0,1", "tenantId", "1..128 characters of text"),
    ],
)
def test_a_malformed_vm_is_named_with_line_and_column(tmp_path, row, column, problem):
    with pytest.raises(BadFile, match=problem) as caught:
        load(tmp_path, vms=f"{VMS}{row}\n")
    assert (caught.value.line, caught.value.column) == (5, column)


@pytest.mark.parametrize(("name", "vms"), [("batched_0", 52_314), ("bernoulli_0", 52_509)])
def test_published_traces_are_read_completely(name, vms):
    options = Options(hosts=("450x9600c/2300m",), has_departures=False)
    assert len(open_workload(real(f"cospot/{name}.csv"), options).events) == vms
