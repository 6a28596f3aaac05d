"""Hosts whose agents start with another layout, as commands: live instances, and clients that claim all the time."""

import threading
import time
from contextlib import contextmanager

import pytest

from tests.clusters import AgentsProgram, ServerProgram, guests_on
from tests.worlds import uuid_named

HOST = "host-1"
PATIENCE_S = 300.0
TERMS = "[agent]\nreshape_tries = 1000\nreshape_pause_s = 0.0002\n"
FLAVOR = {
    "name": "rich", "vcpus": 1, "memory_mb": 1024, "root_gb": 1,
    "extra_specs": {"resources:VGPU": "1", "resources:CUSTOM_FPGA": "1", "resources:SRIOV_NET_VF": "1"},
}  # fmt: skip
NODE = """
renames = {CUSTOM_FPGA = "FPGA"}

[[node]]
inventories = {CUSTOM_FPGA = {total = 4}}
cell = [{id = 0, memory_mb = 4096, cpus = [0, 1, 2, 3]}, {id = 1, memory_mb = 4096, cpus = [4, 5, 6, 7]}]
gpu = [{name = "gpu0", vgpus = 1}, {name = "gpu1", vgpus = 1}]
pci = [
    {address = "0", vendor_id = "8086", product_id = "1", dev_type = "type-VF", numa_node = 0},
    {address = "1", vendor_id = "8086", product_id = "1", dev_type = "type-VF", numa_node = 1},
]
"""
HELD = {"VCPU": 2, "MEMORY_MB": 2048, "DISK_GB": 2, "VGPU": 2, "CUSTOM_FPGA": 2, "SRIOV_NET_VF": 2}
WHERE = {
    "gpus": {"": {"VCPU": 2, "MEMORY_MB": 2048, "DISK_GB": 2, "CUSTOM_FPGA": 2, "SRIOV_NET_VF": 2},
             "_gpu0": {"VGPU": 1}, "_gpu1": {"VGPU": 1}},
    "numa": {"": {"DISK_GB": 2, "VGPU": 2, "CUSTOM_FPGA": 2},
             "_numa0": {"VCPU": 1, "MEMORY_MB": 1024, "SRIOV_NET_VF": 1},
             "_numa1": {"VCPU": 1, "MEMORY_MB": 1024, "SRIOV_NET_VF": 1}},
    "renamed": {"": {**{name: amount for name, amount in HELD.items() if name != "CUSTOM_FPGA"}, "FPGA": 2}},
}  # fmt: skip
PLAIN = {"name": "plain", "vcpus": 2, "memory_mb": 512}
PINNED = {
    "flat": {"": {"VCPU": 2, "PCPU": 2, "MEMORY_MB": 1024}},
    "numa": {"_numa0": {"PCPU": 2, "MEMORY_MB": 512}, "_numa1": {"VCPU": 2, "MEMORY_MB": 512}},
}  # fmt: skip


class Host:
    """A host with an agent in a process of its own, which can be started with another layout."""

    def __init__(self, folder):
        self.script, self.guests = folder / "fake.toml", folder / "guests"
        # Who is stopped waits for a reshape that is tried very often.
        self.server = ServerProgram(folder=folder, settings="[conductor]\nact_timeout_s = 600.0\n")
        self.node = NODE
        self.server.start()
        (folder / "agent.toml").write_text(TERMS)
        self.agent = AgentsProgram(
            self.server.address, "--config", folder / "agent.toml", folder=folder, guests=self.guests, host=HOST,
            options={"script": self.script},
        )  # fmt: skip

    def start(self, layout="flat", node=None):
        """Start the agent with a layout."""
        self.script.write_text(f'layout = "{layout}"\n{node or self.node}')
        self.agent.start()

    def bring(self, layout, instance):
        """Start the agent with a layout, and wait until it has told Placement: only then it stops an instance."""
        stopped = self.asked("POST", f"/v1/instances/{instance}/stop")
        self.start(layout)
        self.until(lambda: self.server.asked("GET", stopped)[1]["outcome"] != "open")
        assert self.over("POST", f"/v1/instances/{instance}/start")["outcome"] == "done"

    def until(self, true):
        """Wait until something is so, as long as the agent lives."""
        end_s = time.monotonic() + PATIENCE_S
        while not true():
            assert self.agent.lives, self.agent.log.read_text()
            assert time.monotonic() < end_s, self.agent.log.read_text()
            time.sleep(0.05)

    def said(self, event):
        """Give how often the agent logged an event, in all its lives."""
        return self.agent.log.read_text().count(f'"{event}"')

    def build(self, count, flavor=FLAVOR):
        """Let instances run there; give their uuids."""
        body = {"flavor": flavor, "name": "live", "count": count}
        built = self.over("POST", "/v1/instances", body)
        assert built["outcome"] == "done", built
        return [each["uuid"] for each in built["instances"]]

    def end(self, instances):
        """Let instances end."""
        for each in instances:
            assert self.over("DELETE", f"/v1/instances/{each}")["outcome"] == "done"

    def asked(self, method, path, body=None):
        """Ask for something that is accepted; give the path of the operation."""
        status, told = self.server.asked(method, path, body)
        assert status == 202, told
        return f"/v1/operations/{told['operation']}?wait_s=1"

    def over(self, method, path, body=None):
        """Ask for something, and wait for its end; give the operation."""
        operation = self.asked(method, path, body)
        self.until(lambda: self.server.asked("GET", operation)[1]["outcome"] != "open")
        return self.server.asked("GET", operation)[1]

    def tree(self):
        """Give all of Placement: of each provider its inventories and what is used, by name."""
        found = {}
        for each in self.ask("GET", "/resource_providers")["resource_providers"]:
            inventories = self.ask("GET", f"/resource_providers/{each['uuid']}/inventories")["inventories"]
            usages = self.ask("GET", f"/resource_providers/{each['uuid']}/usages")["usages"]
            totals = {name: record["total"] for name, record in inventories.items()}
            found[each["name"]] = (totals, {name: used for name, used in usages.items() if used})
        return found

    def used(self):
        """Give what is used of each provider, by the end of its name."""
        return {name.removeprefix(HOST): used for name, (_, used) in self.tree().items() if used}

    def ask(self, method, path):
        """Ask Placement."""
        status, body = self.server.asked(method, f"/placement{path}")
        assert status == 200, body
        return body


