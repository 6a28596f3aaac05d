"""Which PCI devices a driver gives a guest."""

import pytest

from roost.compute.drivers.pci_choice import check_given, choose_pci
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


def chosen(*requests, used=(), cells=None):
    return choose_pci(requests, FOUND, used=used, cells=cells, sockets={})


def function(**more):
    return PciRequest(alternatives=({"product_id": "154C"},), **more)


def test_a_guest_gets_free_devices_of_the_kind_it_wants_near_to_its_cells():
    assert chosen() == ()
    assert chosen(function(count=2)) == ("0000:81:10.0", "0000:81:10.1")
    assert chosen(function(), used=["0000:81:10.0"]) == ("0000:81:10.1",)
    assert chosen(function(numa_policy="required"), cells=[1]) == ("0000:81:10.1",)


def test_a_card_and_its_functions_are_not_given_out_both():
    card = PciRequest(alternatives=({"dev_type": "type-PF"},))
    assert chosen(card) == (CARD,)
    with pytest.raises(BuildFailed, match="the host lacks free PCI devices: 1 of product_id=154C"):
        chosen(function(), used=[CARD])
    with pytest.raises(BuildFailed, match="lacks free PCI devices"):
        chosen(card, used=["0000:81:10.0"])


def test_what_its_agent_says_is_given_if_it_is_there_and_free():
    check_given([CARD, "0000:81:10.1"], FOUND, used=["0000:81:10.0"])
    with pytest.raises(BuildFailed, match=r"the host has no device 0000:99:00\.0 for guests"):
        check_given([CARD, "0000:99:00.0"], FOUND, used=[])
    with pytest.raises(BuildFailed, match=r"another guest has device 0000:81:00\.0"):
        check_given([CARD], FOUND, used=[CARD])
