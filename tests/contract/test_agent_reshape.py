"""Layout changes of hosts with live instances and concurrent claims, through real processes."""

import threading
from contextlib import contextmanager

import pytest

from tests.support.agents.agent_hosts import HOST, agent_host
from tests.support.fleets.worlds import uuid_named
from tests.support.servers.clusters import guests_on
from tests.support.wait import wait_until

pytestmark = pytest.mark.long

TERMS = "[agent]\nreshape_tries = 1000\nreshape_pause_s = 0.0002\n"
FLAVOR = {
    "name": "rich",
    "vcpus": 1,
    "memory_mb": 1024,
    "root_gb": 1,
    "extra_specs": {"resources:VGPU": "1", "resources:CUSTOM_FPGA": "1", "resources:SRIOV_NET_VF": "1"},
}
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
USED_ON_ROOT = {"VCPU": 2, "MEMORY_MB": 2048, "DISK_GB": 2, "VGPU": 2, "CUSTOM_FPGA": 2, "SRIOV_NET_VF": 2}
USED_BY_LAYOUT = {
    "gpus": {
        "": {"VCPU": 2, "MEMORY_MB": 2048, "DISK_GB": 2, "CUSTOM_FPGA": 2, "SRIOV_NET_VF": 2},
        "_gpu0": {"VGPU": 1},
        "_gpu1": {"VGPU": 1},
    },
    "numa": {
        "": {"DISK_GB": 2, "VGPU": 2, "CUSTOM_FPGA": 2},
        "_numa0": {"VCPU": 1, "MEMORY_MB": 1024, "SRIOV_NET_VF": 1},
        "_numa1": {"VCPU": 1, "MEMORY_MB": 1024, "SRIOV_NET_VF": 1},
    },
    "renamed": {"": {**{name: amount for name, amount in USED_ON_ROOT.items() if name != "CUSTOM_FPGA"}, "FPGA": 2}},
}
PLAIN = {"name": "plain", "vcpus": 2, "memory_mb": 512}
USED_WHEN_PINNED = {
    "flat": {"": {"VCPU": 2, "PCPU": 2, "MEMORY_MB": 1024}},
    "numa": {"_numa0": {"PCPU": 2, "MEMORY_MB": 512}, "_numa1": {"VCPU": 2, "MEMORY_MB": 512}},
}


@pytest.fixture
def host(tmp_path):
    """Yield a host in layout flat whose agent is up."""
    (tmp_path / "agent.toml").write_text(TERMS)
    # A stop request waits until a reshape with many tries is done.
    patient = "[conductor]\nact_timeout_s = 600.0\n"
    with agent_host(tmp_path, script(), "--config", tmp_path / "agent.toml", settings=patient) as found:
        yield found


def script(layout="flat", node=NODE):
    return f'layout = "{layout}"\n{node}'


def apply_layout(host, layout, instance, *, node=NODE):
    """Start the agent with a layout and wait until Placement has it; only then does it stop an instance."""
    stop = host.asked("POST", f"/v1/instances/{instance}/stop")
    host.start(script(layout, node))
    host.ended(stop)
    assert host.over("POST", f"/v1/instances/{instance}/start")["outcome"] == "done"


def event_count(host, event):
    """Return how often the agent logged an event, over all restarts."""
    return host.agent.log.read_text().count(f'"{event}"')


def build(host, count, flavor=FLAVOR):
    """Build instances on the host; return their uuids."""
    outcome, uuids = host.build(flavor, count)
    assert outcome == "done"
    return uuids


def delete(host, instances):
    """Delete instances."""
    for each in instances:
        assert host.over("DELETE", f"/v1/instances/{each}")["outcome"] == "done"


def tree(host):
    """Return the totals and usages of each provider in Placement, by name."""
    found = {}
    for each in get(host, "/resource_providers")["resource_providers"]:
        inventories = get(host, f"/resource_providers/{each['uuid']}/inventories")["inventories"]
        usages = get(host, f"/resource_providers/{each['uuid']}/usages")["usages"]
        totals = {name: record["total"] for name, record in inventories.items()}
        found[each["name"]] = (totals, {name: used for name, used in usages.items() if used})
    return found


def used(host):
    """Return the usages of each provider, by the end of its name."""
    return {name.removeprefix(HOST): amounts for name, (_, amounts) in tree(host).items() if amounts}


def get(host, path):
    """Send a GET request to Placement."""
    status, body = host.server.asked("GET", f"/placement{path}")
    assert status == 200, body
    return body


