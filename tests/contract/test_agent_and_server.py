"""The agent of a host and the server that it asks, both as they are, over HTTP."""

import asyncio
import threading
from contextlib import contextmanager

import msgspec
import pytest

from roost.api.asgi import AsgiApplication
from roost.api.front import Front
from roost.api.placement.application import Application
from roost.api.placement.auth import believe
from roost.api.placement.policy import Policy
from roost.api.server import Server, listen_on, url_of
from roost.client.agents import HttpServer
from roost.compute.acting import Acting
from roost.compute.agent import Agent, Identity
from roost.compute.driver import load
from roost.compute.journal import Journal
from roost.compute.running import Resident, Running
from roost.machine import SystemClock
from roost.model.names import uuid_bytes
from roost.model.orders import Answer, OrderBody
from roost.model.placement_settings import Placement as Settings
from roost.model.work import Put
from roost.placement.plans import Plan
from tests.agents import PlainTracker, spec
from tests.asking import Asking, asking_own
from tests.identities import uuid_named
from tests.patience import until
from tests.working import operation, order

HOST = "host-a"


@contextmanager
def answering():
    """Answer over HTTP in this process; give both APIs and the URL."""
    with asking_own() as own:
        settings = Settings()
        placement = Asking(Application(identify=believe, allows=Policy(is_legacy=True).allows), own.serving)
        below = {
            prefix: AsgiApplication(api, own.serving, settings=msgspec.structs.replace(settings, prefix=prefix))
            for prefix, api in (("/v1", own.application), ("/placement", placement.application))
        }
        listener = listen_on("listen", "127.0.0.1:0")
        server = Server(Front(below, otherwise=below["/v1"]), listener, settings)
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_until_complete, args=(server.answer(),))
        thread.start()
        try:
            yield own, placement, url_of(listener)
        finally:
            loop.call_soon_threadsafe(own.agents.waking.close)
            loop.call_soon_threadsafe(server.stop)
            thread.join()
            loop.close()
            listener.close()


@contextmanager
def living(url, *, life=1, host=HOST, options=None):
    """Let an agent with a fake driver live on a host; give its driver."""
    stop = threading.Event()
    server = HttpServer(url, token="admin", draw=lambda: 0.5, pause=lambda seconds: not stop.wait(seconds))
    driver, journal, run = load("fake", options or {}), Journal(None), uuid_named(f"run {life} of {host}")
    tracker = PlainTracker(driver, journal)
    acting = Acting(host, run=run, driver=driver, journal=journal, use_of=tracker.use)
    agent = Agent(Identity(host=host, run=run, driver="fake"), journal, driver_timeout_s=60.0)
    running = Running([Resident(agent, driver, acting, tracker)], server, clock=SystemClock())
    thread = threading.Thread(target=running.run, args=(stop,))
    thread.start()
    try:
        yield driver
    finally:
        stop.set()
        thread.join()
        server.close()


def put(own, *rows):
    own.serving.run(lambda _current: Plan(answer=None, work=tuple(map(Put, rows))))


def row_of(own, number):
    return own.serving.run(lambda current: own.agents.reader(current).order(number))


def test_what_a_server_orders_an_agent_does_and_says_once():
    with answering() as (own, placement, url), living(url) as driver:
        made = placement.post("/resource_providers", {"name": HOST, "uuid": uuid_named(HOST)})
        assert made.status == 200
        until(lambda: own.get(f"/agents/{HOST}").status == 200)
        body = msgspec.json.encode(OrderBody(operation=uuid_named("guest 1"), guest=spec("guest"), limit_s=60.0))
        instance = uuid_bytes(uuid_named("guest"))
        put(own, operation(1), order(1, host=HOST, instance_uuid=instance, turn=1, body=body))
        row = until(lambda: (found := row_of(own, 1)).state == "answered" and found)
        assert msgspec.json.decode(row.answer, type=Answer).outcome == "ok"
        assert [(guest.uuid, guest.state) for guest in driver.guests()] == [(uuid_named("guest"), "running")]
        gone = msgspec.json.encode(OrderBody(operation=uuid_named("guest 2")))
        put(
            own, operation(2),
            order(2, operation_id=2, host=HOST, instance_uuid=instance, turn=2, action="destroy", body=gone),
        )  # fmt: skip
        until(lambda: row_of(own, 2).state == "answered")
        assert driver.guests() == []
        until(lambda: own.get(f"/hosts/{HOST}").status == 200)


@pytest.mark.filterwarnings("error")
def test_an_agent_that_leaves_a_server_that_is_away_ends():
    with answering() as (_, _, url):
        pass
    with living(url):
        threading.Event().wait(0.1)
