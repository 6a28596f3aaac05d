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
MADE = uuid_named("made before")


def devices(*more):
    return read_devices((*GPUS, *more))


def test_pci_devices_have_what_they_are_and_where():
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


def test_a_device_that_makes_no_sense_is_named():
    with pytest.raises(DriverNotReady, match="libvirt tells of pci_0000_06_00_0 what cannot be understood"):
        read_devices([GPUS[0].replace("<bus>6", "<bus>six")])


def test_instances_have_the_devices_that_are_named():
    found = devices(libvirt_xml.pci(CARD, "8086", "1572")).pci
    assert [each.address for each in passthrough(found, [("8086", "1572")])] == [CARD]
    assert len(passthrough(found, [("10de", "*")])) == 2
    assert passthrough(found, []) == ()


def test_a_gpu_offers_what_it_has_and_what_can_be_made_of_the_first_type_that_is_enabled():
    there = devices(libvirt_xml.mdev(MADE, FIRST, SMALL))
    assert there.mdevs == (Mdev(name=f"mdev_{MADE.replace('-', '_')}", uuid=MADE, kind=SMALL, gpu=FIRST),)
    assert vgpu_totals(there, [SMALL]) == {FIRST: 2, SECOND: 2}
    assert vgpu_totals(there, [BIG, SMALL]) == {SECOND: 2}
    assert vgpu_totals(there, ["nvidia-99"]) == {}
    assert vgpu_totals(there, []) == {}


def test_a_mediated_device_of_an_older_libvirt_has_its_uuid_in_its_name():
    assert devices(libvirt_xml.mdev(MADE, FIRST, SMALL, is_told=False)).mdevs[0].uuid == MADE


def parts(wanted, *more, used=()):
    return choose_vgpus(wanted, devices(*more), enabled=[SMALL], used=used, owner="guest-op")


def test_a_guest_gets_parts_of_its_gpu_idle_ones_first():
    idle = libvirt_xml.mdev(MADE, FIRST, SMALL)
    first, second = parts({FIRST: 2}, idle)
    assert first == Vgpu(uuid=MADE, gpu=FIRST, kind=SMALL)
    assert (second.gpu, second.is_made) == (FIRST, True)
    assert parts({FIRST: 2}, idle) == (first, second)
    assert parts({FIRST: 1}, idle, used=[MADE])[0].is_made


def test_a_guest_gets_no_more_parts_than_there_are():
    for wanted in ({FIRST: 2}, {ANY_GPU: 4}, {"pci_0000_99_00_0": 1}):
        with pytest.raises(BuildFailed, match="free VGPU"):
            parts(wanted)
    everything = parts({ANY_GPU: 2, FIRST: 1})
    assert sorted(each.gpu for each in everything) == [FIRST, SECOND, SECOND]
    assert len({each.uuid for each in everything}) == 3


def test_a_part_is_made_of_its_gpu_as_its_type():
    assert mdev_xml(Vgpu(uuid=MADE, gpu=FIRST, kind=SMALL)) == (
        f'<device>\n  <parent>{FIRST}</parent>\n  <capability type="mdev">\n    <type id="{SMALL}" />\n'
        f"    <uuid>{MADE}</uuid>\n  </capability>\n</device>"
    )
