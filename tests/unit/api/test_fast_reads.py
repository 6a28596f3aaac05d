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


def test_fast_read_is_answered_at_once_the_next_time(serving):
    fast_reads = FastReads()

    def ask(query):
        task = fast_reads.measure(request(query), lambda _current: query)
        at_once = fast_reads.answer_at_once(request(query), task, serving)
        assert serving.run(task) == query
        return at_once

    assert [ask("one"), ask("one"), ask("other"), ask("one")] == [None, "one", None, "one"]


def test_slow_read_is_not_answered_at_once(serving):
    fast_reads, slow = FastReads(), request("")
    serving.run(fast_reads.measure(slow, lambda _current: time.sleep(0.003)))
    assert fast_reads.answer_at_once(slow, lambda _current: "answer", serving) is None


def test_fast_read_that_becomes_slow_is_aborted_and_can_be_repeated(serving):
    fast_reads, read = FastReads(), request("")
    serving.run(fast_reads.measure(read, lambda _current: "quick"))

    def slow(_current):
        until_s = time.perf_counter() + 0.05
        while time.perf_counter() < until_s:
            read.check_active()
        return "slow"

    task = fast_reads.measure(read, slow)
    assert fast_reads.answer_at_once(read, task, serving) is None
    assert serving.run(task) == "slow"
    assert fast_reads.answer_at_once(read, task, serving) is None


def test_fault_on_the_event_loop_is_counted(serving):
    fast_reads, read = FastReads(), request("")
    serving.run(fast_reads.measure(read, lambda _current: "quick"))
    before = metrics.FAULTS._value.get()
    with pytest.raises(ZeroDivisionError):
        fast_reads.answer_at_once(read, lambda _current: 1 / 0, serving)
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
def test_unbounded_listing_can_be_aborted(url):
    columns = Columns(state_of({"p": Node(stocks={"VCPU": Stock(4, used=1)})}))
    path, _, query = url.partition("?")
    methods, parameters = find(path)
    read = Request(
        method="GET",
        path=path,
        query_string=query,
        headers={},
        parameters=parameters,
        version=Version(1, 37),
        until_s=0.0,
    )
    with pytest.raises(TooSlow):
        methods["GET"].handler(read, columns.current)
