"""Choice of PCI devices for a guest."""

import pytest

from roost.compute.drivers.pci_choice import check_assigned, choose_pci
from roost.errors import BuildFailed
from roost.model.devices.pci import PciRequest
from roost.model.work.agent_terms import PciDevice

CARD = "0000:81:00.0"
FOUND = (
    PciDevice(address=CARD, vendor_id="8086", product_id="1572", dev_type="type-PF", numa_node=0),
    *(
        PciDevice(
            address=f"0000:81:10.{n}",
            vendor_id="8086",
            product_id="154c",
            dev_type="type-VF",
            numa_node=n,
            parent_address=CARD,
        )
        for n in (0, 1)
    ),
)


def choose(*requests, used=(), cells=None):
    return choose_pci(requests, FOUND, used=used, cells=cells, sockets={})


def virtual_function(**more):
    return PciRequest(alternatives=({"product_id": "154C"},), **more)


def test_guest_gets_free_matching_devices_near_its_cells():
    assert choose() == ()
    assert choose(virtual_function(count=2)) == ("0000:81:10.0", "0000:81:10.1")
    assert choose(virtual_function(), used=["0000:81:10.0"]) == ("0000:81:10.1",)
    assert choose(virtual_function(numa_policy="required"), cells=[1]) == ("0000:81:10.1",)


def test_card_and_its_functions_exclude_each_other():
    card = PciRequest(alternatives=({"dev_type": "type-PF"},))
    assert choose(card) == (CARD,)
    with pytest.raises(BuildFailed, match="the host lacks free PCI devices: 1 of product_id=154C"):
        choose(virtual_function(), used=[CARD])
    with pytest.raises(BuildFailed, match="lacks free PCI devices"):
        choose(card, used=["0000:81:10.0"])


def test_given_devices_must_exist_and_be_free():
    check_assigned([CARD, "0000:81:10.1"], FOUND, used=["0000:81:10.0"])
    with pytest.raises(BuildFailed, match=r"the host has no device 0000:99:00\.0 for guests"):
        check_assigned([CARD, "0000:99:00.0"], FOUND, used=[])
    with pytest.raises(BuildFailed, match=r"another guest has device 0000:81:00\.0"):
        check_assigned([CARD], FOUND, used=[CARD])
