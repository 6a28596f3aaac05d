import pytest
from msgspec.structs import replace

from roost.compute.driver import load
from roost.errors import (
    BadSettings,
    BuildAborted,
    BuildFailed,
    DriverNotReady,
    ReshapeFailed,
    ReshapeNeeded,
    Unavailable,
)
from roost.model.devices.pci import PciRequest
from roost.model.devices.topology import InstanceCell, Pins, PlacedCell
from roost.model.flavor import Flavor
from roost.model.image import Image
from tests.support.agents import libvirt_xml
from tests.support.agents.driver_doubles import spec_of, tree_of
from tests.support.agents.libvirt_hosts import Cards, LibvirtRig, libvirt_module
from tests.support.fleets.worlds import uuid_named

GUEST, NODE = uuid_named("guest"), "host-a"
FIRST, SECOND, KIND = "0000:06:00.0", "0000:07:00.0", "nvidia-11"
CHILDREN = [f"{NODE}_pci_0000_06_00_0", f"{NODE}_pci_0000_07_00_0"]


def gpus():
    return Cards({FIRST: {KIND: 2}, SECOND: {KIND: 4}})


def tree_with_gpus(driver):
    tree = tree_of(NODE)
    driver.update_provider_tree(tree, NODE)
    return tree


def gpu_allocations(tree, **amounts):
    """Return the allocations of a guest, with VGPU by the number of the GPU."""
    held = {tree.data(CHILDREN[int(number[1:])]).uuid: {"VGPU": amount} for number, amount in amounts.items()}
    return {uuid_named(NODE): {"VCPU": 1}, **held}


# --- the host ---


def test_resources_of_the_libvirt_test_host_are_complete(tmp_path):
    libvirt_module()
    driver = load("libvirt", {"uri": "test:///default", "state": str(tmp_path)})
    driver.start("example")
    resources = driver.resources("example")
    assert (resources.vcpus, resources.memory_mb, resources.hypervisor_type) == (16, 6144, "TEST")
    assert [(cell.id, len(cell.cpus), cell.memory_mb) for cell in resources.numa_topology.cells] == [
        (0, 8, 2048),
        (1, 8, 4096),
    ]
    assert (resources.vcpus_used, driver.guests()) == (0, []), "the preinstalled test guest is not managed"
    driver.spawn(spec_of(node="example", image=Image()), "op-1")
    driver.destroy(GUEST, "op-2")
    assert driver.metrics("example")["cpu.frequency"] == 1400


def test_dedicated_cpus_are_offered_as_pcpu(tmp_path):
    libvirt_module()
    driver = load(
        "libvirt",
        {
            "uri": "test:///default",
            "state": str(tmp_path),
            "cpu_shared_set": "0-3",
            "cpu_dedicated_set": "8-15,^9",
        },
    )
    driver.start(NODE)
    inventory = tree_with_gpus(driver).data(NODE).inventory
    assert {name: record["total"] for name, record in inventory.items() if name != "DISK_GB"} == {
        "VCPU": 4,
        "PCPU": 7,
        "MEMORY_MB": 6144,
    }
    assert inventory["VCPU"]["allocation_ratio"] == 4.0
    assert inventory["MEMORY_MB"]["reserved"] == 512


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"cpu_shared_set": "1-"}, "option cpu_shared_set: '1-' is not a set of processors"),
        ({"pci_devices": "8086"}, "option pci_devices: '8086' is not vendor:product"),
        ({"shutdown_s": "-1"}, "option shutdown_s"),
        ({"url": "x"}, "has no option url; it has uri, state"),
    ],
)
def test_invalid_option_is_named_in_the_error(options, problem):
    with pytest.raises(BadSettings, match=problem):
        load("libvirt", options)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"cpu_shared_set": "99"}, "option cpu_shared_set: the host has no processor 99"),
        ({"cpu_shared_set": "0-9999,^50"}, "option cpu_shared_set: the host has no processor 16-49, 51-9999$"),
        ({"virt_type": "kvm"}, "option virt_type: the host runs test, not kvm"),
        ({"state": "/dev/null/x"}, "/dev/null/x/hosts/host-a cannot be used: Not a directory"),
    ],
)
def test_option_that_the_host_cannot_meet_fails_the_start(options, problem):
    libvirt_module()
    with pytest.raises(BadSettings, match=problem):
        load("libvirt", {"uri": "test:///default", **options}).start(NODE)


