"""The comparison of acknowledged writes with the tables finds each planted fault."""

import pytest

from tests.ha.record import ANY, Record, classify, find_decision_problems, find_problems

ONE, OTHER, BOTH = {"a": {"VCPU": 1}}, {"b": {"VCPU": 1}}, {"a": {"VCPU": 1}, "b": {"VCPU": 1}}
MORE = {"a": {"VCPU": 2}}


def record(*writes, is_open=False):
    """Return the record of writes of consumer c; the last one may be without an answer."""
    found = Record()
    for at, holding in enumerate(writes):
        found.begin("c", holding)
        if not (is_open and at == len(writes) - 1):
            found.acknowledge("c", holding, at_s=float(at))
    return found


@pytest.mark.parametrize(
    ("possible", "actual", "kind"),
    [
        ((ONE,), ONE, None),
        (({},), {}, None),
        ((ONE,), {}, "lost"),
        ((ONE, {}), {}, None),
        ((ONE, {}), ONE, None),
        (({}, ONE), ONE, None),
        (({}, ANY), OTHER, None),
        (({}, ANY), {}, None),
        (({}, ANY), BOTH, "doubled"),
        ((ONE, OTHER), {}, "lost"),
        (({},), ONE, "resurrected"),
        ((ONE,), BOTH, "doubled"),
        ((ONE,), MORE, "doubled"),
        ((ONE,), OTHER, "different"),
        ((MORE,), ONE, "different"),
        ((ONE, {}), OTHER, "different"),
    ],
)
def test_holding_is_classified(possible, actual, kind):
    assert classify(possible, actual) == kind


def test_only_the_last_acknowledged_write_counts():
    found = record(ONE, OTHER, {})
    assert find_problems([found], {}) == []
    assert [each.kind for each in find_problems([found], {"c": OTHER})] == ["resurrected"]
    assert found.acknowledged == 3
    assert found.unknown == 0


def test_write_without_an_answer_may_or_may_not_be_there():
    found = record(ONE, OTHER, is_open=True)
    assert [find_problems([found], {"c": holding}) for holding in (ONE, OTHER)] == [[], []]
    assert [each.kind for each in find_problems([found], {})] == ["lost"]
    assert found.unknown == 1


def test_problem_names_the_time_of_the_acknowledgement():
    (problem,) = find_problems([record(ONE, OTHER)], {})
    assert "c has {} instead of [{'b': {'VCPU': 1}}], acknowledged at 1.00 s" in problem.text


def test_consumer_that_no_client_wrote_is_a_problem():
    problems = find_problems([record(ONE)], {"c": ONE, "stray": OTHER})
    assert [(each.kind, "stray" in each.text) for each in problems] == [("different", True)]


def test_each_acknowledged_decision_is_stored_once():
    found = Record()
    found.begin("c", None)
    found.acknowledge("c", ONE, at_s=0.0, decision="first")
    assert find_decision_problems([found], ["first"]) == []
    assert [each.kind for each in find_decision_problems([found], [])] == ["lost"]
    assert [each.kind for each in find_decision_problems([found], ["first", "second"])] == ["doubled"]
    assert [each.kind for each in find_decision_problems([found], ["first", "first"])] == ["doubled"]
    found.begin("d", None)
    assert find_decision_problems([found], ["first", "second"]) == []
