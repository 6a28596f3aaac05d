"""Polls that wait for orders: in process, over sockets and between processes."""

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
from roost.client.server_list import ServerList
from roost.errors import AccessDenied, NotFound
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
from tests.support.servers.in_process_api import roost_api
from tests.support.servers.servers import serve

ADMIN = {"x-auth-token": "admin"}


class WaitingClients:
    """The /v1 API as uvicorn calls it, with clients that wait and may disconnect."""

    def __init__(self, own):
        self.own = own
        self._asgi = AsgiApplication(own.application, own.serving, settings=Settings())

    async def poll(self, body, *, disconnected=None):
        """Return the status and body of the response, or None if the client disconnected before."""
        data, messages_sent = json.dumps(body).encode(), []
        incoming = [{"type": "http.request", "body": data, "more_body": False}]

        async def receive():
            if incoming:
                return incoming.pop()
            await (disconnected or asyncio.Event()).wait()
            return {"type": "http.disconnect"}

        async def send(message):
            messages_sent.append(message)

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
        await self._asgi(scope, receive, send)
        return None if len(messages_sent) < 2 else (messages_sent[0]["status"], json.loads(messages_sent[1]["body"]))

    async def wait_for_polls(self, count=1):
        """Wait until this number of hosts has waiting polls."""
        while len(self.own.agents.wakeups.keys) != count:  # noqa: ASYNC110  # there is no event for it
            await asyncio.sleep(0.001)

    async def commit(self, *rows):
        """Commit work rows in a plan, as a conductor does."""
        plan = Plan(answer=None, work=tuple(map(Put, rows)))
        await asyncio.to_thread(self.own.serving.run, lambda _current: plan)


@pytest.fixture
def clients(own):
    for host in ("host-0", "host-1"):
        assert own.put(f"/agents/{host}", registration()).status == 200
    commit_rows(own, operation(1))
    return WaitingClients(own)


def test_poll_returns_when_its_host_gets_an_order(clients):
    async def play():
        polls = [asyncio.create_task(clients.poll(poll_body(host=host, wait_s=20))) for host in ("HOST-0", "host-1")]
        await clients.wait_for_polls(2)
        await clients.commit(order(1, host="host-0", action="destroy", body=ORDER))
        status, body = await polls[0]
        assert (status, [each["id"] for each in body["orders"]]) == (200, [1])
        assert not polls[1].done()
        await clients.commit(order(2, host="host-1", action="destroy", body=ORDER))
        assert [each["id"] for each in (await polls[1])[1]["orders"]] == [2]
        await clients.wait_for_polls(0)

    asyncio.run(play())


def test_order_committed_just_before_the_poll_waits_is_found(clients):
    """The order is committed between the poll's first look and its wait."""
    agents = clients.own.agents
    mark = agents.wakeups.mark

    async def play():
        await clients.commit(order(1, host="host-0", action="destroy", body=ORDER))
        waiter = agents.wakeups.open(["host-0"], mark=mark)
        reply = await agents.wait_for_work(msgspec.convert(poll_body(wait_s=20), Poll), waiter)
        agents.wakeups.leave(waiter)
        return reply

    assert [each.id for each in asyncio.run(play()).orders] == [1]


def test_poll_ends_empty_on_timeout_disconnect_or_shutdown(clients):
    async def play():
        assert (await clients.poll(poll_body(wait_s=0.01)))[1]["orders"] == []
        disconnected = asyncio.Event()
        aborted = asyncio.create_task(clients.poll(poll_body(wait_s=20), disconnected=disconnected))
        await clients.wait_for_polls()
        disconnected.set()
        assert await aborted is None
        await clients.wait_for_polls(0)
        interrupted = asyncio.create_task(clients.poll(poll_body(wait_s=20)))
        await clients.wait_for_polls()
        clients.own.agents.wakeups.close()
        assert (await interrupted)[1]["orders"] == []
        status, problem = await clients.poll(poll_body(wait_s=20))
        assert (status, problem["detail"]) == (503, "the server is stopping; try again")

    asyncio.run(play())


def test_agents_beyond_the_limit_of_waiting_polls_get_503(clients):
    async def play():
        waiters = [clients.own.agents.wakeups.open([f"h{number}" for number in range(100)], mark=0)]
        status, problem = await clients.poll(poll_body(wait_s=20))
        assert (status, problem["detail"]) == (
            503,
            "100 agents wait for orders (limit placement.agents_max); try again",
        )
        clients.own.agents.wakeups.leave(waiters[0])

    asyncio.run(play())


