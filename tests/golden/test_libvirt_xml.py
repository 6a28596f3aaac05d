import msgspec
import pytest

from roost.compute.drivers.libvirt.devices import Vgpu
from roost.compute.drivers.libvirt.domain_xml import (
    Domain,
    count_dedicated,
    devices_of,
    domain_xml,
    mark_of,
    mark_xml,
    read_mark,
)
from roost.compute.drivers.libvirt.host import Encryption
from roost.model.devices.numa import NumaCell, NumaTopology
from roost.model.devices.topology import InstanceCell, Pins, PlacedCell
from roost.model.flavor import Flavor
from roost.model.image import Image
from tests.support.agents.driver_doubles import spec_of
from tests.support.fleets.worlds import uuid_named

HOST = NumaTopology(
    cells=(
        NumaCell(id=0, cpus=(0, 1), pcpus=(2, 3), memory_mb=4096),
        NumaCell(id=1, cpus=(4, 5), pcpus=(6, 7), memory_mb=4096),
    )
)
PINNED_CELL = PlacedCell(
    cell=InstanceCell(id=0, pcpus=frozenset({0, 1}), memory_mb=1024, policy="dedicated"),
    host_cell=1,
    page_size=2048,
    pins=Pins(pairs=((0, 7), (1, 6)), reserved=(4,)),
)
SHARED_CELL = PlacedCell(cell=InstanceCell(id=1, cpus=frozenset({2}), memory_mb=512), host_cell=0)
VGPU = Vgpu(uuid=uuid_named("vgpu"), gpu="pci_0000_06_00_0", kind="nvidia-11", is_made=True)


def plain(kind="qemu", **more):
    spec = spec_of("guest", **more)
    return Domain(
        mark=mark_of(spec, "op-1", disk="/disks/guest.raw"),
        spec=spec,
        kind=kind,
        arch="x86_64",
        console="/disks/console.log",
        topology=HOST,
    )


def rich():
    flavor = Flavor(name="big", vcpus=3, memory_mb=1536, root_gb=10)
    image = Image(id="debian", properties={"hw_machine_type": "q35", "hw_disk_bus": "sata", "hw_vif_model": "e1000"})
    spec = spec_of("guest", flavor=flavor, image=image, cells=(PINNED_CELL, SHARED_CELL))
    return Domain(
        mark=mark_of(spec, "op-1", disk="/disks/guest.raw", vgpus=(VGPU,)),
        spec=spec,
        kind="kvm",
        arch="x86_64",
        topology=HOST,
        pci=("0000:81:10.1",),
        network="default",
    )


def encrypted():
    domain = plain("kvm", cells=(PINNED_CELL,), flavor=Flavor(name="own", vcpus=2, memory_mb=1024, root_gb=1))
    encryption = Encryption(contexts=15, bit=47, reduced_bits=1)
    return msgspec.structs.replace(domain, encryption=encryption, network="default")


@pytest.mark.parametrize("name", ["plain", "rich", "encrypted"])
def test_domain_xml_of_a_guest(golden, name):
    golden(f"libvirt_{name}.xml", domain_xml({"plain": plain, "rich": rich, "encrypted": encrypted}[name]()))


def test_devices_other_than_virtio_have_no_iommu_option():
    domain = msgspec.structs.replace(rich(), encryption=Encryption(contexts=1, bit=47, reduced_bits=1))
    assert "iommu" not in domain_xml(domain)


@pytest.mark.parametrize("domain", [plain(), rich()], ids=["plain", "rich"])
def test_guest_is_recognized_by_its_mark(domain):
    assert read_mark(domain_xml(domain)) == domain.mark
    complete = msgspec.structs.replace(domain.mark, is_complete=True)
    # libvirt returns the metadata with a namespace.
    mark_element = mark_xml(complete).replace("<guest", "<guest xmlns='urn:roost:guest:1'")
    assert read_mark(f"<domain><metadata>{mark_element}</metadata></domain>") == complete


def test_foreign_domain_has_no_mark():
    assert read_mark("<domain><metadata><other xmlns='urn:other'/></metadata></domain>") is None
    assert read_mark("<domain/>") is None


def test_dedicated_processors_include_the_emulators():
    text = domain_xml(rich())
    assert count_dedicated(text, frozenset({2, 3, 6, 7})) == 2
    assert count_dedicated(text, frozenset({3, 4, 5, 6, 7})) == 3
    assert count_dedicated(text, frozenset({0, 1, 4})) == 0, "those are shared, or the emulator's alone"
    assert count_dedicated(domain_xml(plain()), frozenset({0, 1})) == 0


def test_devices_of_a_guest_count_as_used():
    assert devices_of(domain_xml(rich())) == ({"0000:81:10.1"}, {VGPU.uuid})
    assert devices_of(domain_xml(plain())) == (set(), set())


def test_special_characters_in_names_are_escaped():
    domain = plain()
    renamed = msgspec.structs.replace(domain, spec=msgspec.structs.replace(domain.spec, name="<a>&\n'b'"))
    assert "<title>&lt;a&gt;&amp; 'b'</title>" in domain_xml(renamed)
