"""Decisions on an exported document equal those on the live fleet; hosts without providers match Nova's handlers."""

from random import Random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roost.compat.adapter import adapt
from roost.compat.objects import InstanceGroup, RequestSpec
from roost.compat.scheduler.host_manager import HostAggregate, HostManager, HostState
from roost.model.documents.fleet_document import FleetDocument
from roost.model.documents.request_document import RequestDocument
from roost.model.request import Request
from roost.offline.decide import decide
from roost.offline.read_document import parse_document
from roost.scheduler.explain.fleet_export import export_fleet
from roost.scheduler.explain.frozen_clock import FixedRandom
from roost.simulator.traces.generated_workload import Recipe, generate
from roost.simulator.workload import Options
from tests.reference.plain_worlds import FILTERS, fleet_of, random_wish, random_world, request_of
from tests.support.fleets.worlds import roost_on, settings_of

pytestmark = pytest.mark.long


def document_of_request(request: Request) -> RequestDocument:
    """Convert a request to a document, through JSON."""
    body = msgspec.to_builtins(request)
    body["resource_groups"] = body.pop("groups")
    return parse_document(msgspec.json.encode(body), RequestDocument, name="request")


def decision_content(decision):
    """Return the content of a decision that an offline answer also has."""
    return {
        "outcome": decision.outcome,
        "reason": decision.reason,
        "picks": [(pick.host, pick.node, pick.cell, pick.allocations) for pick in decision.picks],
        "alternates": {
            cell: [(pick.host, pick.node, pick.cell, pick.allocations) for pick in picks]
            for cell, picks in decision.alternates.items()
        },
        "stages": [(stage.rule, stage.before, stage.after, stage.reason) for stage in decision.stages],
        "best": [(score.host, score.total) for score in decision.best] if decision.is_granted else [],
        "warnings": decision.warnings,
        "seed": decision.seed,
    }


def answer_content(answer):
    """Return the content of an offline answer in the form of ``decision_content``."""

    def pick(each):
        return each.host, each.nodename, each.cell_uuid, {share.uuid: share.resources for share in each.allocations}

    return {
        "outcome": answer.outcome,
        "reason": answer.reason,
        "picks": [pick(each) for each in answer.picks],
        "alternates": {cell: [pick(each) for each in picks] for cell, picks in answer.alternates.items()},
        "stages": [(stage.rule, stage.before, stage.after, stage.reason) for stage in answer.stages],
        "best": [(host.host, host.total) for host in answer.ranking[:5]],
        "warnings": list(answer.warnings),
        "seed": answer.seed,
    }


def check_like_live(roost, request: Request, settings, *, seed: int) -> str:
    """Compare a decision on the exported document with a dry run; return the outcome."""
    body = msgspec.json.encode(export_fleet(roost.state, now_s=1000.0))
    fleet = parse_document(body, FleetDocument, name="fleet")
    live = roost.fork(random=FixedRandom(seed)).decide(request)
    answer = decide(fleet, document_of_request(request), settings, seed=seed)
    assert answer_content(answer) == decision_content(live)
    check_evidence(answer)
    return answer.outcome


def check_evidence(answer) -> None:
    """Check that the parts of an answer are consistent."""
    for stage in answer.stages:
        assert len(stage.refused) == stage.before - stage.after
    if answer.outcome == "granted":
        assert len(answer.ranking) == answer.stages[-1].after
    totals = [host.total for host in answer.ranking]
    assert totals == sorted(totals, reverse=True)
    for host in answer.ranking:
        assert sum(cell.contribution for cell in host.weights) == pytest.approx(host.total)
        assert len(host.weights) in {0, len(answer.settings.weighers)}


def export_and_compare(seed: int, draw: int) -> None:
    """Compare decisions on a random world with decisions on its exported document."""
    random = Random(seed)
    world = random_world(random)
    settings = settings_of(
        enabled_filters=FILTERS,
        host_subset_size=random.choice((1, 1, 3)),
        shuffle=random.random() < 0.3,
        options={"image_props_weight_multiplier": random.choice((0.0, 5.0))},
    )
    roost = roost_on(settings=settings, seed=seed)
    roost.install(fleet_of(world))
    if not world.hosts:
        return
    roost.outcomes([request_of(random_wish(random, world)) for _ in range(random.choice((0, 3, 12)))])
    for _ in range(4):
        request = request_of(random_wish(random, world))
        check_like_live(roost, request, settings, seed=draw)


@settings(max_examples=40)
@given(st.integers(0, 2**32), st.integers(0, 2**32))
def test_exported_document_decides_like_the_live_fleet(seed, draw):
    export_and_compare(seed, draw)


@pytest.mark.soak
@settings(max_examples=2_000)
@given(st.integers(0, 2**32), st.integers(0, 2**32))
def test_exported_document_decides_like_the_live_fleet_in_long_runs(seed, draw):
    export_and_compare(seed, draw)


def test_document_of_generated_fleet_decides_like_the_fleet():
    workload = generate(Recipe(hosts=60, requests=500, seed=4), Options())
    settings = settings_of()
    roost = roost_on(settings=settings)
    roost.install(workload.fleet)
    events = [event.act for event in workload.events]
    outcomes = set()
    for start in range(0, 480, 40):
        roost.outcomes(events[start : start + 40])
        later = [act for act in events[start + 40 :] if isinstance(act, Request)][:3]
        outcomes |= {check_like_live(roost, request, settings, seed=start) for request in later}
    assert outcomes == {"granted", "refused"}


NAMES = ("a", "b", "c", "d", "e", "f")
GROUP = "00000000-0000-4000-8000-0000000000aa"


