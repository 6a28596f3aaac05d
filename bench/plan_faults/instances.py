"""Instances of a run: on all hosts, in server groups, and some of them stopped or shelved."""

import random
import uuid
from collections import Counter
from typing import Any, NamedTuple

from tests.support.conductors.mortal_cluster import Cluster

_SIZES = {"small": (1, 512), "medium": (2, 1024), "large": (4, 2048)}
_MEMBERS = {"anti-affinity": 6, "soft-anti-affinity": 10, "affinity": 2}  # of each group
_GROUPED = 0.5  # share of the requests that are for members of a group
_TOGETHER = 6  # instances of a request without a group
_STOPPED, _SHELVED = 0.06, 0.03  # shares of all instances


class Built(NamedTuple):
    """The instances, by uuid, and the groups."""

    sizes: dict[str, dict[str, int]]  # amounts of each instance
    groups: dict[str, str]  # group of each instance that has one
    policies: dict[str, str]  # policy of each group


def build(cluster: Cluster, count: int, *, hosts: int, chance: random.Random) -> Built:
    """Build instances, and wait until they are as wanted.

    Args:
        cluster: where nothing fails yet.
        count: of instances.
        hosts: number of hosts.
        chance: draws sizes and groups.
    """
    built, operations = Built({}, {}, {}), []
    while len(built.sizes) < count:
        flavor, number = chance.choice(["small", "small", "medium", "large"]), min(_TOGETHER, count - len(built.sizes))
        group = _create_group(cluster, built, chance) if chance.random() < _GROUPED else ""
        if group:
            number = min(_MEMBERS[built.policies[group]], hosts, count - len(built.sizes))
        operations.append(_request_instances(cluster, built, number, flavor=flavor, group=group))
    for each in operations:
        while (found := cluster.asked("GET", f"/v1/operations/{each}?wait_s=20")[1])["outcome"] == "open":
            pass
        assert found["outcome"] == "done", found["problem"]
    uuids = chance.sample(sorted(built.sizes), count)
    stopped, shelved = round(count * _STOPPED), round(count * _SHELVED)
    acts = [*zip(uuids[:stopped], ["stop"] * stopped, strict=True)]
    acts += [*zip(uuids[stopped : stopped + shelved], ["shelve"] * shelved, strict=True)]
    for each, act in acts:
        status, answer = cluster.asked("POST", f"/v1/instances/{each}/{act}", key=f"{act} {each}")
        assert status == 202, answer
    cluster.settle()
    return built


def find_group_problems(built: Built, instances: dict[str, dict[str, Any]]) -> list[str]:
    """Return the groups whose members are on hosts that their policy forbids."""
    hosts: dict[str, Counter[str]] = {}
    for each, group in built.groups.items():
        if instances.get(each, {}).get("host"):
            hosts.setdefault(group, Counter())[instances[each]["host"]] += 1
    problems = []
    for group, counts in hosts.items():
        policy = built.policies[group]
        if (policy == "anti-affinity" and max(counts.values()) > 1) or (policy == "affinity" and len(counts) > 1):
            problems.append(f"group {group} has the policy {policy}, and its members are on {dict(counts)}")
    return problems


def _create_group(cluster: Cluster, built: Built, chance: random.Random) -> str:
    group = str(uuid.UUID(int=chance.getrandbits(128), version=4))
    policy = chance.choice(sorted(_MEMBERS))
    status, answer = cluster.asked("POST", "/v1/groups", {"name": group, "policy": policy, "uuid": group})
    assert status == 201, answer
    built.policies[group] = policy
    return group


def _request_instances(cluster: Cluster, built: Built, number: int, *, flavor: str, group: str) -> str:
    """Request instances of one size, and return the operation."""
    vcpus, memory_mb = _SIZES[flavor]
    body = {"flavor": {"name": flavor, "vcpus": vcpus, "memory_mb": memory_mb}, "name": f"i{len(built.sizes)}"}
    body |= {"count": number} | ({"group": group} if group else {})
    status, answer = cluster.asked("POST", "/v1/instances", body, key=f"build {len(built.sizes)}")
    assert status == 202, answer
    for each in answer["instances"]:
        built.sizes[each] = {"VCPU": vcpus, "MEMORY_MB": memory_mb}
        if group:
            built.groups[each] = group
    return str(answer["operation"])
