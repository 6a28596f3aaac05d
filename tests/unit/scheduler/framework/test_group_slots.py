from roost.scheduler.framework.group_slots import place_number, place_numbers, place_of
from tests.support.fleets.fleets import group


def place(policy, **other):
    return place_of(group(policy, **other), host_id=7, rack="r1", domain="a")


def test_anti_affinity_limits_the_members_per_host():
    slot = place("anti-affinity", limit=3)
    assert (slot.scope, slot.holder, slot.members, slot.limit) == (7, 0, 1, 3)


def test_affinity_binds_the_whole_group_to_one_host():
    slot = place("affinity")
    assert (slot.scope, slot.holder) == (0, 7)
    assert slot.limit > 1_000_000


def test_fault_domain_binds_a_rack_to_one_domain():
    slot = place("fault-domain")
    assert (slot.scope, slot.holder) == (place_number("r1"), place_number("a"))


def test_soft_policies_have_no_slot():
    assert place("soft-affinity") is place("soft-anti-affinity") is None


def test_place_numbers_are_stable():
    # Stored in databases: another value would break the places that groups hold.
    assert place_number("rack-7") == 1199119748130292596
    assert place_numbers(("", "a")).tolist() == [place_number(""), place_number("a")]
