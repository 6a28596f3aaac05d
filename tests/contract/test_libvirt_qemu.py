"""Guests that really boot: QEMU without KVM runs 512 bytes that write to the first serial port."""

import time

import pytest

from roost.compute.driver import load
from roost.errors import BuildFailed
from roost.model.devices.topology import InstanceCell, Pins, PlacedCell
from roost.model.flavor import Flavor
from tests.support.agents.driver_doubles import spec_of, tree_of
from tests.support.agents.libvirt_hosts import boot_sector, libvirt_module, qemu_uri, short_folder
from tests.support.fleets.worlds import uuid_named

pytestmark = pytest.mark.long

GUEST = uuid_named("guest")
SMALL = Flavor(name="small", vcpus=1, memory_mb=32, root_gb=1)
BOOT_S_MAX = 60  # a guest boots slowly on a busy machine


@pytest.fixture(scope="module")
def qemu(tmp_path_factory):
    """Yield the options of a driver on a private QEMU connection."""
    folder = tmp_path_factory.mktemp("qemu")
    (folder / "images").mkdir()
    (folder / "images" / "greeting").write_bytes(boot_sector("roost"))
    (folder / "images" / "farewell").write_bytes(boot_sector("so long"))
    with short_folder() as short:
        yield {
            "uri": qemu_uri(short),
            "state": str(folder / "state"),
            "images": str(folder / "images"),
            "virt_type": "qemu",
            "shutdown_s": "0",
        }


def start_driver(options):
    driver = load("libvirt", options)
    driver.start("host-a")
    return driver


@pytest.fixture
def driver(qemu):
    driver = start_driver(qemu)
    yield driver
    for found in driver.guests():
        driver.destroy(found.uuid, "the end")


def spec(image="greeting", **more):
    return spec_of("guest", flavor=SMALL, image=image, **more)


def read(driver, text):
    """Wait until the guest has written a text to its console; return the console."""
    until = time.monotonic() + BOOT_S_MAX
    while text not in driver.console(GUEST) and time.monotonic() < until:
        time.sleep(0.1)
    return driver.console(GUEST)


def test_guest_boots_and_writes_to_its_console(driver):
    assert driver.capabilities.has_console
    driver.spawn(spec(), "op-1")
    assert "roost" in read(driver, "roost")
    assert [(found.operation, found.state) for found in driver.guests()] == [("op-1", "running")]


def test_guest_keeps_running_while_its_agent_restarts(driver, qemu):
    driver.spawn(spec(), "op-1")
    restarted = start_driver(qemu)
    restarted.spawn(spec(), "op-1")
    assert "roost" in read(restarted, "roost")
    restarted.power(GUEST, is_on=False)
    assert driver.inspect(GUEST).state == "stopped"


def test_rebuilt_guest_boots_its_new_image(driver):
    driver.spawn(spec(), "op-1")
    driver.rebuild(spec("farewell"), "op-2")
    assert "so long" in read(driver, "so long")
    assert driver.inspect(GUEST).operation == "op-2"


def test_guest_moved_to_its_own_host_boots_there_and_after_a_revert(driver):
    driver.spawn(spec(), "op-1")
    to = driver.prepare(spec(), "op-2")
    driver.power(GUEST, is_on=False)
    driver.send_disk(GUEST, to)
    driver.finish(spec(), "op-2")
    assert (driver.inspect(GUEST).operation, driver.inspect(GUEST).state) == ("op-2", "running")
    driver.discard(GUEST, "op-2")
    driver.power(GUEST, is_on=True)
    assert (driver.inspect(GUEST).operation, driver.inspect(GUEST).state) == ("op-1", "running")


def test_guest_that_ignores_a_shutdown_request_is_stopped(driver, qemu):
    driver.spawn(spec(), "op-1")
    start_driver({**qemu, "shutdown_s": "0.5"}).power(GUEST, is_on=False)  # This guest does not react to ACPI.
    assert driver.inspect(GUEST).state == "stopped"


def test_failed_spawn_on_qemu_leaves_nothing_behind(driver, qemu):
    driver_without_network = start_driver({**qemu, "network": "nowhere"})
    with pytest.raises(BuildFailed, match=f"guest {GUEST} cannot be built or moved on host-a: .*network"):
        driver_without_network.spawn(spec(), "op-1")
    assert driver.guests() == []


def test_destroying_a_uefi_guest_deletes_its_nvram_file(driver, qemu, tmp_path):
    driver.spawn(spec(), "op-1")
    driver.power(GUEST, is_on=False)
    domain = libvirt_module().open(qemu["uri"]).lookupByUUIDString(GUEST)
    memory = tmp_path / "memory.fd"
    for path in (tmp_path / "code.fd", memory):
        path.write_bytes(b"firmware")
    firmware = f"<loader readonly='yes' type='pflash'>{tmp_path}/code.fd</loader><nvram>{memory}</nvram></os>"
    libvirt_module().open(qemu["uri"]).defineXML(domain.XMLDesc().replace("</os>", firmware))
    driver.destroy(GUEST, "op-2")
    assert (driver.guests(), memory.exists()) == ([], False)


def test_driver_reports_the_real_resources_of_the_host(driver):
    resources = driver.resources("host-a")
    assert (resources.hypervisor_type, resources.vcpus > 0, resources.memory_mb > 0) == ("QEMU", True, True)
    assert resources.hypervisor_version >= 1_000_000
    assert any(kind == "qemu" for _, kind, _ in resources.supported_instances)
    tree = tree_of("host-a")
    driver.update_provider_tree(tree, "host-a")
    assert tree.data("host-a").inventory["VCPU"]["total"] == resources.vcpus
    assert set(driver.metrics("host-a")) >= {"cpu.frequency", "cpu.user.time", "cpu.idle.time"}


def test_guest_boots_on_its_assigned_cell_and_processors(driver):
    topology = driver.resources("host-a").numa_topology
    if topology is None or not topology.cells[0].cpus:
        pytest.skip("this machine tells no memory nodes")
    host = topology.cells[0]
    wanted = InstanceCell(id=0, pcpus=frozenset({0}), memory_mb=32, policy="dedicated")
    pins = Pins(pairs=((0, host.cpus[-1]),))
    driver.spawn(spec(cells=(PlacedCell(cell=wanted, host_cell=host.id, page_size=4, pins=pins),)), "op-1")
    assert "roost" in read(driver, "roost")
