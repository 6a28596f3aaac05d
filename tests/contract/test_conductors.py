"""Several conductors on one database take each step exactly once."""

import random
import time
from contextlib import ExitStack

import pytest

from roost.app.conductor_thread import ConductorThread
from roost.machine import SystemClock
from roost.store.audit import audit
from roost.store.postgresql.store import PostgresStore
from tests.support.conductors.conductors import OK, PlayedAgent, Server, action, failure
from tests.support.fleets.named_uuids import uuid_named
from tests.support.fleets.worlds import hosts

SERVERS, HOSTS, BUILDS = 3, 4, 12


@pytest.fixture
def sites(postgres_url):
    """Yield servers on one database, each with its own conductor."""
    with ExitStack() as stack:
        found = []
        for number in range(SERVERS):
            conductor = ConductorThread(poll_s=0.05)
            server = Server(PostgresStore(postgres_url), clock=SystemClock(), seed=number, on_work=conductor.wake_for)
            stack.callback(server.stop)
            stack.callback(conductor.join)
            if not number:
                server.run(lambda _current, server=server: server.roost.install(hosts(HOSTS, VCPU=64, MEMORY_MB=640)))
            conductor.start(server.roost, server.serving)
            found.append(server)
        yield found


def run_agents(sites, agents, chance, *, until):
    """Run agents against random servers, with random spawn failures, until a condition holds."""
    end_s = time.monotonic() + 120
    while not until():
        assert time.monotonic() < end_s, "it does not happen"
        for agent in agents:
            agent.server = chance.choice(sites)
            for order in agent.poll().orders:
                fails = action(order) == "spawn" and chance.random() < 0.3
                agent.act(order, failure("by chance") if fails else OK)


def test_racing_conductors_build_and_delete_each_instance_once(sites, postgres_url):
    chance = random.Random(5)
    agents = [PlayedAgent(sites[0], f"h{number}") for number in range(HOSTS)]
    for agent in agents:
        agent.register()
    names = [f"{number}/{at}" for number in range(BUILDS) for at in range(3)]
    for number in range(BUILDS):
        chance.choice(sites).build(*names[3 * number : 3 * number + 3], key=f"build {number}")
    first = sites[0]
    run_agents(sites, agents, chance, until=lambda: not first.open_operations())
    statuses = {name: first.status(name) for name in names}
    assert {status.status for status in statuses.values()} <= {"ACTIVE", "ERROR"}
    running = {uuid_named(name): status.host for name, status in statuses.items() if status.status == "ACTIVE"}
    assert {uuid: agent.host for agent in agents for uuid in agent.guests} == running
    assert len(running) > BUILDS
    assert all(site.used()["VCPU"] == len(running) for site in sites)
    for name in names:
        chance.choice(sites).delete(name)
    run_agents(sites, agents, chance, until=lambda: not first.open_operations())
    assert {first.status(name).status for name in names} == {"DELETED"}
    assert all(site.used()["VCPU"] == 0 for site in sites)
    assert not any(agent.guests for agent in agents)
    assert audit(postgres_url) == []
