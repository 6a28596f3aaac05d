"""Consumers that hold VCPU for pinned CPUs, and how many they must move to PCPU."""

import pytest

from roost.compute.drivers.pinned_cpus import Processors, to_move

ROOT = "root"


def vcpu_holdings(**amounts):
    """Return VCPU allocations on the root, by consumer."""
    return {name: {"allocations": {ROOT: {"resources": {"VCPU": amount}}}} for name, amount in amounts.items()}


def test_migrations_match_departing_guests_of_the_same_cpu_count():
    departing = {"two": Processors(0, 2), "three": Processors(2, 1), "again two": Processors(1, 1)}
    assert to_move(vcpu_holdings(a=3, b=2, c=2, d=2), ROOT, departing) == {"a": 1, "b": 2, "c": 1}


def test_consumers_without_pinned_cpus_or_root_vcpu_are_not_moved():
    elsewhere = {"b": {"allocations": {"other": {"resources": {"VCPU": 2}}}}}
    guests = {"a": Processors(2, 0), "b": Processors(0, 2), "c": Processors(0, 2)}
    assert (
        to_move(vcpu_holdings(a=2) | elsewhere | {"c": {"allocations": {ROOT: {"resources": {}}}}}, ROOT, guests) == {}
    )


@pytest.mark.parametrize(("amount", "is_logged"), [(1, True), (2, False), (3, False)])
def test_using_more_cpus_than_held_is_logged(capfd, amount, is_logged):
    assert to_move(vcpu_holdings(a=amount), ROOT, {"a": Processors(0, 2)}) == {"a": 2}
    assert ("uses_differ" in capfd.readouterr().err) == is_logged
