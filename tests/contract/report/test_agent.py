"""A complete agent with its threads, against a Placement over HTTP: Roost's own and the reference."""

import itertools
from contextlib import closing

import pytest

from roost.app.agents.agent_process import SharedHttp
from roost.client.report_http import ReportHttp
from roost.client.server_list import ServerList
from roost.compute.agent.agent_journal import Journal
from roost.compute.agent.execute_order import OrderExecutor
from roost.compute.agent.identity import Identity
from roost.compute.agent.runtime import RunningAgent
from roost.compute.agent.state_machine import Agent
from roost.model.work.orders import Destroy, Power, Spawn
from tests.support.agents.driver_doubles import spec_of
from tests.support.agents.report_clients import SERVICE, World
from tests.support.agents.scripted_agents import PATIENT, MemoryServer, order, run_agents
from tests.support.agents.trackers import HELD, HOST, Machine
from tests.support.fleets.worlds import uuid_named

_NUMBERS = itertools.count()


@pytest.fixture(params=["roost", pytest.param("reference", marks=pytest.mark.differential)])
def world(request):
    """Yield a Placement that many threads can use, as in an agent."""
    name = f"agent {next(_NUMBERS)}"
    if request.param == "roost":
        address = request.getfixturevalue("server_address")
    else:
        reference = request.getfixturevalue("reference_placement")
        reference.empty()
        address = reference.address
    with closing(
        SharedHttp(ServerList([address], setting="--server"), lambda url: ReportHttp(url, headers=SERVICE))
    ) as http:
        yield World(http, name)


def resident(machine, layout):
    """Start a machine with a layout; return its resident agent."""
    machine.start(layout)
    driver, journal, tracker = machine.driver, machine.book, machine.tracker
    run = uuid_named(f"{layout} {next(_NUMBERS)}")
    agent = Agent(Identity(host=machine.host, run=run, driver="fake"), journal, driver_timeout_s=60.0)
    return RunningAgent(
        agent, driver, OrderExecutor(machine.host, run=run, driver=driver, journal=journal, use_of=tracker.use), tracker
    )


def test_host_inventory_and_allocations_reach_placement_and_move_in_a_reshape(world, capfd):
    server, machine = MemoryServer(), Machine(world)
    with closing(Journal(None)) as journal:
        machine.book = journal
        journal.keep_node(machine.host, world.u(HOST))

        def send_order(act, number):
            server.put(order(act, of="guest", turn=number, host=machine.host))
            return server.answer_to(number * 100 + 1)

        with run_agents(server, resident(machine, "flat"), pace=PATIENT) as (first_errors, _):
            first = order(Power(is_on=True), of="nobody", turn=9, host=machine.host)
            server.put(first)  # The agent answers once Placement knows the host, although the guest does not exist.
            server.answer_to(first.id)
            assert world.totals(HOST) == {
                "VCPU": 8,
                "MEMORY_MB": 8192,
                "DISK_GB": 500,
                "VGPU": 4,
                "SRIOV_NET_VF": 2,
                "CUSTOM_FPGA": 4,
            }
            assert {"COMPUTE_NODE", "OWNER_NOVA", "COMPUTE_IMAGE_TYPE_QCOW2"} <= set(world.of(HOST, "traits"))
            world.ask("PUT", f"/allocations/{uuid_named('guest')}", world.payload(**{HOST: HELD}))
            spec = spec_of("guest", machine.host, allocations={world.u(HOST): HELD})
            assert send_order(Spawn(spec), 1).outcome == "ok"
        with run_agents(server, resident(machine, "gpus"), pace=PATIENT) as (second_errors, _):
            assert send_order(Power(is_on=False), 2).outcome == "ok"
            used = machine.usages()
            assert send_order(Destroy(), 3).outcome == "ok"
        assert first_errors == second_errors == []
        assert used.pop("") == {name: amount for name, amount in HELD.items() if name != "VGPU"}
        assert sorted(map(str, used.values())) == sorted(map(str, [{"VGPU": 1}, {}]))
        assert list(server.book.facts) == [machine.host]
        world.ask("DELETE", f"/allocations/{uuid_named('guest')}")
        assert not any(machine.usages().values())
    assert '"reshape_begun"' in capfd.readouterr().err
