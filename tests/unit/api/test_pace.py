import time

import pytest

from roost.api.pace import Pace
from roost.api.placement.request import Request
from roost.placement.current import Current
from roost.placement.serving import Serving
from roost.store.memory import MemoryStore


@pytest.fixture
def serving():
    serving = Serving(Current(MemoryStore()))
    yield serving
    serving.stop()


def request(query):
    return Request(method="GET", path="/things", query_string=query, headers={}, route="/things")


def test_a_read_that_was_quick_is_answered_at_once_the_next_time(serving):
    pace = Pace()

    def ask(query):
        task = pace.measured(request(query), lambda _current: query)
        at_once = pace.answer_at_once(request(query), task, serving)
        assert serving.run(task) == query
        return at_once

    assert [ask("one"), ask("one"), ask("other"), ask("one")] == [None, "one", None, "one"]


def test_a_read_that_was_slow_is_not(serving):
    pace, slow = Pace(), request("")
    serving.run(pace.measured(slow, lambda _current: time.sleep(0.003)))
    assert pace.answer_at_once(slow, lambda _current: "answer", serving) is None


def test_a_read_that_takes_long_all_at_once_is_given_up_and_can_be_asked_again(serving):
    pace, asked = Pace(), request("")
    serving.run(pace.measured(asked, lambda _current: "quick"))

    def slow(_current):
        until_s = time.perf_counter() + 0.05
        while time.perf_counter() < until_s:
            asked.check_wanted()
        return "slow"

    task = pace.measured(asked, slow)
    assert pace.answer_at_once(asked, task, serving) is None
    assert serving.run(task) == "slow"
    assert pace.answer_at_once(asked, task, serving) is None