@pytest.fixture
def host(tmp_path):
    """Give a host whose agent is up, in layout flat."""
    made = Host(tmp_path)
    try:
        made.start()
        made.until(lambda: made.server.listed("hosts"))
        yield made
    finally:
        made.agent.kill()
        made.server.kill()


@contextmanager
def claiming(host, clients=2, *, pause_s=0.5):
    """Let clients claim disk on the host and release it, all the time; give what was answered."""
    stop, counts, refusals = threading.Event(), [], []
    found = host.ask("GET", f"/resource_providers?name={HOST}")["resource_providers"]
    held = {"allocations": {found[0]["uuid"]: {"resources": {"DISK_GB": 1}}}, "consumer_generation": None,
            "project_id": "p", "user_id": "u", "consumer_type": "INSTANCE"}  # fmt: skip

    def churn(number):
        path = f"/placement/allocations/{uuid_named(f'client {number}')}"
        while not stop.is_set():
            for method, body in (("PUT", held), ("DELETE", None)):
                status, told = host.server.ask(method, path, body)
                counts.append(status)
                if status != 204:
                    refusals.append(told)
            stop.wait(pause_s)

    threads = [threading.Thread(target=churn, args=(number,)) for number in range(clients)]
    for each in threads:
        each.start()
    try:
        yield counts
    finally:
        stop.set()
        for each in threads:
            each.join()
        assert refusals == []


@pytest.mark.parametrize("layout", WHERE)
def test_what_live_instances_hold_moves_under_claims_and_the_third_start_finds_nothing(host, layout):
    instances = host.build(2)
    assert host.used() == {"": HELD}
    assert host.agent.stop() == 0
    with claiming(host) as counts:
        host.bring(layout, instances[0])
        begun = len(counts)
        host.until(lambda: len(counts) > begun + 4)
    assert host.said("reshape_begun") >= 1
    assert host.used() == WHERE[layout]
    before = host.tree()
    times = host.said("reshape_begun")
    host.agent.kill()
    host.bring(layout, instances[0])
    assert (host.said("reshape_begun"), host.tree()) == (times, before)
    shown = {each["uuid"]: each["status"] for each in host.server.listed("instances")}
    assert shown == dict.fromkeys(instances, "ACTIVE")
    assert {uuid: [state for _, state in on] for uuid, on in guests_on(host.guests).items()} == {
        uuid: ["running"] for uuid in instances
    }
    host.end(instances)
    assert host.used() == {}


@pytest.mark.parametrize("layout", ["flat", "numa"])
def test_processors_that_live_instances_have_for_themselves_become_pcpu(host, layout):
    assert host.agent.stop() == 0
    host.node = NODE.replace("cpus = [0, 1, 2, 3]", "cpus = [0, 1], pcpus = [2, 3]")
    host.start("shared")
    host.until(lambda: host.tree()[HOST][0].get("VCPU") == 8 and host.server.listed("hosts")[0]["up"])
    own, *_ = host.build(1, {**PLAIN, "extra_specs": {"hw:cpu_policy": "dedicated"}})
    plain, *_ = host.build(1, PLAIN)
    assert host.used() == {"": {"VCPU": 4, "MEMORY_MB": 1024}}
    assert host.agent.stop() == 0
    host.bring(layout, own)
    assert host.used() == PINNED[layout]
    before, times = host.tree(), host.said("reshape_begun")
    host.agent.kill()
    host.bring(layout, own)
    assert (host.said("reshape_begun"), host.tree()) == (times, before)
    host.end([own, plain])
    assert host.used() == {}


def test_a_reshape_with_many_tries_wins_against_a_client_that_hardly_pauses(host):
    instances = host.build(2)
    assert host.agent.stop() == 0
    with claiming(host, 1, pause_s=0.02) as counts:
        host.bring("numa", instances[0])
    assert len(counts) > 10
    assert host.used() == WHERE["numa"]
    host.end(instances)
    assert host.used() == {}


def test_a_reshape_that_cannot_be_stops_the_agent_with_the_reason_and_leaves_placement_untouched(host):
    instances = host.build(1)
    stranger = uuid_named("stranger")
    root = host.ask("GET", f"/resource_providers?name={HOST}")["resource_providers"][0]["uuid"]
    held = {"allocations": {root: {"resources": {"VGPU": 1}}}, "consumer_generation": None, "project_id": "p",
            "user_id": "u", "consumer_type": "INSTANCE"}  # fmt: skip
    assert host.server.ask("PUT", f"/placement/allocations/{stranger}", held)[0] == 204
    before = host.tree()
    assert host.agent.stop() == 0
    # One of the two GPUs is gone, so there is none for the stranger.
    host.start("gpus", NODE.replace(', {name = "gpu1", vgpus = 1}', ""))
    assert host.agent.ended() == 9
    reason = f"{stranger} holds 1 VGPU and has no guest, and guests use the rest"
    last = host.agent.log.read_text().splitlines()[-1]
    assert (last.startswith("roost: "), reason in last) == (True, True)
    assert host.tree() == before
    host.bring("gpus", instances[0])
    assert host.used()["_gpu0"] == host.used()["_gpu1"] == {"VGPU": 1}
