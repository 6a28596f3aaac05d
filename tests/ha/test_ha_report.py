"""A result is a problem if something is lost or too late."""

import io

import msgspec
import pytest
from rich.console import Console

from tests.ha.client import Figures
from tests.ha.cluster import Target
from tests.ha.report import Result, details_of, problems_of, table_of

GOOD = Result(
    cluster="patroni",
    fault="switchover",
    target=Target(outage_s=2, is_silent=True),
    outage_s=1.5,
    database_s=1.4,
    longest_wait_s=1.4,
    acknowledged=1000,
)


def test_result_within_its_target_is_good():
    assert problems_of(GOOD) == []
    assert details_of([GOOD]) == []


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"lost": 1}, "1 acknowledged writes lost"),
        ({"doubled": 2}, "2 writes doubled"),
        ({"resurrected": 1}, "1 releases undone"),
        ({"different": 1}, "1 consumers different"),
        ({"columns": 3}, "3 differences in columns"),
        ({"audit": 1}, "1 findings of the audit"),
        ({"wrong_answers": 1}, "1 wrong answers"),
        ({"outage_s": 2.1, "database_s": 2.0}, "an outage of 2.1 s, more than 2 s (of the database itself: 2.0 s)"),
        ({"errors": {"503": 2}}, "2 errors instead of none"),
        ({"acknowledged": 0}, "no write was acknowledged"),
        ({"recovery": "it has no leader"}, "it has no leader"),
    ],
)
def test_result_names_its_problem(change, problem):
    result = msgspec.structs.replace(GOOD, **change, details=["the first"])
    assert problems_of(result) == [f"patroni, switchover: {problem}"]
    assert details_of([result]) == ["patroni, switchover: the first"]


@pytest.mark.parametrize(("is_silent", "count"), [(True, 1), (False, 0)])
def test_outage_without_errors_is_at_most_half_a_second_longer_than_that_of_the_database(is_silent, count):
    target = Target(outage_s=2, is_silent=is_silent)
    result = msgspec.structs.replace(GOOD, target=target, database_s=1.0, outage_s=1.4)
    assert problems_of(result) == []
    problems = problems_of(msgspec.structs.replace(result, outage_s=1.7))
    assert problems == ["patroni, switchover: Roost adds 0.7 s to the outage of the database"] * count


def test_errors_are_allowed_if_the_target_has_them():
    result = msgspec.structs.replace(GOOD, errors={"503": 2}, target=Target(outage_s=2))
    assert problems_of(result) == []


def test_fault_that_is_not_possible_is_named_with_its_reason():
    result = Result(cluster="patroni", fault="cut", target=Target(outage_s=30), impossible="packet filters need root")
    assert problems_of(result) == []
    console = Console(width=230, file=io.StringIO())
    console.print(table_of([GOOD, result]))
    text = console.file.getvalue()
    assert "not possible here: packet filters need root" in text
    assert "2, no error" in text


def test_outage_is_the_time_between_two_successes(monkeypatch):
    times = iter([0.0, 1.0, 2.0, 9.0, 9.5, 10.0])
    monkeypatch.setattr("tests.ha.client.time.monotonic", lambda: next(times))
    figures = Figures()
    for began_s, error in ((0.5, ""), (1.5, "503"), (2.5, "503"), (9.1, ""), (9.6, "")):
        figures.add(began_s, error)
    assert (figures.outage_s, figures.longest_wait_s, figures.errors) == (8.5, 6.5, {"503": 2})
