"""Instances on a host whose driver names what each of them gets, as commands."""

import json
import time

import pytest

from tests.clusters import AgentsProgram, ServerProgram

HOST, LABEL = "host-1", "CUSTOM_PMEM_NAMESPACE_4GB"
SCRIPT = f'[[node]]\npieces = {{{LABEL} = ["ns0", "ns1"]}}\n'
FLAVOR = {"name": "persistent", "vcpus": 1, "memory_mb": 64, "extra_specs": {"hw:pmem": "4GB"}}
PATIENCE_S = 60.0


class Host:
    """A host with an agent in a process of its own, which outlives it."""

    def __init__(self, folder):
        self.script, self.guests = folder / "fake.toml", folder / "guests"
        self.script.write_text(SCRIPT)
        self.server = ServerProgram(folder=folder, settings="")
        self.server.start()
        self.agent = AgentsProgram(
            self.server.address, folder=folder, guests=self.guests, host=HOST, options={"script": self.script}
        )
        self.agent.start()
        self.until(lambda: self.server.listed("hosts"))

    def until(self, true):
        """Wait until something is so."""
        end_s = time.monotonic() + PATIENCE_S
        while not true():
            assert time.monotonic() < end_s, self.agent.log.read_text()
            time.sleep(0.05)

    def over(self, method, path, body=None):
        """Ask for something, and wait for its end; give the operation."""
        status, told = self.server.asked(method, path, body)
        assert status == 202, told
        operation = f"/v1/operations/{told['operation']}?wait_s=1"
        self.until(lambda: self.server.asked("GET", operation)[1]["outcome"] != "open")
        return self.server.asked("GET", operation)[1]

    def build(self):
        """Let an instance run; give its uuid, or none."""
        built = self.over("POST", "/v1/instances", {"flavor": FLAVOR, "name": "i"})
        return built["instances"][0]["uuid"] if built["outcome"] == "done" else None

    def pieces(self):
        """Give what each guest has, as the driver knows it."""
        kept = json.loads((self.guests / "hosts" / f"{HOST}.json").read_text())
        return {uuid: guest["spec"]["pieces"] for uuid, guest in kept["guests"].items()}


@pytest.fixture
def host(tmp_path):
    made = Host(tmp_path)
    try:
        yield made
    finally:
        made.agent.kill()
        made.server.kill()


def test_each_instance_has_pieces_of_its_own_through_lives_of_the_agent(host):
    first, second = host.build(), host.build()
    assert host.pieces() == {first: ["ns0"], second: ["ns1"]}
    assert host.build() is None
    assert host.over("DELETE", f"/v1/instances/{first}")["outcome"] == "done"
    host.agent.kill()
    host.agent.start()
    third = host.build()
    assert host.pieces() == {second: ["ns1"], third: ["ns0"]}


def test_an_agent_does_not_start_without_what_an_instance_has(host):
    first = host.build()
    assert host.agent.stop() == 0
    host.script.write_text(SCRIPT.replace('"ns0"', '"ns2"'))
    host.agent.start()
    assert host.agent.ended() == 3
    assert f"node {HOST}: {first} has ns0, which is not there any more" in host.agent.log.read_text()
    host.script.write_text(SCRIPT)
    host.agent.start()
    second = host.build()
    assert host.pieces() == {first: ["ns0"], second: ["ns1"]}