def random_hosts(random: Random) -> list[dict[str, object]]:
    """Return random hosts of a document, each with some fields omitted."""
    found = []
    for name in random.sample(NAMES, random.randint(1, len(NAMES))):
        fields = {
            "vcpus_total": random.choice((4, 8)),
            "vcpus_used": random.choice((0, 3, 9)),
            "total_usable_ram_mb": 4096,
            "free_ram_mb": random.choice((-512, 1024, 2048, 4096)),
            "total_usable_disk_gb": 100,
            "free_disk_mb": random.choice((-1024, 0, 51200)),
            "disk_mb_used": random.choice((0, 1024)),
            "cpu_allocation_ratio": random.choice((1.0, 2.5, 16.0)),
            "ram_allocation_ratio": random.choice((0.5, 1.5)),
            "num_instances": random.choice((0, 2)),
            "num_io_ops": random.choice((0, 3)),
            "failed_builds": random.choice((0, 0, 1)),
            "hypervisor_type": "QEMU",
            "hypervisor_version": random.choice((1002003, 2000000)),
            "supported_instances": [["x86_64", "kvm", "hvm"]],
            "stats": {"tier": random.choice(("gold", "tin"))},
            "metrics": {"load": random.choice((0.5, 1.0))},
            "pci_pools": [{"vendor_id": "8086", "product_id": "154c", "count": random.choice((1, 50, 150))}],
            "cpu_info": {"model": random.choice(("Nehalem", "EPYC"))},
            "service": {"disabled": random.random() < 0.2},
        }
        found.append({"host": name} | {key: value for key, value in fields.items() if random.random() < 0.8})
    return found


def host_state(fields: dict, aggregates: list[HostAggregate], instances: list[str]) -> HostState:
    """Return a host of a document as an object of Nova's class, with the document's defaults."""
    values = {"total_usable_ram_mb": 0, "total_usable_disk_gb": 0, "disk_mb_used": 0} | fields
    values["pci_stats"] = values.pop("pci_pools", None)
    values.setdefault("free_ram_mb", values["total_usable_ram_mb"])
    values.setdefault("free_disk_mb", 1024 * values["total_usable_disk_gb"] - values["disk_mb_used"])
    values.setdefault("num_instances", len(instances))
    state = HostState(nodename=values["host"], **values)
    state.aggregates, state.instances = aggregates, dict.fromkeys(instances)
    return state


@given(st.integers(0, 2**32))
def test_hosts_without_providers_match_novas_handlers(seed):
    random = Random(seed)
    hosts = random_hosts(random)
    names = [host["host"] for host in hosts]
    aggregates = [
        HostAggregate(name=f"agg-{number}", metadata={random.choice(("ram", "cpu")) + "_weight_multiplier": "2.0"})
        for number in range(random.choice((0, 2)))
    ]
    inside = {aggregate.name: [name for name in names if random.random() < 0.5] for aggregate in aggregates}
    policy = random.choice(("affinity", "anti-affinity", "soft-affinity", "soft-anti-affinity"))
    members = {name: [f"00000000-0000-4000-8000-{at:012d}"] for at, name in enumerate(names) if random.random() < 0.4}
    fleet = {
        "now": 1000.0,
        "hosts": hosts,
        "aggregates": [
            {"name": each.name, "metadata": each.metadata, "hosts": inside[each.name]} for each in aggregates
        ],
        "server_groups": [{"uuid": GROUP, "policy": policy, "members": members}],
    }
    extra_specs = random.choice(({}, {"capabilities:free_ram_mb": ">= 2000"}, {"capabilities:stats:tier": "gold"}))
    request = {
        "flavor": {"vcpus": 1, "memory_mb": 512, "extra_specs": extra_specs},
        "image": random.choice((None, {"properties": {"hw_architecture": "x86_64"}})),
        "ignore_hosts": random.choice(([], [names[0].upper()])),
        "group": random.choice((None, GROUP)),
    }
    settings = settings_of()
    answer = decide(
        parse_document(msgspec.json.encode(fleet), FleetDocument, name="fleet"),
        parse_document(msgspec.json.encode(request), RequestDocument, name="request"),
        settings,
    )
    check_evidence(answer)
    states = [
        host_state(each, [one for one in aggregates if each["host"] in inside[one.name]], members.get(each["host"], []))
        for each in hosts
    ]
    left, weighed = decide_with_handlers(states, request, settings, policy=policy, members=members)
    refused = {host.host for stage in answer.stages for host in stage.refused}
    assert set(names) - refused == left
    assert [host.host for host in answer.ranking] == [name for name, _ in weighed]
    assert [host.total for host in answer.ranking] == pytest.approx([weight for _, weight in weighed])
    assert [pick.host for pick in answer.picks] == [name for name, _ in weighed[:1]]


def decide_with_handlers(states, request, settings, *, policy, members):
    """Return the hosts that Nova's handlers accept, and their weights, best first."""
    body = {**request, "flavor": {"name": "", **request["flavor"]}, "group": None}
    wanted = RequestSpec.from_request(msgspec.convert(body, Request))
    if request["group"]:
        wanted.instance_group = InstanceGroup(
            uuid=GROUP, policy=policy, members=[uuid for each in members.values() for uuid in each], hosts=list(members)
        )
    manager = HostManager(lambda: states, settings=settings, adapt=adapt)
    kept = manager.get_filtered_hosts(states, wanted)
    weighed = manager.get_weighed_hosts(kept, wanted)
    return {host.host for host in kept}, [(each.obj.host, each.weight) for each in weighed]
