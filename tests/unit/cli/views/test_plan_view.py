import pytest

from roost.cli.views.plan_view import balance_lines, consolidation_lines, drain_lines

SPREAD = {"deviation": 0.2, "mean": 0.5, "fullest": 0.8, "emptiest": 0.1}
MOVE = {
    "number": 1,
    "instance": "web",
    "source": "a",
    "target": "b",
    "how": "live_migrate",
    "memory_mb": 16,
    "after": [],
    "reason": "empties a",
}
EMPTIED = {"host": "a", "node": "a", "moves": 1, "memory_mb": 16}
BALANCE = {"moves": [MOVE], "before": SPREAD, "after": SPREAD, "resource_class": "VCPU", "hosts": 2}
CONSOLIDATION = {
    "moves": [MOVE],
    "emptied": [EMPTIED],
    "at_least": 1,
    "at_most": 2,
    "wanted": None,
    "empty": 0,
    "hosts": 3,
}
DRAIN = {"moves": [MOVE], "emptied": [EMPTIED], "staying": [], "extra": 0, "hosts": 1}


@pytest.mark.parametrize(
    ("lines_of", "answer"), [(balance_lines, BALANCE), (consolidation_lines, CONSOLIDATION), (drain_lines, DRAIN)]
)
def test_last_line_names_the_limit_of_the_search(lines_of, answer):
    complete = lines_of({**answer, "is_cut": False, "is_over_budget": False})
    cut = lines_of({**answer, "is_cut": True, "is_over_budget": False})
    late = lines_of({**answer, "is_cut": True, "is_over_budget": True})
    assert cut == [*complete, "the search ended at its limit: a better plan may exist"]
    assert late[:-1] == complete
    assert late[-1].startswith("the search ended at the time budget of the server (question_budget_s)")
