"""Named driver resources (``pieces``) of instances, through commands and real processes."""

import json

import pytest

from tests.support.agents.agent_hosts import HOST, agent_host

LABEL = "CUSTOM_PMEM_NAMESPACE_4GB"
SCRIPT = f'[[node]]\npieces = {{{LABEL} = ["ns0", "ns1"]}}\n'
FLAVOR = {"name": "persistent", "vcpus": 1, "memory_mb": 64, "extra_specs": {"hw:pmem": "4GB"}}


@pytest.fixture
def host(tmp_path):
    """Yield a host with two pieces."""
    with agent_host(tmp_path, SCRIPT) as found:
        yield found


def build_one(host):
    """Build an instance; return its uuid."""
    outcome, (uuid,) = host.build(FLAVOR)
    assert outcome == "done"
    return uuid


def pieces(host):
    """Return the pieces of each guest, from the driver's state file."""
    state = json.loads((host.guests / "hosts" / f"{HOST}.json").read_text())
    return {uuid: guest["spec"]["pieces"] for uuid, guest in state["guests"].items()}


def test_driver_resources_stay_with_their_instances_across_agent_restarts(host):
    first, second = build_one(host), build_one(host)
    assert pieces(host) == {first: ["ns0"], second: ["ns1"]}
    assert host.build(FLAVOR)[0] == "failed"
    assert host.over("DELETE", f"/v1/instances/{first}")["outcome"] == "done"
    host.agent.kill()
    host.agent.start()
    third = build_one(host)
    assert pieces(host) == {second: ["ns1"], third: ["ns0"]}


def test_agent_does_not_start_without_a_resource_in_use(host):
    first = build_one(host)
    assert host.agent.stop() == 0
    host.start(SCRIPT.replace('"ns0"', '"ns2"'))
    assert host.agent.ended() == 3
    assert f"node {HOST}: {first} has ns0, which is missing now" in host.agent.log.read_text()
    host.start(SCRIPT)
    second = build_one(host)
    assert pieces(host) == {first: ["ns0"], second: ["ns1"]}
