"""The description of changed inventories."""

from roost.model.provider import Inventory
from roost.placement.writes.inventories import describe_changes
from tests.support.fleets.worlds import host, roost_with


def test_unchanged_inventories_are_left_out():
    state = roost_with(host("a", VCPU=8, MEMORY_MB=32)).state
    same = {"VCPU": Inventory(total=8), "MEMORY_MB": Inventory(total=32)}
    assert describe_changes(state, 0, same) == {}
    # Other fields do not change what users see.
    assert describe_changes(state, 0, {**same, "VCPU": Inventory(total=8, step_size=2)}) == {}


def test_changed_fields_are_shown_before_and_after():
    state = roost_with(host("a", VCPU=8, MEMORY_MB=32)).state
    new = {"VCPU": Inventory(total=8, reserved=2, allocation_ratio=1.5), "DISK_GB": Inventory(total=5)}
    assert describe_changes(state, 0, new) == {
        "DISK_GB": "total none -> 5",
        "MEMORY_MB": "total 32 -> none",
        "VCPU": "reserved 0 -> 2, allocation_ratio 1 -> 1.5",
    }
