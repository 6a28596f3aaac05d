import numpy as np
import pytest

from roost.scheduler.rule_support.operators import match, match_numbers, matches


@pytest.mark.shows("S064", "S065", "S066", "S067", "S068", "S069", "S070", "S071", "S072", "S073", "S074", "S075")
@pytest.mark.parametrize(
    ("value", "requirement", "is_match"),
    [
        ("48", "= 48", True),
        ("50", "= 48", True),
        ("10", "= 48", False),
        ("0", "= 0", True),
        ("2000000", "== 2000000", True),
        ("1005004", ">= 1005003", True),
        ("11", "<= 10", False),
        ("1", "!= 1.0", False),
        ("QEMU", "s== QEMU", True),
        ("compute_02", "s== compute_01", False),
        ("compute_02", "<in> compute", True),
        ("2.0", "!= 1", True),
        ("QEMU", "s!= xen", True),
        ("xen", "s!= xen", False),
        ("b", "s>= a", True),
        ("a", "s>= b", False),
        ("10", "s> 9", False),
        ("b", "s> a", True),
        ("10", "s<= 9", True),
        ("b", "s<= a", False),
        ("10", "s< 9", True),
        ("a", "s< a", False),
        ("aes avx mmx", "<all-in> aes mmx", True),
        ("aes avx", "<all-in> aes mmx", False),
        ("b", "<or> a <or> b", True),
        ("b", "<or> a b", False),
        ("a b", "a b", True),
        ("a  b", "a b", False),
        ("", "", True),
        ("1", "", False),
        ("5", ">=5", False),
        (">=5", ">=5", True),
        ("4", "< 5", False),
        ("< 5", "< 5", True),
        ("2", "s== 2 3", True),
        (None, "= 1", False),
        (None, "1", False),
        ("1", "<or>", False),
        ("1", ">=", False),
    ],
)
def test_operator_matches_as_in_the_table(value, requirement, is_match):
    assert match(value, requirement) is is_match
    assert matches(value, requirement) is is_match


def test_a_numeric_operator_needs_numbers():
    with pytest.raises(ValueError, match="could not convert"):
        match("abc", ">= 1")
    assert not matches("1", ">= abc")


def test_match_numbers_compares_an_array():
    values = np.array([3.0, 20.0, 100.0])
    assert match_numbers(values, ">= 20").tolist() == [False, True, True]
    assert match_numbers(values, "s< 20").tolist() == [False, False, True]
    assert match_numbers(values, ">= x").tolist() == [False, False, False]
    assert match_numbers(np.array([1.5]), "1.5", are_whole=False).tolist() == [True]


@pytest.mark.shows("S076")
@pytest.mark.parametrize(
    ("requirement", "matching", "other"),
    [
        (">= 5", "5", "4"),
        ("s== 2.1.0", "2.1.0", "2.1"),
        ("<in> gcc", "gcc-4.8.2", "clang"),
        ("<all-in> aes mmx", "['aes', 'mmx', 'sse']", "['aes', 'sse']"),
        ("<or> fpu <or> gpu", "gpu", "tpu"),
    ],
)
def test_each_kind_of_operator_matches_its_example(requirement, matching, other):
    assert (match(matching, requirement), match(other, requirement)) == (True, False)
