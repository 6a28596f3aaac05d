"""Polls that wait: on the loop, over sockets, and between processes."""

import asyncio
import json
import threading
import time
from contextlib import closing

import msgspec
import pytest

from roost.api.access.authentication import as_toml, new_token
from roost.api.asgi import ABORT, AsgiApplication
from roost.client.agent_server import HttpServer
from roost.errors import BadSettings, NotFound
from roost.model.host import HostFacts
from roost.model.settings.placement_settings import Placement as Settings
from roost.model.settings.roost_settings import Store
from roost.model.work.orders import OrderAnswer, Poll, PollingAgent, Registration
from roost.model.work.work_rows import Put
from roost.model.writes import Item
from roost.placement.write_plan import Plan
from roost.simulator.stable_uuids import uuid_of
from roost.store.backends import open_store
from tests.api.agents import ORDER, RUN, commit_rows, poll_body, registration
from tests.support.conductors.work_rows import operation, order
from tests.support.fleets.products import fleet
from tests.support.servers.in_process_api import asking_own
from tests.support.servers.servers import serve

ADMIN = {"x-auth-token": "admin"}


class Waiting:
    """Roost's own API as uvicorn calls it, by clients that wait, and may leave."""

    def __init__(self, own):
        self.own = own
        self._edge = AsgiApplication(own.application, own.serving, settings=Settings())

    async def poll(self, body, *, left=None):
        """Return status and body of the answer; None: the client left before."""
        data, sent = json.dumps(body).encode(), []
        incoming = [{"type": "http.request", "body": data, "more_body": False}]

        async def receive():
            if incoming:
                return incoming.pop()
            await (left or asyncio.Event()).wait()
            return {"type": "http.disconnect"}

        async def send(message):
            sent.append(message)

        scope = {
            "type": "http",
            "method": "POST",
            "raw_path": b"/orders/poll",
            "path": "/orders/poll",
            "query_string": b"",
            "scheme": "http",
            "headers": [(b"x-auth-token", b"admin"), (b"content-type", b"application/json")],
            "extensions": {ABORT: {"narrow": lambda: None, "abort": lambda: None}},
        }
        await self._edge(scope, receive, send)
        return None if len(sent) < 2 else (sent[0]["status"], json.loads(sent[1]["body"]))

    async def waits(self, count=1):
        """Come back when so many hosts are waited for."""
        while len(self.own.agents.wakeups.keys) != count:  # noqa: ASYNC110  # it is told to nobody
            await asyncio.sleep(0.001)

    async def commit(self, *rows):
        """Commit rows of work as a conductor does: as a plan."""
        plan = Plan(answer=None, work=tuple(map(Put, rows)))
        await asyncio.to_thread(self.own.serving.run, lambda _current: plan)


@pytest.fixture
def waiting(own):
    for host in ("host-0", "host-1"):
        assert own.put(f"/agents/{host}", registration()).status == 200
    commit_rows(own, operation(1))
    return Waiting(own)


def test_a_poll_is_answered_when_there_is_an_order_for_its_host(waiting):
    async def play():
        polls = [asyncio.create_task(waiting.poll(poll_body(host=host, wait_s=20))) for host in ("HOST-0", "host-1")]
        await waiting.waits(2)
        await waiting.commit(order(1, host="host-0", action="destroy", body=ORDER))
        status, told = await polls[0]
        assert (status, [each["id"] for each in told["orders"]]) == (200, [1])
        assert not polls[1].done()
        await waiting.commit(order(2, host="host-1", action="destroy", body=ORDER))
        assert [each["id"] for each in (await polls[1])[1]["orders"]] == [2]
        await waiting.waits(0)

    asyncio.run(play())


def test_an_order_that_comes_while_a_poll_begins_is_not_missed(waiting):
    """It is committed after the poll has looked, and before it waits."""
    agents = waiting.own.agents
    mark = agents.wakeups.mark

    async def play():
        await waiting.commit(order(1, host="host-0", action="destroy", body=ORDER))
        waiter = agents.wakeups.open(["host-0"], mark=mark)
        found = await agents.wait_for_work(msgspec.convert(poll_body(wait_s=20), Poll), waiter)
        agents.wakeups.leave(waiter)
        return found

    assert [each.id for each in asyncio.run(play()).orders] == [1]


def test_a_poll_ends_empty_when_its_time_is_up_or_the_server_stops_and_with_its_client(waiting):
    async def play():
        assert (await waiting.poll(poll_body(wait_s=0.01)))[1]["orders"] == []
        left = asyncio.Event()
        gone = asyncio.create_task(waiting.poll(poll_body(wait_s=20), left=left))
        await waiting.waits()
        left.set()
        assert await gone is None
        await waiting.waits(0)
        stopped = asyncio.create_task(waiting.poll(poll_body(wait_s=20)))
        await waiting.waits()
        waiting.own.agents.wakeups.close()
        assert (await stopped)[1]["orders"] == []
        status, problem = await waiting.poll(poll_body(wait_s=20))
        assert (status, problem["detail"]) == (503, "the server is stopping; try again")

    asyncio.run(play())


