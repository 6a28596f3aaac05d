import pytest

from roost.model.evidence.decision import Stage
from roost.scheduler.framework.reasons import bare_reason, refusal_text


def stages(*steps):
    """Return stages of one rule; each step is (before, after, reason)."""
    return [Stage("rule", *step) for step in steps]


@pytest.mark.parametrize(
    ("steps", "text"),
    [
        ([], "0 of 0 hosts: no host is known yet"),
        ([(0, 0, "lack all")], "0 of 0 hosts: no host is known yet"),
        ([(3, 0, "are down")], "0 of 3 hosts: 3 are down"),
        ([(9, 7, "lack memory"), (7, 0, "are down")], "0 of 9 hosts: 7 are down, 2 lack memory"),
        ([(4, 2, "lack memory"), (2, 2, "are down"), (2, 0, "are full")], "0 of 4 hosts: 2 lack memory, 2 are full"),
        ([(12000, 0, "are down")], "0 of 12,000 hosts: 12,000 are down"),
    ],
)
def test_refusal_counts_reasons_with_the_most_common_first(steps, text):
    assert refusal_text(stages(*steps)) == text


def test_refusal_omits_rules_that_refused_no_host():
    assert "idle" not in refusal_text(stages((3, 3, "idle"), (3, 0, "are down")))


def test_refusal_of_many_instances_counts_those_with_room():
    text = refusal_text(stages((2, 0, "are full")), found=1500, requested=2000)
    assert text == "0 of 2 hosts: 2 are full; room for 1,500 of 2,000 instances"
    assert refusal_text([], requested=2) == "0 of 0 hosts: no host is known yet; room for 0 of 2 instances"


@pytest.mark.parametrize(
    ("line", "bare"),
    [
        (
            "0 of 10 hosts: 7 lack 2,048 MiB memory or more, 3 lack trait A",
            "lack 2,048 MiB memory or more, lack trait A",
        ),
        ("0 of 10 hosts: 7 lack trait A, 3 lack 2,048 MiB memory", "lack 2,048 MiB memory, lack trait A"),
        ("0 of 10,000 hosts: 10,000 lack one of A, B", "lack one of A, B"),
        ("0 of 1 host: 1 lack 4 VCPU", "lack 4 VCPU"),
        ("0 of 9 hosts: 9 lack trait A; room for 3 of 1,200 instances", "lack trait A"),
        ("0 of 0 hosts: no host is known yet", "no host is known yet"),
        ("0 of 0 hosts", "no reason given"),
        ("", "no reason given"),
        ("the group has no place left", "the group has no place left"),
    ],
)
def test_bare_reason_has_no_host_counts(line, bare):
    assert bare_reason(line) == bare