def test_unreachable_libvirt_is_not_ready(tmp_path):
    libvirt_module()
    with pytest.raises(DriverNotReady, match="libvirt cannot be reached at test:///"):
        load("libvirt", {"uri": f"test://{tmp_path}/nothing.xml", "state": str(tmp_path)}).start(NODE)


# --- guests ---


def test_disk_has_the_flavor_size_and_unusable_images_abort():
    rig = LibvirtRig()
    driver = rig.driver()
    driver.spawn(rig.spec(), "op-1")
    (disk,) = (rig.folder / "state" / "hosts" / NODE / GUEST).glob("*.raw")
    assert disk.stat().st_size == 2**30
    assert disk.read_bytes()[:12] == b"cirroscirros"
    assert disk.stat().st_blocks * 512 < 2**20
    with (rig.folder / "images" / "huge").open("wb") as file:
        file.truncate(2**30 + 1)
    for image, problem in (
        (Image(id="huge"), "image huge does not fit into 1 GiB"),
        (Image(id="nobody's"), "there is no image nobody's in"),
        (Image(id="../node.xml"), "there is no image ../node.xml in"),
        (Image(id="cirros", disk_format="qcow2"), "image cirros is qcow2"),
    ):
        with pytest.raises(BuildAborted, match=problem):
            driver.rebuild(rig.spec(image=image), "op-2")
        with pytest.raises(BuildAborted, match=problem):
            driver.spawn(rig.spec("other", image=image), "op-2")
    assert [(found.operation, found.state) for found in driver.guests()] == [("op-1", "running")]


def test_flavors_with_more_than_one_disk_are_refused():
    rig = LibvirtRig()
    driver = rig.driver()
    for flavor in (Flavor(name="a", vcpus=1, memory_mb=64, swap=1), Flavor(name="b", vcpus=1, ephemeral_gb=1)):
        with pytest.raises(BuildFailed, match="have one disk"):
            driver.spawn(spec_of(flavor=flavor), "op-1")
    with pytest.raises(BuildFailed, match="host host-a has no node host-b"):
        driver.spawn(spec_of(node="host-b"), "op-1")


def test_failed_rebuild_leaves_the_guest_unchanged():
    rig = LibvirtRig()
    rig.driver().spawn(rig.spec(), "op-1")
    failing = rig.failing("rebuild", "failed")
    with pytest.raises(BuildFailed):
        failing.rebuild(rig.spec(), "op-2")
    assert [(found.operation, found.state) for found in failing.guests()] == [("op-1", "running")]
    failing.rebuild(rig.spec(), "op-2")
    assert failing.inspect(GUEST).operation == "op-2"
    assert len([*(rig.folder / "state" / "hosts" / NODE / GUEST).glob("*.raw")]) == 1


def test_interrupted_rebuild_can_be_completed():
    rig = LibvirtRig()
    rig.driver().spawn(rig.spec(), "op-1")
    crashing = rig.failing("rebuild", "crash")
    with pytest.raises(RuntimeError, match="rebuild broke off"):
        crashing.rebuild(rig.spec(), "op-2")
    assert crashing.inspect(GUEST).state == "building"
    crashing.rebuild(rig.spec(), "op-2")
    assert (crashing.inspect(GUEST).operation, crashing.inspect(GUEST).state) == ("op-2", "running")


def test_definition_that_libvirt_rejects_leaves_nothing():
    rig = LibvirtRig()
    image = Image(id="cirros", properties={"hw_disk_bus": "sata\0"})
    with pytest.raises(BuildAborted, match=f"guest {GUEST} cannot be built or moved on host-a: embedded null"):
        rig.driver().spawn(rig.spec(image=image), "op-1")
    assert (rig.driver().guests(), [*rig.folder.rglob("*.raw")]) == ([], [])


def test_send_disk_to_an_unshared_folder_fails():
    source, target = LibvirtRig(), LibvirtRig()
    source.driver().spawn(source.spec(is_on=False), "op-1")
    to = target.driver("host-b").prepare(target.spec(host="host-b"), "op-2")
    (target.folder / "state").rename(target.folder / "elsewhere")
    with pytest.raises(BuildFailed, match="not expected at host-b, or the hosts do not share its folder"):
        source.driver().send_disk(GUEST, to)


