import json

import pytest

from roost.api.http import Request, Response
from roost.api.outages import Outages
from roost.errors import Conflict, StoreBroken, StoreGone
from roost.placement.write_plan import Plan

HEAD = {"time", "level", "logger"}  # of every line


class Clock:
    """A clock that a test sets."""

    now_s = 100.0

    def __call__(self):
        """Return the time."""
        return self.now_s


def request(*, is_write=False):
    return Request(method="PUT", path="/", headers={}, request_id="req-1", is_write=is_write)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def outages(clock):
    return Outages(clock=clock)


@pytest.fixture
def log_lines(capfd):
    """Return a function that returns the log lines since its last call, without times."""

    def log_lines():
        lines = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
        return [{name: value for name, value in line.items() if name not in HEAD} for line in lines]

    return log_lines


def outage_line(requests):
    return {"event": "database_unusable", "request_id": "req-1", "problem": "it is away", "requests": requests}


def test_outage_is_logged_at_its_start_each_minute_and_at_its_end(outages, clock, log_lines):
    for _ in range(1_000):
        outages.record_failure(request(), StoreGone("it is away"))
    assert log_lines() == [outage_line(1)]
    clock.now_s += 60
    outages.record_failure(request(), StoreGone("it is away"))
    outages.record_failure(request(), StoreGone("it is away"))
    assert log_lines() == [outage_line(1_000)]
    clock.now_s += 5
    outages.record_success(request())
    outages.record_success(request())
    assert log_lines() == [{"event": "database_usable", "seconds": 65.0, "requests": 1}]


def test_reads_do_not_end_an_outage_of_writes(outages, clock, log_lines):
    outages.record_failure(request(is_write=True), StoreBroken("it is away"))
    clock.now_s += 7
    outages.record_success(request())
    outages.record_failure(request(is_write=True), StoreBroken("it is away"))
    clock.now_s += 7
    assert outages.note() == "the last write failed 7 s ago; see the log"
    assert log_lines() == [outage_line(1)]
    outages.record_success(request(is_write=True))
    assert outages.note() == ""
    assert [line["event"] for line in log_lines()] == ["database_usable"]


def test_conflict_is_not_an_outage(outages, log_lines):
    outages.record_failure(request(is_write=True), Conflict("others were faster"))
    assert (outages.note(), log_lines()) == ("", [])


@pytest.mark.parametrize(
    ("result", "is_write"),
    [
        (Response(), False),
        (Plan(answer=Response()), False),
        (Plan(answer=Response(), create=lambda _first: ()), True),
    ],
)
def test_plan_with_writes_marks_the_request_as_a_write(outages, result, is_write):
    tracked = request()
    assert outages.track(tracked, lambda _current: result)(None) is result
    assert tracked.is_write == is_write
