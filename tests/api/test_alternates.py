"""Instances that go on to alternates break no rule of a group, and leave a database that the audit finds nothing in."""

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roost.model.host import HostFacts
from roost.store.audit import audit
from tests.support.fleets.worlds import group, host, joined
from tests.support.servers.in_process_api import asking_own

GROUPS = {"apart": "anti-affinity", "pairs": "anti-affinity", "near": "affinity", "soft": "soft-affinity"}
FLEET = joined(
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


def placed(own, group_name, count=1, domain="x"):
    """Give a decision about members of a group."""
    body = {"flavor": {"name": "one", "vcpus": 1, "memory_mb": 1}, "count": count}
    if group_name is not None:
        body |= {"group": group_name, "hints": {"fault_domain": domain}}
    return own.post("/decisions", body).json


def members(own):
    """Give how many members of each group each host has."""

    def count(roost):
        nodes = roost.state.hosts.nodes
        groups = roost.state.groups.values()
        return {each.name: Counter({nodes[row]: number for row, number in each.members.items()}) for each in groups}

    return own.in_thread(count)


def check(own):
    """Hold groups to their rules."""
    found = members(own)
    assert max(found["apart"].values(), default=0) <= 1
    assert max(found["pairs"].values(), default=0) <= 2
    assert len(+found["near"]) <= 1
    assert max(own.in_thread(lambda roost: roost.state.hosts.columns["num_instances"].view.tolist())) <= 4


@settings(max_examples=30)
@given(ACTS)
def test_rules_of_groups_hold_whatever_is_placed_moved_and_deleted(tmp_path_factory, acts):
    path = tmp_path_factory.mktemp("alternates") / "roost.db"
    made = []
    with asking_own(FLEET, url=path) as own:
        for act, which, number in acts:
            if act == "place":
                made.append(placed(own, which, number, domain="xy"[len(made) % 2]))
            elif made:
                picks = made[which % len(made)]["picks"]
                if picks and act == "next":
                    uuid = picks[number % len(picks)]["instance_uuid"]
                    path_ = f"/decisions/{made[which % len(made)]['uuid']}/next"
                    assert own.post(path_, {"instance_uuid": uuid}).status in {200, 409}
                elif picks:
                    assert own.delete(f"/instances/{picks[0]['instance_uuid']}").status in {204, 404}
            check(own)
        before = members(own)
    assert audit(str(path)) == []
    with asking_own(url=path) as own:
        assert {name: +each for name, each in members(own).items()} == {name: +each for name, each in before.items()}


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_rules_of_groups_hold_when_many_place_and_move_at_once(kind, tmp_path, request):
    url = request.getfixturevalue("postgres_url") if kind == "postgresql" else tmp_path / "roost.db"
    with asking_own(FLEET, url=url) as own:
        if kind == "postgresql":
            with asking_own(url=url) as other:
                crowd(own, other)
        else:
            crowd(own, own)
        check(own)


def crowd(*served):
    """Let clients place, move and delete members of the same groups at once."""
    gate = threading.Barrier(8)

    def work(number):
        own, name = served[number % 2], list(GROUPS)[number % 4]
        gate.wait()
        for _ in range(5):
            made = placed(own, name)
            if made.get("outcome") != "granted":
                continue
            for _ in range(2):
                assert own.post(f"/decisions/{made['uuid']}/next").status in {200, 409}
            if number < 4:
                assert own.delete(f"/instances/{made['picks'][0]['instance_uuid']}").status == 204

    with ThreadPoolExecutor(8) as clients:
        list(clients.map(work, range(8)))
