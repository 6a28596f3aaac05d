"""The worked example of candidates: two hosts with children and two shared disks, and queries on it."""

import json

from tests.reference.candidates import SHARES, Node, Stock
from tests.support.fleets.forests import uuid_of

HOST = {"MEMORY_MB": Stock(1024), "DISK_GB": Stock(1000)}
CORES = {"VCPU": Stock(8)}
DISK = {"DISK_GB": Stock(1000)}
A, B = frozenset({"agg-1"}), frozenset({"agg-2"})
WORLD = {
    "cn1": Node(stocks=HOST, aggregates=A | B),
    "cn2": Node(stocks=HOST, aggregates=A),
    "n11": Node(parent="cn1", stocks=CORES, traits=frozenset({"CUSTOM_A"})),
    "n12": Node(parent="cn1", stocks=CORES),
    "n21": Node(parent="cn2", stocks=CORES, aggregates=B),
    "n22": Node(parent="cn2", stocks=CORES),
    "ss": Node(stocks=DISK, aggregates=A, traits=frozenset({SHARES, "CUSTOM_B"})),
    "ssb": Node(stocks=DISK, aggregates=B, traits=frozenset({SHARES})),
}
UUIDS = {name: str(uuid_of(name)) for name in (*WORLD, "agg-1", "agg-2")}


def replace_uuids(text: str) -> str:
    """Replace uuids by their names."""
    for name, uuid in UUIDS.items():
        text = text.replace(uuid, name)
    return text


def query_candidates(columns, query, version=39):
    """Send a query with names in angle brackets instead of uuids; return the reply with names."""
    for name, uuid in UUIDS.items():
        query = query.replace(f"<{name}>", uuid)
    status, body = columns.get(f"/allocation_candidates?{query}", version)
    assert status == 200, body
    return json.loads(replace_uuids(json.dumps(body)))


def allocation_texts(answer):
    """Return the allocations of each candidate as sorted text, provider=CLASS:amount."""
    found = []
    for request in answer["allocation_requests"]:
        allocations = request["allocations"]
        if isinstance(allocations, list):
            allocations = {each["resource_provider"]["uuid"]: each for each in allocations}
        takes = [(name, *take) for name, each in allocations.items() for take in each["resources"].items()]
        found.append(" ".join(f"{name}={kind}:{amount}" for name, kind, amount in sorted(takes)))
    return sorted(found)


def refusal_of(columns, query, version=39):
    """Send a query that is refused; return the code and the text."""
    status, body = columns.get(f"/allocation_candidates?{query}", version)
    assert status == 400, body
    error = body["errors"][0]
    return error.get("code", ""), error["detail"].partition("\n\n ")[2].removesuffix("  ")
