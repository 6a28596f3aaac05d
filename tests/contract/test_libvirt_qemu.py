"""Guests that really boot: QEMU without KVM runs 512 bytes that write to the first serial port."""

import time

import pytest

from roost.compute.driver import load
from roost.errors import BuildFailed
from roost.model.devices.topology import InstanceCell, Pins, PlacedCell
from roost.model.flavor import Flavor
from tests.support.agents.driver_doubles import spec_of, tree_of
from tests.support.agents.libvirt_hosts import binding, boot_sector, qemu_uri, short_folder
from tests.support.fleets.worlds import uuid_named

pytestmark = pytest.mark.long

GUEST = uuid_named("guest")
SMALL = Flavor(name="small", vcpus=1, memory_mb=32, root_gb=1)
MOST_S = 60  # that a guest may take on a busy machine


@pytest.fixture(scope="module")
def qemu(tmp_path_factory):
    """Give the options of a driver on a QEMU of its own."""
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


def started(options):
    driver = load("libvirt", options)
    driver.start("host-a")
    return driver


@pytest.fixture
def driver(qemu):
    driver = started(qemu)
    yield driver
    for found in driver.guests():
        driver.destroy(found.uuid, "the end")


def spec(image="greeting", **more):
    return spec_of("guest", flavor=SMALL, image=image, **more)


def read(driver, text):
    """Wait until a guest has written a text to its console, and give all that it wrote."""
    until = time.monotonic() + MOST_S
    while text not in driver.console(GUEST) and time.monotonic() < until:
        time.sleep(0.1)
    return driver.console(GUEST)


def test_a_guest_boots_and_writes_to_its_console(driver):
    assert driver.capabilities.has_console
    driver.spawn(spec(), "op-1")
    assert "roost" in read(driver, "roost")
    assert [(found.operation, found.state) for found in driver.guests()] == [("op-1", "running")]


def test_a_guest_runs_on_while_its_agent_starts_again(driver, qemu):
    driver.spawn(spec(), "op-1")
    again = started(qemu)
    again.spawn(spec(), "op-1")
    assert "roost" in read(again, "roost")
    again.power(GUEST, is_on=False)
    assert driver.inspect(GUEST).state == "stopped"


def test_a_guest_that_is_rebuilt_boots_its_new_image(driver):
    driver.spawn(spec(), "op-1")
    driver.rebuild(spec("farewell"), "op-2")
    assert "so long" in read(driver, "so long")
    assert driver.inspect(GUEST).operation == "op-2"


def test_a_guest_that_moved_to_its_own_host_boots_there_and_back(driver):
    driver.spawn(spec(), "op-1")
    to = driver.prepare(spec(), "op-2")
    driver.power(GUEST, is_on=False)
    driver.send_disk(GUEST, to)
    driver.finish(spec(), "op-2")
    assert (driver.inspect(GUEST).operation, driver.inspect(GUEST).state) == ("op-2", "running")
    driver.discard(GUEST, "op-2")
    driver.power(GUEST, is_on=True)
    assert (driver.inspect(GUEST).operation, driver.inspect(GUEST).state) == ("op-1", "running")


def test_a_guest_that_is_not_asked_kindly_enough_is_stopped(driver, qemu):
    driver.spawn(spec(), "op-1")
    started({**qemu, "shutdown_s": "0.5"}).power(GUEST, is_on=False)  # Such a guest does not listen.
    assert driver.inspect(GUEST).state == "stopped"


def test_what_qemu_cannot_run_is_not_built_and_nothing_is_left(driver, qemu):
    networked = started({**qemu, "network": "nowhere"})
    with pytest.raises(BuildFailed, match=f"guest {GUEST} cannot be had on host-a: .*network"):
        networked.spawn(spec(), "op-1")
    assert driver.guests() == []


def test_a_guest_with_uefi_goes_with_the_memory_of_its_firmware(driver, qemu, tmp_path):
    driver.spawn(spec(), "op-1")
    driver.power(GUEST, is_on=False)
    domain = binding().open(qemu["uri"]).lookupByUUIDString(GUEST)
    memory = tmp_path / "memory.fd"
    for path in (tmp_path / "code.fd", memory):
        path.write_bytes(b"firmware")
    told = f"<loader readonly='yes' type='pflash'>{tmp_path}/code.fd</loader><nvram>{memory}</nvram></os>"
    binding().open(qemu["uri"]).defineXML(domain.XMLDesc().replace("</os>", told))
    driver.destroy(GUEST, "op-2")
    assert (driver.guests(), memory.exists()) == ([], False)


def test_the_host_tells_what_it_really_has(driver):
    told = driver.resources("host-a")
    assert (told.hypervisor_type, told.vcpus > 0, told.memory_mb > 0) == ("QEMU", True, True)
    assert told.hypervisor_version >= 1_000_000
    assert any(kind == "qemu" for _, kind, _ in told.supported_instances)
    tree = tree_of("host-a")
    driver.update_provider_tree(tree, "host-a")
    assert tree.data("host-a").inventory["VCPU"]["total"] == told.vcpus
    assert set(driver.metrics("host-a")) >= {"cpu.frequency", "cpu.user.time", "cpu.idle.time"}


def test_a_guest_boots_in_the_cell_and_on_the_processors_that_were_chosen_for_it(driver):
    told = driver.resources("host-a").numa_topology
    if told is None or not told.cells[0].cpus:
        pytest.skip("this machine tells no memory nodes")
    host = told.cells[0]
    wanted = InstanceCell(id=0, pcpus=frozenset({0}), memory_mb=32, policy="dedicated")
    pins = Pins(pairs=((0, host.cpus[-1]),))
    driver.spawn(spec(cells=(PlacedCell(cell=wanted, host_cell=host.id, page_size=4, pins=pins),)), "op-1")
    assert "roost" in read(driver, "roost")
