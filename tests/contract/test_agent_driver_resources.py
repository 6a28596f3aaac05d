"""Instances on a host whose driver names what each of them gets, as commands."""

import json

import pytest

from tests.support.agents.agent_hosts import HOST, agent_host

LABEL = "CUSTOM_PMEM_NAMESPACE_4GB"
SCRIPT = f'[[node]]\npieces = {{{LABEL} = ["ns0", "ns1"]}}\n'
FLAVOR = {"name": "persistent", "vcpus": 1, "memory_mb": 64, "extra_specs": {"hw:pmem": "4GB"}}


@pytest.fixture
def host(tmp_path):
    """Give a host with two pieces."""
    with agent_host(tmp_path, SCRIPT) as found:
        yield found


def built(host):
    """Let an instance run; give its uuid."""
    outcome, (uuid,) = host.build(FLAVOR)
    assert outcome == "done"
    return uuid


def pieces(host):
    """Give what each guest has, as the driver knows it."""
    kept = json.loads((host.guests / "hosts" / f"{HOST}.json").read_text())
    return {uuid: guest["spec"]["pieces"] for uuid, guest in kept["guests"].items()}


def test_each_instance_has_pieces_of_its_own_through_lives_of_the_agent(host):
    first, second = built(host), built(host)
    assert pieces(host) == {first: ["ns0"], second: ["ns1"]}
    assert host.build(FLAVOR)[0] == "failed"
    assert host.over("DELETE", f"/v1/instances/{first}")["outcome"] == "done"
    host.agent.kill()
    host.agent.start()
    third = built(host)
    assert pieces(host) == {second: ["ns1"], third: ["ns0"]}


def test_an_agent_does_not_start_without_what_an_instance_has(host):
    first = built(host)
    assert host.agent.stop() == 0
    host.start(SCRIPT.replace('"ns0"', '"ns2"'))
    assert host.agent.ended() == 3
    assert f"node {HOST}: {first} has ns0, which is not there any more" in host.agent.log.read_text()
    host.start(SCRIPT)
    second = built(host)
    assert pieces(host) == {first: ["ns0"], second: ["ns1"]}
