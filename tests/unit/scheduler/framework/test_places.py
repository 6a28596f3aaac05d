from roost.scheduler.framework.group_slots import place_number, place_numbers, place_of
from tests.support.fleets.fleets import group


def place(policy, **other):
    return place_of(group(policy, **other), host_id=7, rack="r1", domain="a")


def test_anti_affinity_bounds_the_members_of_a_host():
    found = place("anti-affinity", limit=3)
    assert (found.scope, found.holder, found.members, found.limit) == (7, 0, 1, 3)


def test_affinity_gives_the_whole_group_to_one_host():
    found = place("affinity")
    assert (found.scope, found.holder) == (0, 7)
    assert found.limit > 1_000_000


def test_a_fault_domain_gives_a_rack_to_one_domain():
    found = place("fault-domain")
    assert (found.scope, found.holder) == (place_number("r1"), place_number("a"))


def test_soft_policies_guard_nothing():
    assert place("soft-affinity") is place("soft-anti-affinity") is None


def test_numbers_of_names_never_change_and_are_the_same_everywhere():
    # Stored in databases: another value would break the places that groups hold.
    assert place_number("rack-7") == 1199119748130292596
    assert place_numbers(("", "a")).tolist() == [place_number(""), place_number("a")]