def test_missing_disk_is_a_clear_error():
    rig = LibvirtRig()
    rig.driver().spawn(rig.spec(is_on=False), "op-1")
    (disk,) = (rig.folder / "state" / "hosts" / NODE / GUEST).glob("*.raw")
    disk.unlink()
    with pytest.raises(Unavailable, match=f"guest {GUEST} on host-a: .*No such file"):
        rig.driver().save(GUEST)


# --- devices ---


def test_each_gpu_has_its_own_provider():
    rig = LibvirtRig(cards=gpus(), mdev_types=f"nvidia-99, {KIND}")
    driver = rig.driver()
    tree = tree_with_gpus(driver)
    assert [tree.data(child).inventory["VGPU"]["total"] for child in CHILDREN] == [2, 4]
    assert "VGPU" not in tree.data(NODE).inventory
    plain = LibvirtRig(cards=gpus())
    plain.driver().update_provider_tree(tree, NODE)
    assert tree.get_provider_uuids() == [uuid_named(NODE)], "types that are not enabled are not offered"


def test_vgpus_are_created_and_removed_with_a_guest():
    cards = gpus()
    rig = LibvirtRig(cards=cards, mdev_types=KIND)
    tree = tree_with_gpus(rig.driver())
    rig.driver().spawn(rig.spec(allocations=gpu_allocations(tree, g1=2)), "op-1")
    assert [*cards.parts.values()] == [(SECOND, KIND)] * 2
    rig.driver().update_provider_tree(tree, NODE)
    assert [tree.data(child).inventory["VGPU"]["total"] for child in CHILDREN] == [2, 4]
    rig.driver().power(GUEST, is_on=False)
    cards.parts.clear()  # As after a reboot of the host.
    rig.restarted().power(GUEST, is_on=True)
    assert [*cards.parts.values()] == [(SECOND, KIND)] * 2
    rig.driver().destroy(GUEST, "op-2")
    assert cards.parts == {}


def test_existing_vgpus_are_used_first_and_kept():
    cards = gpus()
    cards.parts[uuid_named("made before")] = (FIRST, KIND)
    rig = LibvirtRig(cards=cards, mdev_types=KIND)
    tree = tree_with_gpus(rig.driver())
    for name in ("one", "two"):
        rig.driver().spawn(rig.spec(name, allocations=gpu_allocations(tree, g0=1)), "op-1")
    assert len(cards.parts) == 2
    with pytest.raises(BuildFailed, match="pci_0000_06_00_0 lacks 1 free VGPU"):
        rig.driver().spawn(rig.spec("three", allocations=gpu_allocations(tree, g0=1)), "op-1")
    for name in ("one", "two"):
        rig.driver().destroy(uuid_named(name), "op-2")
    assert [*cards.parts] == [uuid_named("made before")]


def test_resize_on_the_same_host_holds_both_sets_of_vgpus_until_it_ends():
    cards = gpus()
    rig = LibvirtRig(cards=cards, mdev_types=KIND)
    driver = rig.driver()
    spec = rig.spec(allocations=gpu_allocations(tree_with_gpus(driver), g1=1))
    driver.spawn(spec, "op-1")
    first = {*cards.parts}
    to = driver.prepare(spec, "op-2")
    driver.power(GUEST, is_on=False)
    driver.send_disk(GUEST, to)
    driver.finish(spec, "op-2")
    assert not first & {*cards.parts}
    driver.discard(GUEST, "op-2")
    driver.power(GUEST, is_on=True)
    assert {*cards.parts} == first


def rig_with_virtual_functions():
    functions = [libvirt_xml.pci(f"0000:81:10.{n}", "8086", "154c", numa=n, parent="0000:81:00.0") for n in range(2)]
    return LibvirtRig(cards=Cards({}, *functions), pci_devices="8086:154C")


