"""A server, agents and a conductor in this process, connected over HTTP."""

import asyncio
import threading
from contextlib import contextmanager

import msgspec

from roost.api.access.authentication import trust_headers
from roost.api.access.policy import Policy
from roost.api.asgi import AsgiApplication
from roost.api.placement.application import Application
from roost.api.server.listener import Server, listen_on, url_of
from roost.api.server.mount import Mount
from roost.app.conductor_thread import ConductorThread
from roost.client.agent_server import HttpServer
from roost.client.server_list import ServerList
from roost.compute.agent.agent_journal import Journal
from roost.compute.agent.execute_order import OrderExecutor
from roost.compute.agent.identity import Identity
from roost.compute.agent.runtime import AgentRuntime, RunningAgent
from roost.compute.agent.state_machine import Agent
from roost.compute.driver import load
from roost.machine import SystemClock
from roost.model.settings.placement_settings import Placement as Settings
from tests.support.agents.scripted_agents import PlainTracker
from tests.support.fleets.named_uuids import uuid_named
from tests.support.servers.in_process_api import ApiClient, roost_api

HOST = "host-a"


@contextmanager
def http_server(product=None):
    """Run an HTTP server in this process; yield the Roost API, the Placement API and the URL."""
    with roost_api(settings=product) as own:
        settings = Settings()
        placement = ApiClient(Application(identify=trust_headers, allows=Policy(is_legacy=True).allows), own.serving)
        apis = {
            prefix: AsgiApplication(api, own.serving, settings=msgspec.structs.replace(settings, prefix=prefix))
            for prefix, api in (("/v1", own.application), ("/placement", placement.application))
        }
        listener = listen_on("listen", "127.0.0.1:0")
        server = Server(Mount(apis, otherwise=apis["/v1"]), listener, settings)
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_until_complete, args=(server.answer(),))
        thread.start()
        try:
            yield own, placement, url_of(listener)
        finally:
            loop.call_soon_threadsafe(own.agents.wakeups.close)
            loop.call_soon_threadsafe(server.stop)
            thread.join()
            loop.close()
            listener.close()


@contextmanager
def running_agent(url, *, life=1, host=HOST, options=None, journal=None, track=PlainTracker):
    """Run an agent with a fake driver on a host; yield the driver.

    Args:
        track: creates the tracker from a driver and a journal.
    """
    stop = threading.Event()
    server = HttpServer(
        ServerList([url], setting="agent.servers"),
        token="admin",
        draw=lambda: 0.5,
        pause=lambda seconds: not stop.wait(seconds),
    )
    driver, journal, run = load("fake", options or {}), journal or Journal(None), uuid_named(f"run {life} of {host}")
    tracker = track(driver, journal)
    executor = OrderExecutor(host, run=run, driver=driver, journal=journal, use_of=tracker.use)
    agent = Agent(Identity(host=host, run=run, driver="fake"), journal, driver_timeout_s=60.0)
    runtime = AgentRuntime([RunningAgent(agent, driver, executor, tracker)], server, clock=SystemClock())
    thread = threading.Thread(target=runtime.run, args=(stop,))
    thread.start()
    try:
        yield driver
    finally:
        stop.set()
        thread.join()
        server.close()


@contextmanager
def running_conductor(own):
    """Run a conductor thread on the server."""
    conductor = ConductorThread(poll_s=0.05)
    conductor.start(own.product, own.serving)
    try:
        yield
    finally:
        conductor.join()


def is_ready(own, name):
    response = own.get(f"/agents/{name}")
    return response.status == 200 and response.json["state"] == "ready"
