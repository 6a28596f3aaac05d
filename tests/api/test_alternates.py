"""Instances that move to alternates keep the rules of their groups and pass the audit."""

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roost.model.host import HostFacts
from roost.store.audit import audit
from tests.support.fleets.worlds import group, host, merge_fleets
from tests.support.servers.in_process_api import roost_api

GROUPS = {"apart": "anti-affinity", "pairs": "anti-affinity", "near": "affinity", "soft": "soft-affinity"}
FLEET = merge_fleets(
    *(host(f"h{n}", VCPU=4, MEMORY_MB=64, facts=HostFacts(rack=f"r{n // 2}")) for n in range(5)),
    group("apart", "anti-affinity"),
    group("pairs", "anti-affinity", 2),
    group("near", "affinity"),
    group("soft", "soft-affinity"),
    group("racks", "fault-domain"),
)
ACTS = st.lists(
    st.one_of(
        st.tuples(st.just("place"), st.sampled_from([*GROUPS, "racks", None]), st.integers(1, 2)),
        st.tuples(st.just("next"), st.integers(0, 20), st.integers(0, 1)),
        st.tuples(st.just("delete"), st.integers(0, 20), st.just(0)),
    ),
    max_size=14,
)


def decide(own, group_name, count=1, domain="x"):
    """Decide on members of a group; return the decision."""
    body = {"flavor": {"name": "one", "vcpus": 1, "memory_mb": 1}, "count": count}
    if group_name is not None:
        body |= {"group": group_name, "hints": {"fault_domain": domain}}
    return own.post("/decisions", body).json


def members(own):
    """Return the number of members of each group on each host."""

    def count(roost):
        nodes = roost.state.hosts.nodes
        groups = roost.state.groups.values()
        return {each.name: Counter({nodes[row]: number for row, number in each.members.items()}) for each in groups}

    return own.in_thread(count)


def check(own):
    """Check the rules of all groups."""
    counts = members(own)
    assert max(counts["apart"].values(), default=0) <= 1
    assert max(counts["pairs"].values(), default=0) <= 2
    assert len(+counts["near"]) <= 1
    assert max(own.in_thread(lambda roost: roost.state.hosts.columns["num_instances"].view.tolist())) <= 4


@settings(max_examples=30)
@given(ACTS)
def test_group_rules_hold_after_random_decisions_moves_and_deletions(tmp_path_factory, acts):
    path = tmp_path_factory.mktemp("alternates") / "roost.db"
    decisions = []
    with roost_api(FLEET, url=path) as own:
        for act, choice, number in acts:
            if act == "place":
                decisions.append(decide(own, choice, number, domain="xy"[len(decisions) % 2]))
            elif decisions:
                picks = decisions[choice % len(decisions)]["picks"]
                if picks and act == "next":
                    uuid = picks[number % len(picks)]["instance_uuid"]
                    path_ = f"/decisions/{decisions[choice % len(decisions)]['uuid']}/next"
                    assert own.post(path_, {"instance_uuid": uuid}).status in {200, 409}
                elif picks:
                    assert own.delete(f"/instances/{picks[0]['instance_uuid']}").status in {204, 404}
            check(own)
        before = members(own)
    assert audit(str(path)) == []
    with roost_api(url=path) as own:
        assert {name: +each for name, each in members(own).items()} == {name: +each for name, each in before.items()}


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_group_rules_hold_under_concurrent_clients(kind, tmp_path, request):
    url = request.getfixturevalue("postgres_url") if kind == "postgresql" else tmp_path / "roost.db"
    with roost_api(FLEET, url=url) as own:
        if kind == "postgresql":
            with roost_api(url=url) as other:
                run_concurrent_clients(own, other)
        else:
            run_concurrent_clients(own, own)
        check(own)


def run_concurrent_clients(*apis):
    """Place, move and delete members of the same groups from several clients at once."""
    gate = threading.Barrier(8)

    def work(number):
        own, name = apis[number % 2], list(GROUPS)[number % 4]
        gate.wait()
        for _ in range(5):
            decision = decide(own, name)
            if decision.get("outcome") != "granted":
                continue
            for _ in range(2):
                assert own.post(f"/decisions/{decision['uuid']}/next").status in {200, 409}
            if number < 4:
                assert own.delete(f"/instances/{decision['picks'][0]['instance_uuid']}").status == 204

    with ThreadPoolExecutor(8) as clients:
        list(clients.map(work, range(8)))
