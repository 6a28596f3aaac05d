import pytest

from roost.model.decision import Stage
from roost.scheduler.explain import refusal_text


def stages(*steps):
    """Give stages of one rule each: (before, after, reason)."""
    return [Stage("rule", *step) for step in steps]


@pytest.mark.parametrize(
    ("steps", "text"),
    [
        ([], "0 of 0 hosts"),
        ([(0, 0, "lack all")], "0 of 0 hosts"),
        ([(3, 0, "are down")], "0 of 3 hosts: 3 are down"),
        ([(9, 7, "lack memory"), (7, 0, "are down")], "0 of 9 hosts: 7 are down, 2 lack memory"),
        ([(4, 2, "lack memory"), (2, 2, "are down"), (2, 0, "are full")], "0 of 4 hosts: 2 lack memory, 2 are full"),
        ([(12000, 0, "are down")], "0 of 12,000 hosts: 12,000 are down"),
    ],
)
def test_reasons_are_counted_and_the_most_common_comes_first(steps, text):
    assert refusal_text(stages(*steps)) == text


def test_a_rule_that_refused_nobody_is_not_mentioned():
    assert "idle" not in refusal_text(stages((3, 3, "idle"), (3, 0, "are down")))


def test_a_request_for_many_says_how_many_had_room():
    text = refusal_text(stages((2, 0, "are full")), found=1500, wanted=2000)
    assert text == "0 of 2 hosts: 2 are full; room for 1,500 of 2,000 instances"