def claim_of_root(host, **amounts):
    """Return the body of a claim on the root provider."""
    (root,) = get(host, f"/resource_providers?name={HOST}")["resource_providers"]
    return {
        "allocations": {root["uuid"]: {"resources": amounts}},
        "consumer_generation": None,
        "project_id": "p",
        "user_id": "u",
        "consumer_type": "INSTANCE",
    }


@contextmanager
def claim_load(host, clients=2, *, pause_s=0.5):
    """Claim and release disk on the host in threads; yield the response statuses."""
    stop, counts, refusals = threading.Event(), [], []
    held = claim_of_root(host, DISK_GB=1)

    def churn(number):
        path = f"/placement/allocations/{uuid_named(f'client {number}')}"
        while not stop.is_set():
            for method, body in (("PUT", held), ("DELETE", None)):
                status, response = host.server.ask(method, path, body)
                counts.append(status)
                if status != 204:
                    refusals.append(response)
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


@pytest.mark.parametrize("layout", USED_BY_LAYOUT)
def test_live_allocations_move_under_claims_and_the_third_start_changes_nothing(host, layout):
    instances = build(host, 2)
    assert used(host) == {"": USED_ON_ROOT}
    assert host.agent.stop() == 0
    with claim_load(host) as counts:
        apply_layout(host, layout, instances[0])
        start = len(counts)
        host.agent.until(lambda: len(counts) > start + 4)
    assert event_count(host, "reshape_begun") >= 1
    assert used(host) == USED_BY_LAYOUT[layout]
    before = tree(host)
    times = event_count(host, "reshape_begun")
    host.agent.kill()
    apply_layout(host, layout, instances[0])
    assert (event_count(host, "reshape_begun"), tree(host)) == (times, before)
    shown = {each["uuid"]: each["status"] for each in host.server.listed("instances")}
    assert shown == dict.fromkeys(instances, "ACTIVE")
    assert {uuid: [state for _, state in on] for uuid, on in guests_on(host.guests).items()} == {
        uuid: ["running"] for uuid in instances
    }
    delete(host, instances)
    assert used(host) == {}


@pytest.mark.parametrize("layout", ["flat", "numa"])
def test_dedicated_processors_of_live_instances_become_pcpu(host, layout):
    assert host.agent.stop() == 0
    node = NODE.replace("cpus = [0, 1, 2, 3]", "cpus = [0, 1], pcpus = [2, 3]")
    host.start(script("shared", node))
    host.agent.until(lambda: tree(host)[HOST][0].get("VCPU") == 8 and host.server.listed("hosts")[0]["up"])
    own, *_ = build(host, 1, {**PLAIN, "extra_specs": {"hw:cpu_policy": "dedicated"}})
    plain, *_ = build(host, 1, PLAIN)
    assert used(host) == {"": {"VCPU": 4, "MEMORY_MB": 1024}}
    assert host.agent.stop() == 0
    apply_layout(host, layout, own, node=node)
    assert used(host) == USED_WHEN_PINNED[layout]
    before, times = tree(host), event_count(host, "reshape_begun")
    host.agent.kill()
    apply_layout(host, layout, own, node=node)
    assert (event_count(host, "reshape_begun"), tree(host)) == (times, before)
    delete(host, [own, plain])
    assert used(host) == {}


def test_reshape_with_many_tries_wins_against_a_busy_client(host):
    instances = build(host, 2)
    assert host.agent.stop() == 0
    with claim_load(host, 1, pause_s=0.02) as counts:
        apply_layout(host, "numa", instances[0])
        wait_until(lambda: len(counts) > 10)
    assert used(host) == USED_BY_LAYOUT["numa"]
    delete(host, instances)
    assert used(host) == {}


def test_impossible_reshape_stops_the_agent_and_leaves_placement_unchanged(host):
    instances = build(host, 1)
    stranger = uuid_named("stranger")
    assert host.server.ask("PUT", f"/placement/allocations/{stranger}", claim_of_root(host, VGPU=1))[0] == 204
    before = tree(host)
    assert host.agent.stop() == 0
    # One of the two GPUs is gone, so there is none for the stranger.
    host.start(script("gpus", NODE.replace(', {name = "gpu1", vgpus = 1}', "")))
    assert host.agent.ended() == 9
    reason = f"{stranger} holds 1 VGPU and has no guest, and too few are free"
    last = host.agent.log.read_text().splitlines()[-1]
    assert (last.startswith("roost: "), reason in last) == (True, True)
    assert tree(host) == before
    apply_layout(host, "gpus", instances[0])
    assert used(host)["_gpu0"] == used(host)["_gpu1"] == {"VGPU": 1}
