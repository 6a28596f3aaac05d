import json

import pytest

from roost.api.http import Request, Response
from roost.api.outages import Outages
from roost.errors import Conflict, StoreBroken, StoreGone
from roost.placement.write_plan import Plan


class Clock:
    """A clock that a test sets."""

    now_s = 100.0

    def __call__(self):
        """Give its time."""
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
def logged(capfd):
    """Give the lines of the log since the last call, without their times."""

    def logged():
        lines = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
        return [{name: value for name, value in line.items() if name != "time_s"} for line in lines]

    return logged


def begun(requests):
    return {"event": "database_unusable", "request_id": "req-1", "problem": "it is away", "requests": requests}


def test_an_outage_is_a_line_at_its_begin_one_a_minute_and_one_at_its_end(outages, clock, logged):
    for _ in range(1_000):
        outages.record_failure(request(), StoreGone("it is away"))
    assert logged() == [begun(1)]
    clock.now_s += 60
    outages.record_failure(request(), StoreGone("it is away"))
    outages.record_failure(request(), StoreGone("it is away"))
    assert logged() == [begun(1_000)]
    clock.now_s += 5
    outages.record_success(request())
    outages.record_success(request())
    assert logged() == [{"event": "database_usable", "seconds": 65.0, "requests": 1}]


def test_reads_do_not_end_an_outage_of_writes(outages, clock, logged):
    outages.record_failure(request(is_write=True), StoreBroken("it is away"))
    clock.now_s += 7
    outages.record_success(request())
    outages.record_failure(request(is_write=True), StoreBroken("it is away"))
    clock.now_s += 7
    assert outages.note() == "the last write failed 7 s ago; the log says why"
    assert logged() == [begun(1)]
    outages.record_success(request(is_write=True))
    assert outages.note() == ""
    assert [line["event"] for line in logged()] == ["database_usable"]


def test_what_is_no_fault_of_the_database_is_no_outage(outages, logged):
    outages.record_failure(request(is_write=True), Conflict("others were faster"))
    assert (outages.note(), logged()) == ("", [])


@pytest.mark.parametrize(
    ("found", "is_write"),
    [
        (Response(), False),
        (Plan(answer=Response()), False),
        (Plan(answer=Response(), create=lambda _first: ()), True),
    ],
)
def test_a_request_knows_whether_it_writes(outages, found, is_write):
    asked = request()
    assert outages.track(asked, lambda _current: found)(None) is found
    assert asked.is_write == is_write
