"""The match of devices with the providers of an allocation."""

from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from roost.engine.pci.provider_match import match_providers
from tests.support.fleets.devices import pci_pool, pci_request

CLASS = "CUSTOM_PCI_8086_A"
WIDE = {"vendor_id": "8086", "product_id": "a"}


def allocations_on(*providers):
    return {name: {CLASS: 1} for name in providers}


def test_each_device_maps_to_an_allocated_matching_provider():
    pools = [pci_pool(rp_uuids=("near",), numa_node=0), pci_pool(rp_uuids=("far",), dev_type="type-VF")]
    any_kind = pci_request(WIDE, request_id="pci0")
    function = pci_request({**WIDE, "dev_type": "type-VF"}, request_id="pci1")
    # The request for any function must leave the only suitable one to the other request.
    for first, second in permutations(pools):
        assert match_providers([any_kind, function], allocations_on("far", "near", "root"), [first, second]) == {
            "pci0-0": ("near",),
            "pci1-0": ("far",),
        }


def test_mapping_is_empty_unless_all_devices_are_allocated():
    pools = [pci_pool(rp_uuids=("one",)), pci_pool(rp_uuids=("two",))]
    assert match_providers([pci_request(WIDE, count=2, request_id="pci0")], allocations_on("one"), pools) == {}
    assert match_providers([pci_request(WIDE, request_id="pci0")], {"one": {"CUSTOM_OTHER": 1}}, pools) == {}
    assert match_providers([pci_request(WIDE, request_id="pci0", source="port")], allocations_on("one"), pools) == {}
    assert match_providers([pci_request(WIDE)], allocations_on("one"), pools) == {}


def test_device_request_may_name_its_resource_class():
    pools = [pci_pool(rp_uuids=("one",))]
    request = pci_request({**WIDE, "resource_class": "nic"}, request_id="pci0")
    assert match_providers([request], {"one": {"CUSTOM_NIC": 1}}, pools) == {"pci0-0": ("one",)}
    assert match_providers([request], allocations_on("one"), pools) == {}


def test_functions_of_one_provider_serve_several_devices():
    pools = [pci_pool(count=4, rp_uuids=("card",))]
    assert match_providers([pci_request(WIDE, count=2, request_id="pci0")], {"card": {CLASS: 2}}, pools) == {
        "pci0-0": ("card",),
        "pci0-1": ("card",),
    }


@given(st.lists(st.sets(st.integers(0, 3)), min_size=1, max_size=4))
def test_all_devices_are_matched_if_any_order_matches_all(choices):
    pools = [pci_pool(rp_uuids=(str(at),), numa_node=at, address=f"{at}") for at in range(4)]
    requests = [
        pci_request(*({**WIDE, "address": str(at)} for at in sorted(choice)), request_id=f"pci{n}")
        for n, choice in enumerate(choices)
        if choice
    ]
    usable = [sorted(choice) for choice in choices if choice]
    is_possible = any(
        all(seat in choice for seat, choice in zip(order, usable, strict=True))
        for order in permutations(range(4), len(usable))
    )
    mappings = match_providers(requests, allocations_on(*"0123"), pools)
    assert (len(mappings) == len(usable)) == is_possible
