"""Which provider serves which device, as what is held tells it."""

from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from roost.engine.pci.provider_match import match_providers
from tests.support.fleets.devices import ask, pool

CLASS = "CUSTOM_PCI_8086_A"
WIDE = {"vendor_id": "8086", "product_id": "a"}


def held(*providers):
    return {name: {CLASS: 1} for name in providers}


def test_each_device_is_of_a_provider_that_is_held_and_whose_devices_will_do():
    pools = [pool(rp_uuids=("near",), numa_node=0), pool(rp_uuids=("far",), dev_type="type-VF")]
    any_kind = ask(WIDE, request_id="pci0")
    function = ask({**WIDE, "dev_type": "type-VF"}, request_id="pci1")
    # Who takes any must leave the one that alone will do for the other.
    for first, second in permutations(pools):
        assert match_providers([any_kind, function], held("far", "near", "root"), [first, second]) == {
            "pci0-0": ("near",),
            "pci1-0": ("far",),
        }


def test_nothing_is_said_where_not_all_devices_are_held():
    pools = [pool(rp_uuids=("one",)), pool(rp_uuids=("two",))]
    assert match_providers([ask(WIDE, count=2, request_id="pci0")], held("one"), pools) == {}
    assert match_providers([ask(WIDE, request_id="pci0")], {"one": {"CUSTOM_OTHER": 1}}, pools) == {}
    assert match_providers([ask(WIDE, request_id="pci0", source="port")], held("one"), pools) == {}
    assert match_providers([ask(WIDE)], held("one"), pools) == {}


def test_devices_may_be_asked_for_by_a_class_of_their_own():
    pools = [pool(rp_uuids=("one",))]
    asked = ask({**WIDE, "resource_class": "nic"}, request_id="pci0")
    assert match_providers([asked], {"one": {"CUSTOM_NIC": 1}}, pools) == {"pci0-0": ("one",)}
    assert match_providers([asked], held("one"), pools) == {}


def test_functions_of_one_provider_serve_several_devices():
    pools = [pool(count=4, rp_uuids=("card",))]
    assert match_providers([ask(WIDE, count=2, request_id="pci0")], {"card": {CLASS: 2}}, pools) == {
        "pci0-0": ("card",),
        "pci0-1": ("card",),
    }


@given(st.lists(st.sets(st.integers(0, 3)), min_size=1, max_size=4))
def test_all_are_served_whenever_some_order_serves_all(wishes):
    pools = [pool(rp_uuids=(str(at),), numa_node=at, address=f"{at}") for at in range(4)]
    requests = [
        ask(*({**WIDE, "address": str(at)} for at in sorted(wish)), request_id=f"pci{n}")
        for n, wish in enumerate(wishes)
        if wish
    ]
    wanted = [sorted(wish) for wish in wishes if wish]
    could = any(
        all(seat in wish for seat, wish in zip(order, wanted, strict=True))
        for order in permutations(range(4), len(wanted))
    )
    found = match_providers(requests, held(*"0123"), pools)
    assert (len(found) == len(wanted)) == could
