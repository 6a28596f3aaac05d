"""Who holds VCPU for processors of its own, and for how many."""

import pytest

from roost.compute.drivers.pinned_cpus import Processors, to_move

ROOT = "root"


def held(**amounts):
    """Give what consumers hold of the root."""
    return {name: {"allocations": {ROOT: {"resources": {"VCPU": amount}}}} for name, amount in amounts.items()}


def test_each_move_has_the_processors_of_one_guest_that_leaves_and_has_as_many():
    leaving = {"two": Processors(0, 2), "three": Processors(2, 1), "again two": Processors(1, 1)}
    assert to_move(held(a=3, b=2, c=2, d=2), ROOT, leaving) == {"a": 1, "b": 2, "c": 1}


def test_who_has_none_of_its_own_or_holds_none_of_the_root_is_not_moved():
    elsewhere = {"b": {"allocations": {"other": {"resources": {"VCPU": 2}}}}}
    guests = {"a": Processors(2, 0), "b": Processors(0, 2), "c": Processors(0, 2)}
    assert to_move(held(a=2) | elsewhere | {"c": {"allocations": {ROOT: {"resources": {}}}}}, ROOT, guests) == {}


@pytest.mark.parametrize(("amount", "is_told"), [(1, True), (2, False), (3, False)])
def test_who_has_more_than_it_holds_is_told(capfd, amount, is_told):
    assert to_move(held(a=amount), ROOT, {"a": Processors(0, 2)}) == {"a": 2}
    assert ("uses_differ" in capfd.readouterr().err) == is_told
