import time

import pytest

from roost.api.fast_reads import FastReads
from roost.api.http import Request, TooSlow
from roost.api.placement.routes import find
from roost.model.placement.microversions import Version
from roost.observe import metrics
from roost.placement.current import Current
from roost.placement.deciding_thread import Serving
from roost.store.memory_store import MemoryStore
from tests.reference.candidates import Node, Stock
from tests.support.fleets.forests import state_of, uuid_of
from tests.support.servers.candidate_urls import Columns


@pytest.fixture
def serving():
    serving = Serving(Current(MemoryStore()))
    yield serving
    serving.stop()


def request(query):
    return Request(method="GET", path="/things", query_string=query, headers={}, route="/things")


def test_a_read_that_was_quick_is_answered_at_once_the_next_time(serving):
    pace = FastReads()

    def ask(query):
        task = pace.measure(request(query), lambda _current: query)
        at_once = pace.answer_at_once(request(query), task, serving)
        assert serving.run(task) == query
        return at_once

    assert [ask("one"), ask("one"), ask("other"), ask("one")] == [None, "one", None, "one"]


def test_a_read_that_was_slow_is_not(serving):
    pace, slow = FastReads(), request("")
    serving.run(pace.measure(slow, lambda _current: time.sleep(0.003)))
    assert pace.answer_at_once(slow, lambda _current: "answer", serving) is None


def test_a_read_that_takes_long_all_at_once_is_given_up_and_can_be_asked_again(serving):
    pace, asked = FastReads(), request("")
    serving.run(pace.measure(asked, lambda _current: "quick"))

    def slow(_current):
        until_s = time.perf_counter() + 0.05
        while time.perf_counter() < until_s:
            asked.check_active()
        return "slow"

    task = pace.measure(asked, slow)
    assert pace.answer_at_once(asked, task, serving) is None
    assert serving.run(task) == "slow"
    assert pace.answer_at_once(asked, task, serving) is None


def test_a_fault_on_the_loop_is_counted_as_one_in_the_thread_is(serving):
    pace, asked = FastReads(), request("")
    serving.run(pace.measure(asked, lambda _current: "quick"))
    before = metrics.FAULTS._value.get()
    with pytest.raises(ZeroDivisionError):
        pace.answer_at_once(asked, lambda _current: 1 / 0, serving)
    assert metrics.FAULTS._value.get() == before + 1
    assert serving.answer_at_once(lambda _current: "free again") == "free again"


@pytest.mark.parametrize(
    "url",
    [
        "/resource_providers?",
        f"/resource_providers/{uuid_of('p')}/allocations?",
        "/usages?project_id=p",
        "/allocation_candidates?resources=VCPU:1",
    ],
)
def test_what_shows_any_number_of_things_can_be_given_up(url):
    columns = Columns(state_of({"p": Node(stocks={"VCPU": Stock(4, used=1)})}))
    path, _, query = url.partition("?")
    methods, parameters = find(path)
    asked = Request(
        method="GET",
        path=path,
        query_string=query,
        headers={},
        parameters=parameters,
        version=Version(1, 37),
        until_s=0.0,
    )
    with pytest.raises(TooSlow):
        methods["GET"].handler(asked, columns.current)
