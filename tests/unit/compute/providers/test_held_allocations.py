"""Arithmetic of allocations."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.compute.providers.held_allocations import add, amounts_of, holdings_of, merge_ends, subtract
from roost.errors import BadRequest

AMOUNTS = st.dictionaries(
    st.sampled_from("abc"), st.dictionaries(st.sampled_from(["VCPU", "VGPU"]), st.integers(1, 9), min_size=1)
)


@given(AMOUNTS, AMOUNTS)
def test_subtract_reverses_add(old, more):
    before = copy.deepcopy((old, more))
    assert subtract(add(old, more), more) == old
    assert (old, more) == before


@given(AMOUNTS, AMOUNTS)
def test_double_holds_both_ends_of_a_move(old, new):
    both = merge_ends(old, new)
    assert both.keys() == old.keys() | new.keys()
    assert all(amounts == old.get(uuid, new.get(uuid)) for uuid, amounts in both.items())


@given(AMOUNTS, AMOUNTS)
def test_subtract_refuses_more_than_is_held(old, less):
    fits = all(
        amount <= old.get(uuid, {}).get(resource_class, 0)
        for uuid, each in less.items()
        for resource_class, amount in each.items()
    )
    if fits:
        assert add(subtract(old, less), less) == old
    else:
        with pytest.raises(BadRequest, match="cannot be released"):
            subtract(old, less)


@given(AMOUNTS)
def test_empty_amounts_are_dropped(amounts):
    holdings = {uuid: {"resources": each, "generation": 3} for uuid, each in amounts.items()}
    assert amounts_of(holdings | {"d": {"resources": {}}}) == amounts
    assert holdings_of(amounts | {"d": {}}) == {uuid: {"resources": each} for uuid, each in amounts.items()}
