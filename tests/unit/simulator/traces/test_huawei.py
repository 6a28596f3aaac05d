import pytest

from roost.errors import BadFile
from roost.simulator.traces.formats import open_workload
from roost.simulator.workload import Options
from tests.unit.simulator.traces.files import HOSTS, RACKS, SEQUENCE, real, write


def load(folder, *, hosts=HOSTS, racks=RACKS, vms=SEQUENCE):
    return open_workload(write(folder, hosts=hosts, racks=racks, vms=vms), Options())


def test_host_has_inventory_per_numa_node_and_a_rack(tmp_path):
    fleet = load(tmp_path).fleet
    root, numa0, numa1, _, _, full = fleet.providers
    assert root.inventories == {}
    assert {name: offer.total for name, offer in numa0.inventories.items()} == {"VCPU": 16, "MEMORY_MB": 32 * 1024}
    assert numa1.inventories["VCPU"].total == 32
    assert numa0.parent_uuid == numa1.parent_uuid == root.uuid
    assert full.inventories == {}
    assert [(host.host, host.facts.rack) for host in fleet.hosts] == [("host-0", "rack-0"), ("host-1", "rack-1")]


def test_request_is_divided_over_two_numa_nodes(tmp_path):
    request = load(tmp_path).events[2].act
    assert [group.resources for group in request.groups] == [
        {"VCPU": 3, "MEMORY_MB": 5 * 1024},
        {"VCPU": 2, "MEMORY_MB": 4 * 1024},
    ]
    assert request.flavor.extra_specs == {"group_policy": "isolate"}
    assert (request.flavor.vcpus, request.flavor.memory_mb) == (0, 0)


def test_strategy_and_group_become_a_server_group_and_domain_a_hint(tmp_path):
    workload = load(tmp_path)
    policies = {group.uuid: group.policy for group in workload.fleet.groups}
    requests = [event.act for event in workload.events]
    assert [policies.get(request.group) for request in requests] == [
        "fault-domain",
        "fault-domain",
        "anti-affinity",
        None,
        "affinity",
    ]
    assert requests[0].group == requests[1].group != requests[2].group
    assert [request.hints for request in requests[:3]] == [{"fault_domain": "1"}, {"fault_domain": "2"}, {}]
    assert load(tmp_path) == workload


@pytest.mark.parametrize(
    ("row", "column", "problem"),
    [
        ("8,16,3,,,", "numa", "must be 1..2"),
        ("1,16,2,,,", "flavor_vcpus", "must be 2.."),
        ("8,-1,1,,,", "flavor_ram", "must be 1.."),
        ("8,4000000,1,,,", "flavor_ram", "must be 1.."),
        ("8,16,1,spread,0,", "strategy", "affinity, anti-affinity, fault_domain, got 'spread'"),
        ("8,16,1,affinity,,", "group", "is empty"),
        ("8,16,1,,4,", "group", "without a strategy"),
        ("8,16,1,fault_domain,4,", "domain", "is empty"),
        (f"8,16,1,affinity,{'x' * 129},", "group", "1..128 characters of text"),
        ("8,16,1,affinity,4,1", "domain", "must be empty for a VM of strategy affinity"),
    ],
)
def test_a_malformed_vm_is_named_with_line_and_column(tmp_path, row, column, problem):
    with pytest.raises(BadFile, match=problem) as caught:
        load(tmp_path, vms=f"{SEQUENCE}{row}\n")
    assert (caught.value.line, caught.value.column) == (7, column)


def test_missing_and_duplicate_racks_are_named(tmp_path):
    with pytest.raises(BadFile, match="host-1 has no rack") as caught:
        load(tmp_path, racks="host_id,rack_id\nhost-0,0\n")
    assert caught.value.line == 3
    with pytest.raises(BadFile, match="host-0 is repeated"):
        load(tmp_path, racks=RACKS + "host-0,4\n")


@pytest.mark.parametrize("sequence", ["C1", "C3", "C5"])
def test_published_traces_are_read_completely(sequence):
    names = "huawei/PM_res.csv", "huawei/topology_provider.csv", f"huawei/VM_data_{sequence}.csv"
    workload = open_workload(real(*names), Options())
    assert len(workload.fleet.hosts) == 1710
    assert len(workload.events) == 4998
