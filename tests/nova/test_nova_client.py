"""Nova's own client calls Roost: real objects go in, real Selections and exceptions come out."""

import json
import subprocess
import uuid
from pathlib import Path

import pytest

from tests.differential.scheduler import nova
from tests.nova.duel_worlds import numa_topology, pci_stats
from tests.nova.nova_clouds import NovaCloud, new_database, new_uuid
from tests.support.missing_programs import skip_test

pytestmark = pytest.mark.differential

TOO_FEW = "There are not enough hosts available."
SMALL = {"vcpus": 1, "memory_mb": 64}
CARD = {"vendor_id": "8086", "product_id": "154c"}
# The ratios of the column of the compute node, as the object of Nova shows them.
LIMITS = "NUMATopologyLimits(cpu_allocation_ratio=4.0,network_metadata=<?>,ram_allocation_ratio=1.0)"
TOTALS = {"VCPU": 8, "MEMORY_MB": 8192, "DISK_GB": 100}


@pytest.fixture(scope="module")
def cloud(shared_broker, tmp_path_factory):
    """Yield a cloud with a plain host, one with NUMA cells and devices, and one with network bandwidth."""
    folder = tmp_path_factory.mktemp("client")
    database = new_database(f"sqlite:///{folder / 'api'}")
    cell = database.add_cell(f"sqlite:///{folder / 'cell'}")
    cloud = NovaCloud(folder, shared_broker.add_virtual_host(f"nova-{uuid.uuid4().hex[:8]}"), database)
    with cloud.served():
        devices = {"numa_topology": numa_topology(2, cpus=4, memory_mb=4096), "pci_stats": pci_stats(2, numa_node=0)}
        cloud.nodes = {
            "plain": cloud.add_host(cell, "plain", totals=TOTALS),
            "numa": cloud.add_host(cell, "numa", totals=TOTALS, traits=["HW_CPU_X86_AVX2"], **devices),
            "net": cloud.add_host(cell, "net", totals=TOTALS | {"NET_BW_EGR_KILOBIT_PER_SEC": 1000}),
        }
        cloud.cell = cell
        yield cloud
    cloud.close()


@pytest.fixture
def client(cloud, nova_client):
    """Yield a function that calls Roost through nova; the claims end with the test."""
    numbers = []

    def call(*uuids, flavor=SMALL, **more):
        numbers.extend(uuids or [new_uuid()])
        return nova_client({"uuids": list(uuids) or numbers[-1:], "flavor": flavor, **more})

    yield call
    cloud.release(*numbers)


