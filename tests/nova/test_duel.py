"""The duel: nova-scheduler and Roost decide the same requests on the same databases and the same Placement records.

By hand, with more requests: ``ROOST_DUEL=2000 pytest -m differential tests/nova/test_duel.py``.
"""

import json
import os
from collections import Counter

import pytest

from tests.nova.duel_worlds import DuelWorld
from tests.nova.nova_clouds import FILTERS
from tests.nova.nova_schedulers import open_duel

pytestmark = pytest.mark.differential

REQUESTS = int(os.environ.get("ROOST_DUEL", "200"))
REQUESTS_PER_WORLD = 20
SEED = os.environ.get("ROOST_DUEL_SEED", "9")
MORE_FILTERS = ("AggregateInstanceExtraSpecsFilter", "SameHostFilter", "DifferentHostFilter", "JsonFilter")
# Of a request that Placement refuses, nova-scheduler gives no reason.
MEANT = {("NoValidHost: ", "NoValidHost: a trait is both required and forbidden: HW_CPU_X86_AVX2")}
# Fields of a Selection, except of its texts in JSON.
FIELDS = (
    "compute_node_uuid",
    "service_host",
    "nodename",
    "cell_uuid",
    "availability_zone",
    "allocation_request_version",
)


@pytest.fixture(scope="module")
def duel(shared_broker, tmp_path_factory):
    """Yield a cloud that Roost serves, and a caller of nova-scheduler on the same cloud."""
    options = {"filter_scheduler": {"enabled_filters": ",".join((*FILTERS, *MORE_FILTERS))}}
    with open_duel(shared_broker, tmp_path_factory, "duel", options) as (cloud, caller):
        cloud.placement("PUT", "/resource_classes/CUSTOM_GADGET")
        yield cloud, caller


def outcome(cloud, world, caller, uuids, fields):
    """Return the selections of a scheduler or its failure, and take its claims back."""
    reply = caller.wait(cloud.send(*uuids, caller=caller, **fields))[-1]
    if reply["failure"] is not None:
        failure = json.loads(reply["failure"])
        return None, f"{failure['class']}: {failure['kwargs'].get('reason', failure['message'])}"
    world.release(*uuids)
    return [[each["nova_object.data"] for each in instance] for instance in reply["result"]], ""


def facts_of(selection):
    """Return a selection as values that can be compared."""
    claim = json.loads(selection["allocation_request"])
    return {name: selection[name] for name in FIELDS} | {
        "claim": claim,
        "limits": selection["limits"]["nova_object.data"],
    }


def totals_of(cloud):
    """Return the total weights of the best hosts in Roost's newest decision."""
    status, _, answer = cloud.server.ask("GET", "/v1/decisions?limit=1")
    assert status == 200
    return {score["host"]: score["total"] for score in answer["decisions"][0]["scores"]}


def compare(cloud, theirs, ours):
    """Return what differs, in one line; empty: nothing but the order of equals."""
    (nova, nova_reason), (roost, roost_reason) = theirs, ours
    if nova is None or roost is None:
        same = nova_reason == roost_reason or (nova_reason, roost_reason) in MEANT
        return "" if same else f"nova: {nova_reason or names(nova)}; roost: {roost_reason or names(roost)}"
    differing = [at for at, (one, other) in enumerate(zip(nova, roost, strict=True)) if one[0] != other[0]]
    for at in differing:
        one, other = nova[at][0], roost[at][0]
        if one["service_host"] == other["service_host"]:
            before, after = facts_of(one), facts_of(other)
            parts = [name for name in before if before[name] != after[name]]
            if parts:
                return f"fields of {one['service_host']}: " + "; ".join(
                    f"{name} {before[name]} / {after[name]}" for name in parts
                )
        elif at == 0:
            totals = totals_of(cloud)
            if totals.get(one["service_host"]) != totals.get(other["service_host"]):
                return f"hosts: nova {names(nova)}, roost {names(roost)}, weights of roost {totals}"
            break  # Later instances depend on the choice among equals.
    counts = [[len(each) for each in selections] for selections in (nova, roost)]
    if counts[0] != counts[1]:
        return f"alternates: nova {names(nova)}, roost {names(roost)}"
    return ""


def names(selections):
    """Return the names of the hosts."""
    return [[each["service_host"] for each in instance] for instance in selections]


def test_both_choose_the_same_hosts_and_refuse_the_same_requests(duel):
    cloud, caller = duel
    (cell,) = cloud.database.cells
    differences, kinds = [], Counter()
    for number in range(-(-REQUESTS // REQUESTS_PER_WORLD)):
        world = DuelWorld(cloud, cell, f"{SEED}.{number}")
        for turn in range(min(REQUESTS_PER_WORLD, REQUESTS)):
            kind, uuids, fields = world.request()
            first, second = (caller, cloud.caller) if turn % 2 else (cloud.caller, caller)
            results = {id(each): outcome(cloud, world, each, uuids, fields) for each in (first, second)}
            world.end_request()
            theirs, ours = results[id(caller)], results[id(cloud.caller)]
            kinds["granted" if theirs[0] else theirs[1]] += 1
            difference = compare(cloud, theirs, ours)
            if difference:
                differences.append(f"seed {SEED}.{number}, request {turn}, {kind} x{len(uuids)}: {difference}")
                print(differences[-1])
    print(f"seed {SEED}: {kinds.total()} requests, {len(differences)} differ; nova's outcomes: {dict(kinds)}")
    assert not differences, "\n".join(differences)
    # Neither outcome is rare, so the seed has requests of both kinds.
    assert 0 < kinds["granted"] < kinds.total()
