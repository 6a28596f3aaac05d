"""The invariants of an idle cluster of hosts with the fake driver."""

import json
import time
from collections import Counter

from tests.support.servers.clusters import guests_on

# The time limit for agents to report the power states of all guests.
IN_STEP_S = 60.0
# In these statuses an instance has a guest and allocations on its host.
_STATES = {"ACTIVE": "running", "SHUTOFF": "stopped", "SHELVED": "stopped"}


def problems_of(cluster, *, promised, ended, sizes):
    """Return the violated invariants.

    Args:
        cluster: a cluster that receives no more requests.
        promised: uuids of all instances whose build was accepted.
        ended: uuids of the instances whose deletion was accepted.
        sizes: by uuid of the instance, the amounts of its flavor and those of the flavor before a resize.
    """
    shown, guests = cluster.instances(), guests_on(cluster.guests)
    found = [f"{uuid} was accepted and is unknown" for uuid in promised - shown.keys()]
    found += [f"{uuid} was not requested, and is on {guests[uuid]}" for uuid in guests.keys() - shown.keys()]
    for uuid, each in shown.items():
        status, host, on = each["status"], each["host"], guests.get(uuid, [])
        fine = {
            "ERROR": bool(each["fault"]) and {name for name, _ in on} <= {host},
            "DELETED": not on and not host,
            "SHELVED_OFFLOADED": not on and not host,
            "VERIFY_RESIZE": dict(on).get(host) in {"running", "stopped"} and len(on) <= 2,
        } | {name: on == [(host, state)] for name, state in _STATES.items()}
        if not fine[status]:
            found.append(f"{uuid} is {status} on {host!r} ({each['fault']}), and hosts have {on}")
        if uuid in ended and status not in {"DELETED", "ERROR"}:
            found.append(f"{uuid} was deleted, and is {status}")
    return [*found, *_wrong_amounts(cluster, shown, sizes), *_wrong_books(cluster, shown, sizes)]


def wait_for_power_states(cluster):
    """Wait until statuses match the guests' power states; return the number of instances that differed before."""
    end_s, found = time.monotonic() + IN_STEP_S, set[str]()
    while differing := _differing(cluster):
        found |= differing
        assert time.monotonic() < end_s, f"{differing} differ from the reports of their hosts"
        time.sleep(0.5)
    cluster.settle()
    return len(found)


def _differing(cluster):
    """Return the instances whose status and guest disagree about whether they run."""
    guests, other = guests_on(cluster.guests), {"running": "stopped", "stopped": "running"}
    return {
        uuid
        for uuid, each in cluster.instances().items()
        if each["status"] in _STATES and guests.get(uuid) == [(each["host"], other[_STATES[each["status"]]])]
    }


def usages_and_sums(cluster):
    """Return Placement's usages and the sums of allocations, each by provider uuid."""
    usages, sums = {}, {}
    for each in cluster.asked("GET", "/placement/resource_providers")[1]["resource_providers"]:
        path = f"/placement/resource_providers/{each['uuid']}"
        amounts = cluster.asked("GET", f"{path}/usages")[1]["usages"]
        usages[each["uuid"]] = {name: amount for name, amount in amounts.items() if amount}
        held = Counter()
        for consumer in cluster.asked("GET", f"{path}/allocations")[1]["allocations"].values():
            held.update(consumer["resources"])
        sums[each["uuid"]] = dict(held)
    return usages, sums


def _wrong_amounts(cluster, shown, sizes):
    """Compare the allocations on each host with the sizes of its instances and of unconfirmed resizes."""
    roots = {each["host"]: each["uuid"] for each in cluster.listed("hosts")}
    expected = {host: {} for host in roots}
    for uuid, each in shown.items():
        now, before = sizes[uuid]
        if each["host"]:
            expected[each["host"]][uuid] = now
        if each["status"] == "VERIFY_RESIZE":
            moves = cluster.asked("GET", f"/v1/instances/{uuid}")[1]["migrations"]
            expected[moves[-1]["source_host"]][moves[-1]["uuid"]] = before
    usages, sums = usages_and_sums(cluster)
    found = [
        f"{uuid} has usages {usages[uuid]}, and allocations {sums[uuid]}"
        for uuid in usages
        if usages[uuid] != sums[uuid]
    ]
    for host, root in roots.items():
        allocations = cluster.asked("GET", f"/placement/resource_providers/{root}/allocations")[1]["allocations"]
        held = {uuid: each["resources"] for uuid, each in allocations.items()}
        found += [
            f"{uuid} holds {held.get(uuid)} on {host}, expected {expected[host].get(uuid)}"
            for uuid in held.keys() | expected[host].keys()
            if held.get(uuid) != expected[host].get(uuid)
        ]
    return found


def _wrong_books(cluster, shown, sizes):
    """Compare the guest records of hosts with the instances, and find records without an owner."""
    found = []
    for path in sorted((cluster.guests / "hosts").glob("*.json")):
        kept = json.loads(path.read_text())
        for uuid, guest in kept.get("guests", {}).items():
            now, before = sizes[uuid]
            flavor = guest["spec"]["flavor"]
            has = {"VCPU": flavor["vcpus"], "MEMORY_MB": flavor["memory_mb"]}
            is_source = shown[uuid]["host"] != path.stem
            if has != (before if is_source else now):
                found.append(f"{uuid} has {has} on {path.stem}, expected {now} now, {before} before")
        may_go_back = {uuid for uuid, each in shown.items() if each["status"] == "VERIFY_RESIZE"}
        lost = dict.fromkeys(kept.get("coming", {}).keys() - _arrivals(cluster, path.stem), "coming")
        lost |= dict.fromkeys(kept.get("replaced", {}).keys() - may_go_back, "replaced")
        found += [f"{path.stem} keeps {what} {uuid}, which is {shown[uuid]['status']}" for uuid, what in lost.items()]
    return found


def _arrivals(cluster, host):
    """Return the uuids of guests that arrived running on a host."""
    return {uuid for uuid, on in guests_on(cluster.guests).items() if (host, "running") in on}
