"""Lists that took long in the serving thread go to the reader process."""

import asyncio
import time

import pytest

from roost.api import slow_lists
from roost.api.asgi import AsgiApplication
from roost.api.http import Admission, Request, Response
from roost.api.slow_lists import SlowLists
from roost.placement.current import Current
from roost.placement.deciding_thread import Serving
from roost.store.memory_store import MemoryStore


def request(query="", route="/things"):
    return Request(method="GET", path=route, query_string=query, headers={}, route=route, work="list")


def spend(seconds):
    """Use processor time."""
    until_s = time.thread_time() + seconds
    while time.thread_time() < until_s:
        pass


def test_list_is_slow_for_all_its_pages_and_for_a_minute(monkeypatch):
    lists = SlowLists()
    lists.measure(request("limit=9"), lambda _current: spend(0.006))(None)
    lists.measure(request("limit=1"), lambda _current: time.sleep(0.02))(None)  # It waited, and did not work.
    slow = [lists.is_slow(request(query)) for query in ("limit=9", "limit=9&cursor=5", "cursor=7&limit=9", "limit=1")]
    assert slow == [True, True, False, False]
    assert not lists.is_slow(request("limit=9", route="/others"))
    monkeypatch.setattr(slow_lists.time, "monotonic", lambda: time.perf_counter() + 1e9)
    assert not lists.is_slow(request("limit=9"))


def test_number_of_remembered_lists_is_limited(monkeypatch):
    monkeypatch.setattr(slow_lists, "_LISTS_MAX", 3)
    lists = SlowLists()
    for number in range(10):
        lists.measure(request(f"name={number}"), lambda _current: spend(0.006))(None)
    assert len(lists._until_s) <= 3
    assert lists.is_slow(request("name=9"))


class Api:
    """An API with one list, which works for a time."""

    path_encoding, route_prefix = "utf-8", ""

    def __init__(self, work_s):
        self.work_s, self.calls = work_s, 0

    def is_open(self, _request):
        """See ``Api``."""
        return True

    def admit(self, request):
        """See ``Api``."""
        request.route, request.work = request.path, "list"
        return Admission(enter=lambda: lambda _current: self._list(request), body_max_bytes=None)

    def _list(self, request):
        self.calls += 1
        until_s = time.thread_time() + self.work_s
        while time.thread_time() < until_s:
            request.check_active()
        return Response(body=b"thread")

    def finish(self, request, response):
        """See ``Api``."""
        return response

    def fail(self, request, error):
        """See ``Api``."""
        raise error


class FakeReader:
    """A reader process that is ready after ``prepare``."""

    def __init__(self, *, is_ready):
        self.is_ready, self.prepared = is_ready, 0

    def prepare(self):
        """See ``Reader``."""
        self.prepared += 1

    async def forward(self, request):
        """See ``Reader``."""
        return Response(body=b"reader")


@pytest.fixture
def serving():
    serving = Serving(Current(MemoryStore()))
    yield serving
    serving.stop()


def ask(application, count):
    """Return the bodies of so many answers."""

    async def run():
        bodies, messages = [], []

        async def receive():
            if not messages:
                await asyncio.Event().wait()  # The client stays.
            return messages.pop()

        async def send(message):
            bodies.append(message.get("body"))

        scope = {
            "type": "http",
            "method": "GET",
            "raw_path": b"/things",
            "query_string": b"",
            "headers": [],
            "scheme": "http",
        }
        for _ in range(count):
            messages.append({"type": "http.request", "body": b"", "more_body": False})
            await application(scope, receive, send)
        return [body.decode() for body in bodies if body is not None]

    return asyncio.run(run())


def test_slow_list_moves_to_the_reader_during_its_first_request(serving):
    api = Api(work_s=1.0)
    application = AsgiApplication(api, serving, reader=FakeReader(is_ready=True))
    assert ask(application, 3) == ["reader"] * 3
    assert api.calls == 1  # It ended after 10 ms, and was not tried again.


def test_fast_list_stays_in_the_thread(serving):
    application = AsgiApplication(Api(work_s=0.0001), serving, reader=FakeReader(is_ready=True))
    assert ask(application, 3) == ["thread"] * 3


def test_slow_list_is_answered_by_the_thread_until_the_reader_is_ready(serving):
    reader = FakeReader(is_ready=False)
    application = AsgiApplication(Api(work_s=0.05), serving, reader=reader)
    assert ask(application, 3) == ["thread"] * 3
    assert reader.prepared == 2  # The first request was not known to be slow.
    reader.is_ready = True
    assert ask(application, 1) == ["reader"]


def test_list_without_a_reader_is_answered_by_the_thread(serving):
    assert ask(AsgiApplication(Api(work_s=0.05), serving), 2) == ["thread"] * 2