def test_more_agents_than_may_wait_are_told_to_come_back(waiting):
    async def play():
        waiters = [waiting.own.agents.wakeups.open([f"h{number}" for number in range(100)], mark=0)]
        status, problem = await waiting.poll(poll_body(wait_s=20))
        assert (status, problem["detail"]) == (
            503,
            "100 agents wait for orders (limit placement.agents_max); try again",
        )
        waiting.own.agents.wakeups.leave(waiters[0])

    asyncio.run(play())


def test_a_poll_that_waits_hears_that_its_order_was_withdrawn(waiting):
    async def play():
        row = order(1, host="host-0", action="destroy", body=ORDER, state="taken")
        await waiting.commit(row)
        poll = asyncio.create_task(waiting.poll(poll_body(wait_s=20, held=[1])))
        await waiting.waits()
        over = Put(msgspec.structs.replace(row, state="withdrawn", version=2), expected=1)
        await asyncio.to_thread(waiting.own.serving.run, lambda _current: Plan(answer=None, work=(over,)))
        assert (await poll)[1]["withdrawn"] == [1]

    asyncio.run(play())


def served(folder, *words):
    return serve(*words, noun="up", folder=folder)


def client(server):
    return closing(HttpServer(server.address, token="admin", draw=lambda: 0.5, pause=lambda _: False))


def test_an_agent_lives_with_a_real_server_and_hears_at_once_that_another_run_took_over(tmp_path):
    root = uuid_of("root")
    with served(tmp_path) as server, client(server) as agent:
        made = server.ask("POST", "/placement/resource_providers", {"name": "h", "uuid": root})
        assert made[0] == 200
        assert agent.register("h", Registration(run=RUN, driver="fake", nodes=())).fence == 1
        agent.report("h", "h", HostFacts(hypervisor_type="fake"))
        poll = Poll(agents=(PollingAgent(host="h", run=RUN, fence=1),), wait_s=0.05)
        assert agent.poll(poll).orders == ()
        with pytest.raises(NotFound, match="no such order: 7"):
            agent.answer(7, OrderAnswer(run=RUN, outcome="ok"))
        told = []
        patient = msgspec.structs.replace(poll, wait_s=25.0)
        waiter = threading.Thread(target=lambda: told.append(agent.poll(patient)))
        waiter.start()
        agent.register("h", Registration(run=uuid_of("next"), driver="fake", nodes=()))
        waiter.join()
        assert told[0].superseded == ("h",)
        agent.deregister("h")
        shown = server.ask("GET", "/v1/agents/h", headers=ADMIN)[2]
        assert (shown["state"], shown["nodes"]) == ("gone", ["h"])
        assert server.ask("GET", "/v1/hosts/h", headers=ADMIN)[2]["up"] is False


def test_a_real_server_that_stops_lets_polls_end(tmp_path):
    with served(tmp_path) as server, client(server) as agent:
        agent.register("h", Registration(run=RUN, driver="fake", nodes=()))
        told = []
        poll = Poll(agents=(PollingAgent(host="h", run=RUN, fence=1),), wait_s=25.0)
        waiter = threading.Thread(target=lambda: told.append(agent.poll(poll)))
        waiter.start()
        while b"roost_agents_waiting 1.0" not in server.ask("GET", "/metrics", headers={})[2]:
            time.sleep(0.01)
        assert server.stop() == 0
        waiter.join()
        assert [each.orders for each in told] == [()]


def test_a_token_of_another_host_ends_an_agent(tmp_path):
    text, kept = new_token("a", hosts=("a",))
    (tmp_path / "tokens.toml").write_text(as_toml(kept))
    settings = 'auth_strategy = "tokens"\ntokens_file = "tokens.toml"'
    with serve(noun="up", folder=tmp_path, settings=settings) as server:
        for token, sentence in ((text, "this token may only touch host a, not b"), ("x", "authentication is required")):
            agent = HttpServer(server.address, token=token, draw=lambda: 0.5, pause=lambda _: False)
            with closing(agent), pytest.raises(BadSettings, match=sentence):
                agent.register("b", Registration(run=RUN, driver="fake", nodes=()))


def test_an_order_that_another_process_commits_is_found(postgres_url, tmp_path):
    with asking_own(fleet(1, vcpus=4), url=postgres_url):
        pass
    with served(tmp_path, "--database", postgres_url) as server, client(server) as agent:
        agent.register("host-0", Registration(run=RUN, driver="fake", nodes=()))
        told = []
        poll = Poll(agents=(PollingAgent(host="host-0", run=RUN, fence=1),), wait_s=25.0)
        waiter = threading.Thread(target=lambda: told.append(agent.poll(poll)))
        waiter.start()
        store = open_store(postgres_url, settings=Store())
        try:
            for _ in store.load().writes:
                pass
            rows = operation(1), order(1, host="host-0", action="destroy", body=ORDER)
            assert store.commit([Item(writes=(), work=tuple(map(Put, rows)))]).refusals == [None]
        finally:
            store.close()
        waiter.join()
        assert [each.id for each in told[0].orders] == [1]
