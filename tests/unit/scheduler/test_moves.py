"""Moves: one commit claims the new host of an instance and releases the old one."""

import pytest

from roost.errors import BadRequest, Conflict, NotFound
from roost.model.fleet import Departure
from roost.model.names import uuid_bytes
from roost.model.request import Destination, Move
from roost.placement.current import Current
from roost.store.sqlite.store import SqliteStore
from tests.support.databases.racing_stores import RacyStore
from tests.support.fleets.worlds import (
    chosen_hosts,
    digest,
    group,
    host,
    hosts,
    roost_on,
    roost_with,
    small_request,
    uuid_named,
)

ME, OTHER, MIGRATION = (uuid_named(name) for name in ("me", "other", "migration"))


def move(uuid=ME, *, migration_uuid=None, may_stay=False, **request):
    return small_request(move=Move(instance_uuid=uuid, migration_uuid=migration_uuid, may_stay=may_stay), **request)


def vcpus_by_host(roost):
    state = roost.state
    columns = state.classes[state.class_ids.id_of("VCPU")]
    return {name: columns.used.view[row] for row, name in enumerate(state.providers.names)}


def place(roost, uuid=ME, **request):
    return chosen_hosts(roost.decide(small_request(instance_uuids=(uuid,), **request)))[0]


def test_move_claims_and_releases_in_one_commit(tmp_path):
    store = SqliteStore(tmp_path / "roost.db")
    with roost_with(hosts(2), store=store) as roost:
        assert place(roost) == "h0"
        decision = roost.decide(move())
        assert chosen_hosts(decision) == ["h1"]
        assert decision.picks[0].instance_uuid == ME
        assert vcpus_by_host(roost) == {"h0": 0, "h1": 1}
        before = digest(roost.state)
    with roost_on(SqliteStore(tmp_path / "roost.db")) as roost:
        assert digest(roost.state) == before
        assert chosen_hosts(roost.decide(move())) == ["h0"]
        roost.work([Departure(instance_uuids=(ME,))])
        assert vcpus_by_host(roost) == {"h0": 0, "h1": 0}


def test_migration_holds_the_source_resources_until_it_departs():
    roost = roost_with(hosts(3))
    place(roost, vcpus=2)
    assert chosen_hosts(roost.decide(move(migration_uuid=MIGRATION, vcpus=3))) == ["h1"]
    assert vcpus_by_host(roost) == {"h0": 2, "h1": 3, "h2": 0}
    holder = roost.state.holders[uuid_bytes(MIGRATION)]
    assert (holder.instance, holder.project_id) == (None, roost.state.holders[uuid_bytes(ME)].project_id)
    roost.work([Departure(instance_uuids=(MIGRATION,))])
    assert vcpus_by_host(roost) == {"h0": 0, "h1": 3, "h2": 0}


def test_migration_with_the_uuid_of_the_instance_lets_the_instance_hold_both():
    roost = roost_with(hosts(3))
    place(roost)
    generation = roost.state.holders[uuid_bytes(ME)].generation
    assert chosen_hosts(roost.decide(move(migration_uuid=ME, vcpus=3))) == ["h1"]
    assert vcpus_by_host(roost) == {"h0": 1, "h1": 3, "h2": 0}
    holder = roost.state.holders[uuid_bytes(ME)]
    assert (holder.generation, holder.instance.host_id) == (generation + 1, roost.state.hosts.ids[1])
    roost.work([Departure(instance_uuids=(ME,))])
    assert vcpus_by_host(roost) == {"h0": 0, "h1": 0, "h2": 0}


def test_instance_stays_on_its_host_only_if_may_stay_is_set():
    roost = roost_with(hosts(1))
    place(roost)
    refusal = roost.decide(move())
    assert refusal.reason == "0 of 1 hosts: 1 holds the moving instance"
    assert vcpus_by_host(roost) == {"h0": 1}
    assert chosen_hosts(roost.decide(move(may_stay=True, vcpus=3))) == ["h0"]
    assert vcpus_by_host(roost) == {"h0": 3}


def test_dry_run_of_a_move_changes_nothing_and_picks_the_same_host():
    roost = roost_with(hosts(3))
    place(roost)
    before = digest(roost.state)
    dry = roost.decide(move(), dry_run=True)
    assert digest(roost.state) == before
    assert chosen_hosts(dry) == chosen_hosts(roost.decide(move()))


def test_stored_move_replays_to_the_same_decision():
    roost = roost_with(hosts(2))
    place(roost)
    for each in (move(), move(vcpus=9)):
        decision = roost.decide(each)
        again = roost.replay(decision.uuid)
        assert again.is_same, again


@pytest.mark.parametrize(
    ("request_", "error", "text"),
    [
        (move("nonsense"), BadRequest, "the instance 'nonsense' is not a valid UUID"),
        (move(OTHER), NotFound, OTHER),
        (move(migration_uuid="nonsense"), BadRequest, "the migration 'nonsense' is not a valid UUID"),
        (move(migration_uuid=OTHER), Conflict, f"the consumer {OTHER} exists already"),
    ],
)
def test_invalid_move_is_an_error_and_changes_nothing(request_, error, text):
    roost = roost_with(hosts(2))
    place(roost)
    if request_.move.migration_uuid == OTHER:
        place(roost, OTHER)
    before = digest(roost.state)
    with pytest.raises(error, match=text):
        roost.decide(request_)
    assert digest(roost.state) == before


