"""The checks of a cluster after the faults."""

from typing import Any

from bench.plan_faults.instances import Built, find_group_problems
from bench.plan_faults.moves import Applied
from tests.support.conductors.idle_cluster import problems_of
from tests.support.conductors.mortal_cluster import Cluster

Rows = list[dict[str, Any]]
_MOVES = {"live_migrate", "migrate", "offload", "unshelve", "evacuate", "spawn"}


def find_problems(cluster: Cluster, built: Built, *, applied: list[Applied], operations: Rows) -> list[str]:
    """Return what is wrong with an idle cluster.

    Args:
        cluster: all its programs run, and nothing is requested.
        built: all its instances.
        applied: the plans and drains.
        operations: all operations.
    """
    instances = cluster.instances()
    problems = [
        f"operation {each['uuid']} ({each['kind']}) is open at {each['step']}"
        for each in operations
        if each["outcome"] == "open"
    ]
    problems += [f"{uuid} was deleted" for uuid in built.sizes if instances.get(uuid, {}).get("status") == "DELETED"]
    sizes = {uuid: (size, size) for uuid, size in built.sizes.items()}
    if unknown := instances.keys() - sizes.keys():
        return [*problems, f"instances that were not requested: {sorted(unknown)}"]
    problems += problems_of(cluster, promised=built.sizes.keys(), ended=set(), sizes=sizes)
    problems += find_group_problems(built, instances)
    for each in applied:
        shown = cluster.asked("GET", f"/v1/operations/{each.operation}")[1]
        problems += find_move_problems(each, shown, operations=operations, instances=instances)
    audit = cluster.audited()
    return [*problems, audit] if audit else problems


def find_move_problems(
    applied: Applied, shown: dict[str, Any], *, operations: Rows, instances: dict[str, dict[str, Any]]
) -> list[str]:
    """Return the moves of a plan without an end, without a reason, or with another result than they have.

    Args:
        applied: the plan; a drain has no moves of its own.
        shown: its operation.
        operations: all operations. Several servers number them in blocks, so their order is not that of time.
        instances: all instances, by uuid.
    """
    if not applied.routes:
        return []
    ended = [each for each in operations if each["kind"] in _MOVES and each["outcome"] == "done"]
    last = {each["instance"]: each["uuid"] for each in sorted(ended, key=lambda each: each["changed_at_s"])}
    parts: dict[str, Rows] = {}
    for each in operations:
        if each["parent"] == applied.operation:
            parts.setdefault(each["instance"], []).append(each)
    moves = {move["instance"]: move for move in shown["plan"]["moves"]}
    problems = []
    if shown["outcome"] != ("done" if {move["state"] for move in moves.values()} <= {"done"} else "failed"):
        problems.append(f"{applied.name} ended as {shown['outcome']}")
    if missing := (applied.routes.keys() ^ moves.keys()) | (parts.keys() - moves.keys()):
        problems.append(f"{applied.name} has other moves than requested: {sorted(missing)}")
    for instance, move in moves.items():
        what = f"{applied.name}: move {move['number']} of {instance} is {move['state']}"
        own = parts.get(instance, [])
        outcomes = [each["outcome"] for each in own]
        allowed = {"done": ([], ["done"]), "failed": ([], ["failed"]), "skipped": ([],)}.get(move["state"], ())
        if outcomes not in allowed:
            problems.append(f"{what}, and its operations are {outcomes}")
        if (move["state"] == "done") is bool(move["problem"]):
            problems.append(f"{what}, and its reason is {move['problem']!r}")
        is_last = outcomes == ["done"] and last.get(instance) == own[0]["uuid"]
        if is_last and (place := instances[instance]["host"]) != move["target"]:
            problems.append(f"{what}, and it is on {place!r}, not on {move['target']!r}")
    return problems