@pytest.fixture(scope="module", params=("reference", "older"))
def nova_client(cloud, request):
    """Yield a function that sends a request to a process with nova."""
    program = nova.python() if request.param == "reference" else nova.older_python()
    if program is None:
        skip_test(nova.HOW_TO_INSTALL)
    with subprocess.Popen(
        [program, "-I", Path(__file__).with_name("nova_client.py"), cloud.nova_conf],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:

        def call(data):
            process.stdin.write(json.dumps(data) + "\n")
            process.stdin.flush()
            for line in process.stdout:
                if line.startswith("result "):
                    return json.loads(line.removeprefix("result "))
            raise AssertionError("the client ended; run nova_client.py by hand to see why")

        yield call
        process.stdin.close()
        process.wait(timeout=60)


def hosts_of(result):
    """Return the chosen host of each instance."""
    assert "selections" in result, result["error"]
    return [one[0]["host"] for one in result["selections"]]


def test_selection_is_an_object_with_all_fields(client, cloud):
    (number,) = numbers = [new_uuid()]
    ((first, *alternates),) = client(*numbers)["selections"]
    assert len(alternates) == 2
    assert cloud.nodes[first["host"]] == first["provider"]
    assert (first["node"], first["cell"], first["zone"]) == (first["host"], cloud.cell, "nova")
    assert first["version"] == "1.36"
    assert cloud.allocations(number) == {
        provider: each["resources"] for provider, each in first["claim"]["allocations"].items()
    }
    assert first["dict"]["host"] == first["host"]
    assert first["dict"]["nodename"] == first["node"]


def test_several_instances_get_their_selections_in_order(client, cloud):
    numbers = [new_uuid() for _ in range(3)]
    result = client(*numbers)
    for number, one in zip(numbers, result["selections"], strict=True):
        assert list(cloud.allocations(number)) == [one[0]["provider"]]


def test_refusals_are_exceptions_of_nova(client):
    result = client(flavor={"vcpus": 99, "memory_mb": 64})
    assert (result["error"], result["kwargs"]) == ("NoValidHost_Remote", {"reason": "", "code": 500})
    result = client(ignore_hosts=["plain", "numa", "net"])
    assert result["error"] == "NoValidHost_Remote"
    assert result["text"].splitlines()[0] == f"No valid host was found. {TOO_FEW}"
    assert result["kwargs"]["reason"] == TOO_FEW
    result = client(destination={"host": "nowhere", "node": None})
    assert result["kwargs"]["reason"] == "No such host - host: nowhere node: None "


@pytest.mark.parametrize("spec", [{"hw:numa_nodes": "2"}, {"hw:mem_page_size": "small"}])
def test_topology_is_fitted_and_its_limits_come_back(client, spec):
    result = client(flavor={"vcpus": 2, "memory_mb": 128, "extra_specs": spec})
    assert hosts_of(result) == ["numa"]
    assert result["selections"][0][0]["limits"]["numa_topology"] == LIMITS


@pytest.mark.parametrize(
    "properties",
    [
        {
            "hw_numa_nodes": "2",
            "hw_numa_cpus.0": "0",
            "hw_numa_cpus.1": "1",
            "hw_numa_mem.0": "64",
            "hw_numa_mem.1": "64",
        },
        {"hw_numa_nodes": "1"},
        {"trait:HW_CPU_X86_AVX2": "required"},
    ],
)
def test_image_decides_the_host(client, properties):
    assert hosts_of(client(flavor={"vcpus": 2, "memory_mb": 128}, image=properties)) == ["numa"]


@pytest.mark.parametrize(
    "properties",
    [
        {"hw_architecture": "x86_64", "img_hv_type": "kvm", "hw_vm_mode": "hvm"},
        {"hw_cpu_sockets": "1", "hw_cpu_max_threads": "1", "hw_boot_menu": "true", "hw_rng_model": "virtio"},
        {"os_type": "linux", "hw_qemu_guest_agent": "yes", "hw_disk_bus": "virtio", "img_config_drive": "optional"},
    ],
)
def test_properties_of_every_type_are_accepted(client, properties):
    assert "selections" in client(image=properties)


def test_device_of_a_flavor_is_found(client):
    device = {"count": 2, "spec": [CARD], "alias_name": "card", "request_id": new_uuid()}
    assert hosts_of(client(devices=[device])) == ["numa"]
    assert client(devices=[{**device, "count": 3}])["kwargs"]["reason"] == TOO_FEW


def test_group_of_a_port_gets_its_provider(client, cloud):
    port = new_uuid()
    group = {"requester_id": port, "resources": {"NET_BW_EGR_KILOBIT_PER_SEC": 100}}
    result = client(groups=[group])
    assert hosts_of(result) == ["net"]
    assert result["providers"] == {port: [cloud.nodes["net"]]}


@pytest.mark.parametrize("policy", ["affinity", "anti-affinity"])
def test_server_group_holds(client, policy):
    numbers = [new_uuid() for _ in range(3)]
    group = {"uuid": new_uuid(), "policy": policy, "members": numbers, "rules": {}}
    hints = {"group": [group["uuid"]]}
    chosen = {host for number in numbers for host in hosts_of(client(number, group=group, hints=hints))}
    assert len(chosen) == (1 if policy == "affinity" else 3)


def test_destination_limits_the_hosts(client):
    for host in ("plain", "net"):
        assert hosts_of(client(destination={"host": host, "node": None})) == [host]
    assert hosts_of(client(force_hosts=["net"])) == ["net"]