def test_listed_pci_devices_are_reported_and_assigned():
    rig = rig_with_virtual_functions()
    driver = rig.driver()
    assert [each.address for each in driver.resources(NODE).pci_devices] == ["0000:81:10.0", "0000:81:10.1"]
    requests = (PciRequest(alternatives=({"vendor_id": "8086"},)),)
    for name in ("one", "two"):
        driver.spawn(rig.spec(name, pci=requests), "op-1")
    with pytest.raises(BuildFailed, match="the host lacks free PCI devices"):
        driver.spawn(rig.spec("three", pci=requests), "op-1")
    driver.destroy(uuid_named("one"), "op-2")
    driver.spawn(rig.spec("three", pci=requests), "op-1")
    assert driver.resources(NODE).pci_in_use == {
        uuid_named("three"): ("0000:81:10.0",),
        uuid_named("two"): ("0000:81:10.1",),
    }


def test_pci_devices_are_near_the_cells_of_the_guest():
    rig = rig_with_virtual_functions()
    driver = rig.driver()
    near = (PciRequest(alternatives=({"vendor_id": "8086"},), numa_policy="required"),)
    cells = (PlacedCell(cell=InstanceCell(id=0, cpus=frozenset({0}), memory_mb=64), host_cell=1),)
    driver.spawn(rig.spec("one", pci=near, cells=cells), "op-1")
    assert driver.resources(NODE).pci_in_use == {uuid_named("one"): ("0000:81:10.1",)}


def test_given_pci_devices_are_assigned():
    rig = rig_with_virtual_functions()
    driver = rig.driver()
    fields = {"pci": (PciRequest(alternatives=({"vendor_id": "8086"},)),), "devices": ("0000:81:10.1",)}
    driver.spawn(rig.spec("one", **fields), "op-1")
    assert driver.resources(NODE).pci_in_use == {uuid_named("one"): ("0000:81:10.1",)}
    with pytest.raises(BuildFailed, match=r"another guest has device 0000:81:10\.1"):
        driver.spawn(rig.spec("two", **fields), "op-1")
    driver.rebuild(rig.spec("one", **fields), "op-2")
    assert driver.resources(NODE).pci_in_use == {uuid_named("one"): ("0000:81:10.1",)}


# --- VGPU inventory on the root provider ---


def vgpus_on_the_root(held):
    """Return a tree whose root has VGPU, and the allocations of these amounts."""
    tree = tree_of(NODE)
    tree.update_inventory(NODE, {"VGPU": {"total": 6}})
    allocations = {
        uuid: {
            "allocations": {uuid_named(NODE): {"resources": {"VGPU": amount, **more}}},
            "project_id": "p",
            "user_id": "u",
            "consumer_generation": 1,
        }
        for uuid, (amount, more) in held.items()
    }
    return tree, allocations


def test_vgpus_move_from_the_root_to_the_gpus_in_use():
    rig = LibvirtRig(cards=gpus(), mdev_types=KIND)
    driver = rig.driver()
    driver.spawn(rig.spec(allocations={uuid_named(NODE): {"VGPU": 3}}), "op-1")
    tree, allocations = vgpus_on_the_root({GUEST: (3, {"VCPU": 1})})
    with pytest.raises(ReshapeNeeded, match="VGPU of node host-a must move"):
        driver.update_provider_tree(tree, NODE)
    assert tree.get_provider_uuids() == [uuid_named(NODE)]
    driver.update_provider_tree(tree, NODE, allocations)
    held = allocations[GUEST]["allocations"]
    assert {uuid: each["resources"] for uuid, each in held.items()} == {
        uuid_named(NODE): {"VCPU": 1},
        tree.data(CHILDREN[0]).uuid: {"VGPU": 2},
        tree.data(CHILDREN[1]).uuid: {"VGPU": 1},
    }
    driver.update_provider_tree(tree, NODE)
    assert "VGPU" not in tree.data(NODE).inventory


def test_consumer_that_holds_unused_vgpus_fails_the_reshape():
    rig = LibvirtRig(cards=gpus(), mdev_types=KIND)
    driver = rig.driver()
    tree, allocations = vgpus_on_the_root({GUEST: (1, {})})
    with pytest.raises(ReshapeFailed, match=f"{GUEST} holds 1 VGPU and uses none"):
        driver.update_provider_tree(tree, NODE, allocations)
    assert tree.get_provider_uuids() == [uuid_named(NODE)]
    assert allocations[GUEST]["allocations"][uuid_named(NODE)]["resources"] == {"VGPU": 1}


# --- memory encryption ---


