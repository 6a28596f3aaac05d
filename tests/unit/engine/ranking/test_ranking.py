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
def test_the_best_are_the_first_of_a_stable_sort(seed, hosts, wanted, are_some_endless):
    random = np.random.default_rng(seed)
    drawn = random.integers(0, random.choice([1, 3, 50, 10**6]) + 1, hosts) / 7
    if are_some_endless:
        drawn[random.random(hosts) < 0.99] = random.choice([-np.inf, np.inf])
    order = sorted(range(hosts), key=lambda at: -drawn[at])
    assert ranks.find_best(drawn, wanted).tolist() == order[:wanted]


def test_nobody_is_the_best_of_nobody():
    assert ranks.find_best(scores([]), 3).tolist() == []


@pytest.mark.parametrize(
    ("values", "low", "high", "normalised"),
    [
        ([5, 10, 20], 5, 20, [0, 1 / 3, 1]),
        ([10, 20], 0, 20, [0.5, 1]),
        ([10, 10], 0, 10, [1, 1]),
        ([10, 10], 10, 10, [0, 0]),
        ([-1, 1], -1, 1, [0, 1]),
        ([], 0, 1, []),
    ],
)
def test_raw_weights_are_brought_to_the_scale_of_zero_to_one(values, low, high, normalised):
    assert ranks.normalise(scores(values), low=low, high=high).tolist() == pytest.approx(normalised)


@pytest.mark.parametrize(
    ("values", "minval", "contributed"),
    [
        ([10, 20], 0.0, [0.5, 1.0]),  # a class minimum is the lower end, not the least host
        ([10, 20], None, [0.0, 1.0]),
        ([10, 10], 0.0, [1.0, 1.0]),  # equal and not zero
        ([-5, -10], 0.0, None),  # held to the minimum, all are equal to it
        ([-5, 10], 0.0, [0.0, 1.0]),
    ],
)
def test_a_class_minimum_holds_weights_and_is_the_lower_end(values, minval, contributed):
    raw = ranks.clamp(scores(values), minval=minval, maxval=None)
    found = ranks.contributions(raw, ranks.scale_of(raw, minval=minval, maxval=None, multiplier=1.0, weigher="w"))
    assert (None if found is None else found.tolist()) == contributed


@given(
    st.lists(st.integers(-20, 200), min_size=1, max_size=9),
    st.sampled_from([1.0, -1.0, 0.3, 1e6, 0.0]),
    st.sampled_from([None, 0.0]),
)
def test_one_contribution_is_to_the_last_bit_what_all_are(values, multiplier, minval):
    raw = ranks.clamp(scores(values), minval=minval, maxval=None)
    scale = ranks.scale_of(raw, minval=minval, maxval=None, multiplier=multiplier, weigher="w")
    found = ranks.contributions(raw, scale)
    each = [scale.contribution(value) for value in raw.tolist()]
    assert each == ([0.0] * len(each) if found is None else found.tolist())


def test_contributions_add_up_in_order():
    assert ranks.total([scores([0.1, 1]), scores([0.2, 1]), scores([0.3, 1])], 2).tolist() == [0.1 + 0.2 + 0.3, 3.0]
    assert ranks.total([], 2).tolist() == [0.0, 0.0]


def test_the_leading_run_is_all_that_are_as_good_as_the_best():
    assert ranks.leading_run(scores([3, 1, 3, 2])).tolist() == [0, 2]
