import pytest

from roost.model.evidence.decision import Decision, Stage
from roost.model.flavor import Flavor
from roost.model.request import Request
from roost.scheduler.framework.reasons import bare_reason, classify_reason, classify_refusal, refusal_text
from tests.support.fleets.products import fleet
from tests.support.fleets.worlds import roost_on


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
        (
            [(2, 1, "lack 1 VGPU or more"), (1, 0, "are ignored, or hold a member")],
            "0 of 2 hosts: 1 lacks 1 VGPU or more, 1 is ignored, or holds a member",
        ),
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
        ("0 of 2 hosts: 1 lacks 4 VCPU, 1 is ignored, or holds a member", "are ignored, or hold a member, lack 4 VCPU"),
        ("0 of 0 hosts", "no reason given"),
        ("", "no reason given"),
        ("the group has no place left", "the group has no place left"),
    ],
)
def test_bare_reason_has_no_host_counts(line, bare):
    assert bare_reason(line) == bare


def refused(*found):
    """Return a refused decision with these stages."""
    return Decision(uuid="", decided_at_s=0.0, outcome="refused", request_id=0, stages=list(found))


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ((), ("none", "no_hosts")),
        ((Stage("search", 0, 0, "lack 1 VCPU or more"),), ("none", "no_hosts")),
        ((Stage("search", 4, 4, "lack 1 VCPU or more"),), ("none", "conflict")),
        ((Stage("search", 9, 8, "lack trait A"), Stage("compute", 8, 0, "are down")), ("compute", "rule")),
        ((Stage("search", 9, 1, "lack trait A"), Stage("compute", 1, 0, "are down")), ("search", "trait")),
    ],
)
def test_refusal_is_classified_by_the_rule_that_rejected_the_most_hosts(found, expected):
    assert classify_refusal(refused(*found)) == expected


@pytest.mark.parametrize(
    ("query", "subjects"),
    [
        ({"resources:VCPU": "9000"}, {"amount"}),
        ({"resources:CUSTOM_GOLD": "1"}, {"class"}),
        ({"trait:CUSTOM_A": "required"}, {"trait"}),
        ({"trait:HW_CPU_X86_AVX2": "forbidden"}, {"trait", "amount"}),
        ({"resources1:VCPU": "1", "resources2:VCPU": "1", "group_policy": "isolate"}, {"group"}),
    ],
)
def test_class_of_each_search_reason_is_the_subject_of_its_check(query, subjects):
    with roost_on() as roost:
        roost.install(fleet(3, vcpus=4))
        shape = roost.scheduler.shape(Request(flavor=Flavor(name="f", vcpus=1, memory_mb=1, extra_specs=query)))
        checks = zip(shape.verdicts.checks(), shape.verdicts.subjects(), strict=True)
        classes = {subject: classify_reason(Stage(rule, 1, 0, reason)) for (rule, reason), subject in checks}
    searched = {subject: found for subject, found in classes.items() if subject not in {"rule", "hosts", "search"}}
    # Amounts of a suffixed group are a class of their own, because one provider must have them together.
    assert {found if found == "group" else subject for subject, found in searched.items()} == subjects
    assert all(found in {subject, "group"} for subject, found in searched.items())