class EncryptingConnection:
    """The connection of a host with these domain capabilities."""

    def __init__(self, connection, domain_capabilities):
        self._connection, self._domain_capabilities = connection, domain_capabilities

    def __getattr__(self, name):
        return getattr(self._connection, name)

    def getCapabilities(self):  # noqa: N802  # As libvirt calls it.
        """Return the capabilities of an x86-64 host."""
        return self._connection.getCapabilities().replace("i686", "x86_64")

    def getDomainCapabilities(self, _emulator, arch, machine, kind):  # noqa: N802  # As libvirt calls it.
        """Return the domain capabilities."""
        assert (arch, machine, kind) == ("x86_64", "q35", "test")
        return self._domain_capabilities


def test_memory_is_encrypted_for_guests_that_hold_a_context():
    contexts = {uuid_named(NODE): {"MEM_ENCRYPTION_CONTEXT": 1}}
    rig = LibvirtRig(cards=lambda connection: EncryptingConnection(connection, libvirt_xml.domain_capabilities()))
    tree = tree_with_gpus(rig.driver())
    assert tree.data(NODE).inventory["MEM_ENCRYPTION_CONTEXT"]["total"] == 15
    assert tree.has_traits(NODE, ["HW_CPU_X86_AMD_SEV"])
    rig.driver().spawn(rig.spec(allocations=contexts), "op-1")
    (domain,) = rig.texts()
    assert "<launchSecurity type='sev'>" in domain
    rig.driver().spawn(rig.spec("plain"), "op-1")
    assert sum("launchSecurity" in each for each in rig.texts()) == 1


def test_host_without_memory_encryption_refuses_guests_that_need_it():
    rig = LibvirtRig()
    tree = tree_of(NODE)
    tree.add_traits(NODE, "HW_CPU_X86_AMD_SEV")
    rig.driver().update_provider_tree(tree, NODE)
    assert "MEM_ENCRYPTION_CONTEXT" not in tree.data(NODE).inventory
    assert not tree.has_traits(NODE, ["HW_CPU_X86_AMD_SEV"])
    with pytest.raises(BuildFailed, match=f"host {NODE} does not encrypt memory, as guest {GUEST} requires"):
        rig.driver().spawn(rig.spec(allocations={uuid_named(NODE): {"MEM_ENCRYPTION_CONTEXT": 1}}), "op-1")
    assert rig.driver().guests() == []


# --- dedicated CPUs that were allocated as VCPU ---


def test_dedicated_cpus_of_guests_move_from_vcpu_to_pcpu(tmp_path):
    libvirt_module()
    options = {"uri": "test:///default", "state": str(tmp_path), "cpu_shared_set": "0-3", "cpu_dedicated_set": "8-15"}
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "cirros").write_bytes(b"cirros")
    driver = load("libvirt", options)
    driver.start(NODE)
    cell = InstanceCell(id=0, pcpus=frozenset({0, 1}), memory_mb=512, policy="dedicated")
    dedicated = PlacedCell(cell=cell, host_cell=1, pins=Pins(pairs=((0, 8), (1, 9)), reserved=(10,)))
    flavor = Flavor(name="own", vcpus=2, memory_mb=512, root_gb=1)
    driver.spawn(spec_of(flavor=flavor, cells=(dedicated,)), "op-1")
    arrival = spec_of("coming", flavor=flavor, cells=(replace(dedicated, pins=Pins(pairs=((0, 11), (1, 12)))),))
    driver.prepare(arrival, "op-2")
    tree = tree_of(NODE)
    tree.update_inventory(NODE, {"VCPU": {"total": 16}})
    allocations = {
        uuid_named(name): {"allocations": {uuid_named(NODE): {"resources": {"VCPU": amount}}}}
        for name, amount in {"guest": 3, "coming": 2, "ordered": 1}.items()
    }
    with pytest.raises(ReshapeNeeded, match="VCPU of node host-a must move"):
        driver.update_provider_tree(tree, NODE)
    driver.update_provider_tree(tree, NODE, allocations)
    held = [allocations[uuid_named(name)]["allocations"][uuid_named(NODE)] for name in ("guest", "coming", "ordered")]
    assert [each["resources"] for each in held] == [{"PCPU": 3}, {"PCPU": 2}, {"VCPU": 1}]
    driver.update_provider_tree(tree, NODE)
