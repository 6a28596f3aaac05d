import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.engine.ranking import ranks


def scores(values):
    return np.array(values, dtype=np.float64)


@given(
    st.integers(0, 2**32),
    st.sampled_from([1, 5, 511, 513, 1500]),
    st.sampled_from([1, 2, 4, 5, 40, 700]),
    st.booleans(),
)
def test_find_best_equals_a_stable_sort(seed, hosts, count, has_infinite_values):
    random = np.random.default_rng(seed)
    values = random.integers(0, random.choice([1, 3, 50, 10**6]) + 1, hosts) / 7
    if has_infinite_values:
        values[random.random(hosts) < 0.99] = random.choice([-np.inf, np.inf])
    order = sorted(range(hosts), key=lambda at: -values[at])
    assert ranks.find_best(values, count).tolist() == order[:count]


def test_find_best_of_no_hosts_is_empty():
    assert ranks.find_best(scores([]), 3).tolist() == []


@pytest.mark.parametrize(
    ("values", "low", "high", "expected"),
    [
        ([5, 10, 20], 5, 20, [0, 1 / 3, 1]),
        ([10, 20], 0, 20, [0.5, 1]),
        ([10, 10], 0, 10, [1, 1]),
        ([10, 10], 10, 10, [0, 0]),
        ([-1, 1], -1, 1, [0, 1]),
        ([], 0, 1, []),
    ],
)
def test_raw_weights_are_scaled_from_zero_to_one(values, low, high, expected):
    assert ranks.normalise(scores(values), low=low, high=high).tolist() == pytest.approx(expected)


@pytest.mark.parametrize(
    ("values", "minval", "expected"),
    [
        ([10, 20], 0.0, [0.5, 1.0]),  # the class minimum is the low end, not the lowest host
        ([10, 20], None, [0.0, 1.0]),
        ([10, 10], 0.0, [1.0, 1.0]),  # equal and not zero
        ([-5, -10], 0.0, None),  # clamped to the minimum, all are equal
        ([-5, 10], 0.0, [0.0, 1.0]),
    ],
)
def test_class_minimum_clamps_weights_and_is_the_low_end(values, minval, expected):
    raw = ranks.clamp(scores(values), minval=minval, maxval=None)
    contributions = ranks.contributions(
        raw, ranks.scale_of(raw, minval=minval, maxval=None, multiplier=1.0, weigher="w")
    )
    assert (None if contributions is None else contributions.tolist()) == expected


@given(
    st.lists(st.integers(-20, 200), min_size=1, max_size=9),
    st.sampled_from([1.0, -1.0, 0.3, 1e6, 0.0]),
    st.sampled_from([None, 0.0]),
)
def test_single_contribution_equals_the_array_bit_for_bit(values, multiplier, minval):
    raw = ranks.clamp(scores(values), minval=minval, maxval=None)
    scale = ranks.scale_of(raw, minval=minval, maxval=None, multiplier=multiplier, weigher="w")
    contributions = ranks.contributions(raw, scale)
    each = [scale.contribution(value) for value in raw.tolist()]
    assert each == ([0.0] * len(each) if contributions is None else contributions.tolist())


def test_contributions_add_up_in_order():
    assert ranks.total([scores([0.1, 1]), scores([0.2, 1]), scores([0.3, 1])], 2).tolist() == [0.1 + 0.2 + 0.3, 3.0]
    assert ranks.total([], 2).tolist() == [0.0, 0.0]


def test_ties_are_all_hosts_with_the_best_score():
    assert ranks.find_ties(scores([3, 1, 3, 2])).tolist() == [0, 2]