def test_one_instance_moves_at_a_time():
    for wrong in ({"count": 2}, {"instance_uuids": (OTHER,)}):
        with pytest.raises(ValueError, match="one instance moves at a time"):
            move(**wrong)


@pytest.mark.parametrize(
    ("policy", "expected"), [("anti-affinity", "h2"), ("affinity", None), ("soft-affinity", "h1"), (None, "h2")]
)
def test_move_obeys_the_server_group_policy(policy, expected):
    roost = roost_with(hosts(3), *([] if policy is None else [group("g", policy)]))
    name = None if policy is None else "g"
    place(roost, in_group=name)
    place(roost, OTHER, in_group=name, force_hosts=() if policy == "affinity" else ("h1",))
    decision = roost.decide(move(ignore_hosts=("h0",)))
    assert chosen_hosts(decision) == ([] if expected is None else [expected])
    if policy is not None:
        assert sum(roost.state.groups_by_uuid[uuid_named("g")].members.values()) == 2


def test_only_member_moves_its_affinity_group_to_the_new_host():
    roost = roost_with(hosts(3), group("g", "affinity"))
    place(roost, in_group="g")
    assert chosen_hosts(roost.decide(move())) == ["h1"]
    assert place(roost, OTHER, in_group="g") == "h1"


def test_acts_in_one_batch_see_earlier_acts():
    roost = roost_with(hosts(3))
    arrival, first, second = roost.work([small_request(instance_uuids=(ME,)), move(), move(ignore_hosts=("h0",))])
    assert [chosen_hosts(each) for each in (arrival, first, second)] == [["h0"], ["h1"], ["h2"]]
    roost.work([move(), Departure(instance_uuids=(ME,))])
    assert vcpus_by_host(roost) == {"h0": 0, "h1": 0, "h2": 0}


def roost_and_rival(*fleets):
    store = RacyStore()
    return roost_with(*fleets, store=store), store, roost_on(store.peer(), seed=99)


def agrees_with_store(roost, store):
    roost.work([])
    return digest(roost.state) == digest(Current(store.peer()).state)


def test_move_that_loses_a_race_picks_another_host():
    roost, store, rival = roost_and_rival(
        host("a", VCPU=1, MEMORY_MB=9), host("b", VCPU=1, MEMORY_MB=8), host("c", VCPU=1, MEMORY_MB=7)
    )
    place(roost)
    store.rivals = [lambda: rival.decide(small_request(force_hosts=("b",)))]
    decision = roost.decide(move(migration_uuid=MIGRATION))
    assert (chosen_hosts(decision), decision.conflicts) == (["c"], ["b"])
    assert vcpus_by_host(roost) == {"a": 1, "b": 1, "c": 1}
    assert agrees_with_store(roost, store)


def test_move_that_loses_the_last_host_leaves_the_instance_in_place():
    roost, store, rival = roost_and_rival(host("a", VCPU=1, MEMORY_MB=9), host("b", VCPU=1, MEMORY_MB=8))
    place(roost)
    store.rivals = [lambda: rival.decide(small_request(force_hosts=("b",)))]
    assert not roost.decide(move()).is_granted
    assert vcpus_by_host(roost) == {"a": 1, "b": 1}
    assert agrees_with_store(roost, store)


@pytest.mark.parametrize("act", [Departure(instance_uuids=(ME,)), move(ignore_hosts=("h1",))])
def test_move_after_a_concurrent_departure_or_move(act):
    roost, store, rival = roost_and_rival(hosts(3))
    place(roost)
    rival.work([])
    store.rivals = [lambda: rival.work([act])]
    if isinstance(act, Departure):
        with pytest.raises(NotFound, match=ME):
            roost.decide(move())
    else:
        assert chosen_hosts(roost.decide(move())) == ["h0"]  # the other process had moved it to h2
    assert agrees_with_store(roost, store)
    assert sum(vcpus_by_host(roost).values()) == (0 if isinstance(act, Departure) else 1)


def test_concurrent_moves_of_group_members_obey_anti_affinity():
    roost, store, rival = roost_and_rival(hosts(3), group("g", "anti-affinity"))
    place(roost, in_group="g")
    place(roost, OTHER, in_group="g")
    store.rivals = [lambda: rival.decide(move(OTHER))]
    assert chosen_hosts(roost.decide(move())) == ["h1"]  # the other member already took h2
    assert agrees_with_store(roost, store)
    assert roost.state.groups_by_uuid[uuid_named("g")].members == {1: 1, 2: 1}


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"ignore_hosts": ("h1",)}, "2 are ignored, or hold the moving instance"),
        (
            {"force_hosts": ("h0",)},
            "1 is not in the requested tree, 1 is outside the requested hosts, or holds the moving instance",
        ),
        (
            {"destination": Destination(cell="none"), "ignore_hosts": ("h0",)},
            "2 are outside the requested cell, are ignored, or hold the moving instance",
        ),
        (
            {"destination": Destination(cell="none", node="h0")},
            "1 is not in the requested tree, 1 is outside the requested hosts or cell, or holds the moving instance",
        ),
    ],
)
def test_refusal_names_only_the_conditions_of_the_request(fields, reason):
    roost = roost_with(hosts(2))
    place(roost)
    assert roost.decide(move(**fields)).reason == f"0 of 2 hosts: {reason}"
