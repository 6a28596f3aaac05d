from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from roost.scheduler.pipeline import counted_numbers
from roost.scheduler.pipeline.counted_numbers import add, contains, unite

numbers = st.lists(st.integers(0, 60), max_size=30)


def ranges_of(each):
    ranges = []
    for number in each:
        add(ranges, number)
    return ranges


@given(numbers, numbers)
def test_ranges_are_sets_of_numbers(first, second):
    united = unite(ranges_of(first), ranges_of(second))
    assert {number for number in range(70) if contains(united, number)} == {*first, *second}
    assert all(low <= high for low, high in united)
    assert all(after > high + 1 for (_, high), (after, _) in pairwise(united))


def test_of_too_many_ranges_the_nearest_ones_become_one(monkeypatch):
    monkeypatch.setattr(counted_numbers, "_RANGES_MAX", 2)
    assert unite([(1, 2), (10, 10)], [(13, 15)]) == [(1, 2), (10, 15)]
