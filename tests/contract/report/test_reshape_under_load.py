"""Reshapes of hosts while clients claim and release on them over HTTP."""

import threading
from contextlib import closing

import pytest

from roost.client.report_http import ReportHttp
from roost.model.work.agent_terms import ReshapeTerms
from tests.support.agents.report_clients import SERVICE, World, world_at
from tests.support.agents.trackers import HOST, Machine

CLIENTS = 3
LAYOUTS = ("gpus", "numa", "renamed")


def churn(world, name, stop, counts):
    """Claim disk on the root and release it, until ``stop`` is set."""
    while not stop.is_set():
        world.hold(name, **{HOST: {"DISK_GB": 1}})
        world.ask("DELETE", f"/allocations/{world.u(name)}")
        counts.append(name)
        stop.wait(0.02)


@pytest.mark.shows("S108", "S109", "S110", "S111", "S139")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_reshape_moves_all_allocations_and_no_client_is_refused(server_address, layout):
    with world_at(server_address, layout) as world:
        machine = Machine(world)
        machine.start("flat")
        machine.update()
        machine.populate("one", "two")
        machine.terms = ReshapeTerms(reshape_tries=1000)
        stop, counts, problems = threading.Event(), [], []

        def client(number):
            try:
                with closing(ReportHttp(server_address, headers=SERVICE)) as http:
                    churn(World(http, layout), f"client {number}", stop, counts)
            except AssertionError as error:
                problems.append(error)

        clients = [threading.Thread(target=client, args=(number,)) for number in range(CLIENTS)]
        for each in clients:
            each.start()
        try:
            machine.start(layout)
            assert machine.update().is_reshaped
            machine.start(layout)
            assert not machine.update().is_reshaped
        finally:
            stop.set()
            for each in clients:
                each.join()
        assert problems == []
        assert counts
        sums = {}
        for amounts in machine.usages().values():
            for name, amount in amounts.items():
                sums[name] = sums.get(name, 0) + amount
        renamed = "FPGA" if layout == "renamed" else "CUSTOM_FPGA"
        assert sums == {"VCPU": 2, "MEMORY_MB": 2048, "DISK_GB": 2, "VGPU": 2, "SRIOV_NET_VF": 2, renamed: 2}