def test_waiting_poll_returns_a_withdrawn_order(clients):
    async def play():
        row = order(1, host="host-0", action="destroy", body=ORDER, state="taken")
        await clients.commit(row)
        poll = asyncio.create_task(clients.poll(poll_body(wait_s=20, held=[1])))
        await clients.wait_for_polls()
        withdrawal = Put(msgspec.structs.replace(row, state="withdrawn", version=2), expected=1)
        await asyncio.to_thread(clients.own.serving.run, lambda _current: Plan(answer=None, work=(withdrawal,)))
        assert (await poll)[1]["withdrawn"] == [1]

    asyncio.run(play())


def serve_product(folder, *words):
    return serve(*words, noun="up", folder=folder)


def client(server):
    return closing(
        HttpServer(
            ServerList([server.address], setting="--server"), token="admin", draw=lambda: 0.5, pause=lambda _: False
        )
    )


def test_agent_registers_reports_polls_and_is_superseded(tmp_path):
    root = uuid_of("root")
    with serve_product(tmp_path) as server, client(server) as agent:
        creation = server.ask("POST", "/placement/resource_providers", {"name": "h", "uuid": root})
        assert creation[0] == 200
        assert agent.register("h", Registration(run=RUN, driver="fake", nodes=())).fence == 1
        agent.report("h", "h", HostFacts(hypervisor_type="fake"))
        poll = Poll(agents=(PollingAgent(host="h", run=RUN, fence=1),), wait_s=0.05)
        assert agent.poll(poll).orders == ()
        with pytest.raises(NotFound, match="no such order: 7"):
            agent.answer(7, OrderAnswer(run=RUN, outcome="ok"))
        replies = []
        patient = msgspec.structs.replace(poll, wait_s=25.0)
        waiter = threading.Thread(target=lambda: replies.append(agent.poll(patient)))
        waiter.start()
        agent.register("h", Registration(run=uuid_of("next"), driver="fake", nodes=()))
        waiter.join()
        assert replies[0].superseded == ("h",)
        agent.deregister("h")
        shown = server.ask("GET", "/v1/agents/h", headers=ADMIN)[2]
        assert (shown["state"], shown["nodes"]) == ("gone", ["h"])
        assert server.ask("GET", "/v1/hosts/h", headers=ADMIN)[2]["up"] is False


def test_waiting_poll_ends_when_the_server_stops(tmp_path):
    with serve_product(tmp_path) as server, client(server) as agent:
        agent.register("h", Registration(run=RUN, driver="fake", nodes=()))
        replies = []
        poll = Poll(agents=(PollingAgent(host="h", run=RUN, fence=1),), wait_s=25.0)
        waiter = threading.Thread(target=lambda: replies.append(agent.poll(poll)))
        waiter.start()
        while b"roost_agents_waiting 1.0" not in server.ask("GET", "/metrics", headers={})[2]:
            time.sleep(0.01)
        assert server.stop() == 0
        waiter.join()
        assert [each.orders for each in replies] == [()]


def test_token_of_another_host_stops_the_agent(tmp_path):
    text, stored = new_token("a", hosts=("a",))
    (tmp_path / "tokens.toml").write_text(as_toml(stored))
    settings = 'auth_strategy = "tokens"\ntokens_file = "tokens.toml"'
    with serve(noun="up", folder=tmp_path, settings=settings) as server:
        for token, sentence in ((text, "this token may only touch host a, not b"), ("x", "authentication is required")):
            agent = HttpServer(
                ServerList([server.address], setting="--server"), token=token, draw=lambda: 0.5, pause=lambda _: False
            )
            with closing(agent), pytest.raises(AccessDenied, match=sentence):
                agent.register("b", Registration(run=RUN, driver="fake", nodes=()))


def test_order_committed_by_another_process_is_found(postgres_url, tmp_path):
    with roost_api(fleet(1, vcpus=4), url=postgres_url):
        pass
    with serve_product(tmp_path, "--database", postgres_url) as server, client(server) as agent:
        agent.register("host-0", Registration(run=RUN, driver="fake", nodes=()))
        replies = []
        poll = Poll(agents=(PollingAgent(host="host-0", run=RUN, fence=1),), wait_s=25.0)
        waiter = threading.Thread(target=lambda: replies.append(agent.poll(poll)))
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
        assert [each.id for each in replies[0].orders] == [1]
