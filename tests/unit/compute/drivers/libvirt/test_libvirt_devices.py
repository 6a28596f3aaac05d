import pytest

from roost.compute.drivers.libvirt.devices import (
    ANY_GPU,
    Mdev,
    Vgpu,
    choose_vgpus,
    mdev_xml,
    passthrough,
    read_devices,
    vgpu_totals,
)
from roost.errors import BuildFailed, DriverNotReady
from roost.model.work.agent_terms import PciDevice
from tests.support.agents import libvirt_xml
from tests.support.fleets.worlds import uuid_named

CARD, FUNCTION = "0000:81:00.0", "0000:81:10.1"
FIRST, SECOND = "pci_0000_06_00_0", "pci_0000_07_00_0"
SMALL, BIG = "nvidia-11", "nvidia-14"
GPUS = (
    libvirt_xml.pci("0000:06:00.0", "10de", "0fff", types=((SMALL, 1), (BIG, 0))),
    libvirt_xml.pci("0000:07:00.0", "10de", "0fff", types=((SMALL, 2),)),
)
EXISTING = uuid_named("made before")


def devices(*more):
    return read_devices((*GPUS, *more))


def test_pci_devices_have_ids_type_and_location():
    computer = "<device><name>computer</name><capability type='system'/></device>"
    found = read_devices(
        (
            libvirt_xml.pci(FUNCTION, "8086", "154c", numa=1, parent=CARD),
            computer,
            libvirt_xml.pci(CARD, "8086", "1572", numa=1, functions=64),
            libvirt_xml.pci("0000:ff:1f.7", "8086", "0a0b"),
        )
    )
    assert found.pci == (
        PciDevice(address=CARD, vendor_id="8086", product_id="1572", dev_type="type-PF", numa_node=1),
        PciDevice(
            address=FUNCTION, vendor_id="8086", product_id="154c", dev_type="type-VF", numa_node=1, parent_address=CARD
        ),
        PciDevice(address="0000:ff:1f.7", vendor_id="8086", product_id="0a0b"),
    )
    assert (found.gpus, found.mdevs) == ((), ())


def test_malformed_device_is_named_in_the_error():
    with pytest.raises(DriverNotReady, match="libvirt returned a malformed device pci_0000_06_00_0"):
        read_devices([GPUS[0].replace("<bus>6", "<bus>six")])


def test_passthrough_selects_devices_by_vendor_and_product():
    found = devices(libvirt_xml.pci(CARD, "8086", "1572")).pci
    assert [each.address for each in passthrough(found, [("8086", "1572")])] == [CARD]
    assert len(passthrough(found, [("10de", "*")])) == 2
    assert passthrough(found, []) == ()


def test_gpu_total_counts_existing_and_creatable_vgpus_of_one_type():
    host_devices = devices(libvirt_xml.mdev(EXISTING, FIRST, SMALL))
    assert host_devices.mdevs == (
        Mdev(name=f"mdev_{EXISTING.replace('-', '_')}", uuid=EXISTING, kind=SMALL, gpu=FIRST),
    )
    assert vgpu_totals(host_devices, [SMALL]) == {FIRST: 2, SECOND: 2}
    assert vgpu_totals(host_devices, [BIG, SMALL]) == {SECOND: 2}
    assert vgpu_totals(host_devices, ["nvidia-99"]) == {}
    assert vgpu_totals(host_devices, []) == {}


def test_mediated_device_of_an_older_libvirt_has_its_uuid_in_its_name():
    assert devices(libvirt_xml.mdev(EXISTING, FIRST, SMALL, is_told=False)).mdevs[0].uuid == EXISTING


def vgpus_for(amounts, *more, used=()):
    return choose_vgpus(amounts, devices(*more), enabled=[SMALL], used=used, owner="guest-op")


def test_idle_vgpus_are_used_before_new_ones():
    idle = libvirt_xml.mdev(EXISTING, FIRST, SMALL)
    first, second = vgpus_for({FIRST: 2}, idle)
    assert first == Vgpu(uuid=EXISTING, gpu=FIRST, kind=SMALL)
    assert (second.gpu, second.is_made) == (FIRST, True)
    assert vgpus_for({FIRST: 2}, idle) == (first, second)
    assert vgpus_for({FIRST: 1}, idle, used=[EXISTING])[0].is_made


def test_guest_gets_no_more_vgpus_than_exist():
    for amounts in ({FIRST: 2}, {ANY_GPU: 4}, {"pci_0000_99_00_0": 1}):
        with pytest.raises(BuildFailed, match="free VGPU"):
            vgpus_for(amounts)
    vgpus = vgpus_for({ANY_GPU: 2, FIRST: 1})
    assert sorted(each.gpu for each in vgpus) == [FIRST, SECOND, SECOND]
    assert len({each.uuid for each in vgpus}) == 3


def test_vgpu_xml_names_its_gpu_and_type():
    assert mdev_xml(Vgpu(uuid=EXISTING, gpu=FIRST, kind=SMALL)) == (
        f'<device>\n  <parent>{FIRST}</parent>\n  <capability type="mdev">\n    <type id="{SMALL}" />\n'
        f"    <uuid>{EXISTING}</uuid>\n  </capability>\n</device>"
    )
