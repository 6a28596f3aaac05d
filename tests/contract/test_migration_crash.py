"""After a crash at any commit of a move, the next conductor continues: no guest runs twice, nothing is leaked."""

from functools import partial

import pytest

from roost.errors import Conflict
from roost.store.audit import audit, orphans
from tests.contract import commit_failures
from tests.contract.stores import MemoryWorld, SqliteWorld
from tests.support.conductors.conductors import failure
from tests.support.conductors.move_servers import run_agents_until_idle
from tests.support.conductors.resize_servers import instance_summary, request_resize, resize_agents
from tests.support.fleets.named_uuids import uuid_named
from tests.support.fleets.worlds import group, host, merge_fleets

pytestmark = pytest.mark.long

COMMITS_MAX = 80


def open_server(world, hands):
    """Return a server on the database with all agents connected."""
    return commit_failures.open_server(world, hands.values())


def run_until_idle(server, *, hands, kind, key, script, **more):
    """Request a move, possibly again with the same key, and run until all parts are idle.

    With ``is_lost`` the current host leaves before the request and returns afterwards.
    """
    lost_agent = hands[server.status("one").host] if more.get("is_lost") else None
    if (
        lost_agent is not None
        and server.status("one").status == "VERIFY_RESIZE"
        and not server.status("one").operation_id
    ):
        lost_agent.leave()
        for copy in lost_agent.copies.values():
            copy.state = "stopped"
    request_resize(server, kind, "one", key=key, **more)
    run_agents_until_idle(server, hands, script)
    for hand in hands.values() if lost_agent is not None else ():
        if server.reader.agent(hand.host).state != "ready":  # Or it missed the reply to its registration.
            hand.known = []
            hand.register()
            run_agents_until_idle(server, hands, script)


STORIES = {
    "confirmed": (("resize", {"vcpus": 2}), ("confirm", {})),
    "reverted": (("resize", {"vcpus": 2}), ("revert", {})),
    "lost": (("resize", {"vcpus": 2}), ("revert", {"is_lost": True})),
    "migrated": (("migrate", {}),),
    "undone": (("migrate", {}),),
    "onward": (("migrate", {}),),
}
FAILING_ACTIONS = {"undone": "finish", "onward": "prepare"}


@pytest.mark.parametrize("is_made", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("story", STORIES)
def test_move_survives_a_crash_at_every_commit(story, is_made):
    check_crashes(MemoryWorld(), story, is_made=is_made, stride=1)


@pytest.mark.parametrize(("story", "is_made"), [("confirmed", True), ("undone", False), ("lost", True)])
def test_move_survives_crashes_on_durable_databases(durable, story, is_made):
    check_crashes(durable, story, is_made=is_made, stride=4)
    where = str(durable.path) if isinstance(durable, SqliteWorld) else durable.url
    assert (audit(where), orphans(where)) == ([], [])


def check_crashes(world, story, *, is_made, stride):
    """Repeat a move with a crash at another commit each time."""
    hands = {}
    with open_server(world, hands) as server:
        hosts = [host(f"h{number}", VCPU=4, MEMORY_MB=99 - number) for number in range(3)]
        server.run(lambda _current: server.roost.install(merge_fleets(*hosts, group("g", "anti-affinity"))))
        hands = resize_agents(server, "h0", "h1", "h2")
        server.build("one", in_group="g")
        run_agents_until_idle(server, hands)
    crash_count, hand = 0, next(iter(hands.values()))
    for at in range(1, COMMITS_MAX, stride):
        with open_server(world, hands) as server:
            source, size = server.status("one").host, server.used()["VCPU"]
        act = FAILING_ACTIONS.get(story)
        others = [name for name in hands if name != source]
        script = (
            {(name, act): [failure("no disk")] for name in (others if story == "undone" else others[:1])} if act else {}
        )
        crashes = []
        for kind, more in STORIES[story]:
            work = partial(run_until_idle, hands=hands, kind=kind, key=f"{kind} {at}", script=script, **more)
            crashes.append(commit_failures.run_with_commit_failure(world, hands.values(), work, at=at, is_made=is_made))
        with open_server(world, hands) as server:
            check_instance(server, hands)
            assert story not in {"undone", "reverted", "lost"} or server.status("one").host == source
            assert story not in {"migrated", "onward"} or server.status("one").host != source
            assert server.used()["VCPU"] == (2 if story == "confirmed" else size)
        crash_count += sum(crashes)
        if not any(crashes) or (story == "confirmed" and crash_count > 24):
            break
        if story == "confirmed":  # Resize back, because the next resize needs another size.
            with open_server(world, hands) as server:
                request_resize(server, "resize", "one", vcpus=1, key=f"back {at}")
                run_agents_until_idle(server, hands)
                request_resize(server, "confirm", "one", key=f"back for good {at}")
                run_agents_until_idle(server, hands)
    assert crash_count >= 10 // stride
    assert set(hand.most_running.values()) == {1}


@pytest.mark.parametrize("end", ["confirm", "revert"])
def test_affinity_group_of_one_is_closed_while_its_member_moves(durable, end):
    with open_server(durable, {}) as server:
        hosts = [host(f"h{number}", VCPU=4, MEMORY_MB=99 - number) for number in range(3)]
        server.run(lambda _current: server.roost.install(merge_fleets(*hosts, group("g", "affinity"))))
        hands = resize_agents(server, "h0", "h1", "h2")
        server.build("one", in_group="g", force_hosts=("h0",))
        run_agents_until_idle(server, hands)
        request_resize(server, "migrate", "one", host="h1", is_verified=True)
        run_agents_until_idle(server, hands)
    where = str(durable.path) if isinstance(durable, SqliteWorld) else durable.url
    assert audit(where) == []
    with open_server(durable, hands) as server:
        for number in range(3):
            server.build(f"near {number}", key=f"near {number}", in_group="g", force_hosts=(f"h{number}",))
        run_agents_until_idle(server, hands)
        assert [instance_summary(server, f"near {number}")[0] for number in range(3)] == ["ERROR"] * 3
        request_resize(server, end, "one")
        run_agents_until_idle(server, hands)
        server.build("two", key="two", in_group="g")
        run_agents_until_idle(server, hands)
        assert instance_summary(server, "two")[:2] == ("ACTIVE", "h1" if end == "confirm" else "h0")
    assert (audit(where), orphans(where)) == ([], [])


def check_instance(server, hands):
    """Assert that the instance runs only on its host, and that there are no other allocations."""
    status, where, _ = instance_summary(server, "one")
    assert status == "ACTIVE"
    assert {name: hand.guests for name, hand in hands.items() if hand.guests} == {where: {uuid_named("one"): "running"}}
    assert server.held("one")[0] == where
    assert server.run(lambda current: len(current.state.holders)) == 1
    assert server.open_operations() == []
    migration_uuid = server.status("one").migration_uuid
    assert migration_uuid is None or server.reader.migration(migration_uuid).status == "confirmed"


def test_second_move_request_with_another_key_is_refused(world):
    hands = {}
    with open_server(world, hands) as server:
        server.run(lambda _current: server.roost.install(merge_fleets(host("h0"), host("h1"))))
        hands = resize_agents(server, "h0", "h1")
        server.build("one")
        run_agents_until_idle(server, hands)
        request_resize(server, "migrate", "one", key="first")
        with pytest.raises(Conflict, match="cannot resize now: its task is migrating"):
            request_resize(server, "resize", "one", vcpus=2, key="second")
        run_agents_until_idle(server, hands)
        assert server.status("one").status == "ACTIVE"
