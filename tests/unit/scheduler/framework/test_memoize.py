"""Caches of results by the identity of their argument."""

from roost.scheduler.framework import memoize
from roost.scheduler.framework.memoize import Latest, Recent


def _record(calls):
    def double(argument):
        calls.append(argument)
        return argument * 2

    return double


def test_the_latest_result_is_computed_once():
    calls, first, second = [], [1], [2]
    latest = Latest(_record(calls))
    assert [latest(each) for each in (first, first, second, first)] == [[1, 1], [1, 1], [2, 2], [1, 1]]
    assert calls == [first, second, first]


def test_recent_results_are_computed_once_for_each_argument():
    calls, first, second = [], [1], [1]  # equal, but different lists
    recent = Recent(_record(calls))
    assert [recent(each) for each in (first, second, first, second)] == [[1, 1]] * 4
    assert len(calls) == 2


def test_the_number_of_recent_results_has_a_limit(monkeypatch):
    monkeypatch.setattr(memoize, "_RECENT_MAX", 2)
    calls, arguments = [], [[1], [2], [3]]
    recent = Recent(_record(calls))
    assert [recent(each) for each in (*arguments, arguments[0])] == [[1, 1], [2, 2], [3, 3], [1, 1]]
    assert len(calls) == 4
