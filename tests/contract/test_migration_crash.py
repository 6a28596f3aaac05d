"""Whoever dies at whichever commit of a move: the next conductor goes on, nothing runs twice, nothing is leaked."""

from functools import partial

import pytest

from roost.errors import Conflict
from roost.store.audit import audit, orphans
from tests.contract import commit_failures
from tests.contract.stores import MemoryWorld, SqliteWorld
from tests.support.conductors.conductors import failed
from tests.support.conductors.move_servers import at_rest
from tests.support.conductors.resize_servers import ask, keepers, told
from tests.support.fleets.named_uuids import uuid_named
from tests.support.fleets.worlds import group, host, joined

pytestmark = pytest.mark.long

COMMITS_MAX = 80


def opened(world, hands):
    """Give a server on the database, to which agents turn now."""
    return commit_failures.open_server(world, hands.values())


def at_work(server, *, hands, kind, key, script, **more):
    """Let somebody ask for a move, again with the same key, and everybody do what there is to do.

    A host that is lost is gone when that is asked, and is back when it is done.
    """
    gone = hands[server.status("one").host] if more.get("is_lost") else None
    if gone is not None and server.status("one").status == "VERIFY_RESIZE" and not server.status("one").operation_id:
        gone.leave()
        for copy in gone.copies.values():
            copy.state = "stopped"
    ask(server, kind, "one", key=key, **more)
    at_rest(server, hands, script)
    for hand in hands.values() if gone is not None else ():
        if server.reader.agent(hand.host).state != "ready":  # Or it did not hear that it was let in.
            hand.known = []
            hand.register()
            at_rest(server, hands, script)


STORIES = {
    "confirmed": (("resize", {"vcpus": 2}), ("confirm", {})),
    "reverted": (("resize", {"vcpus": 2}), ("revert", {})),
    "lost": (("resize", {"vcpus": 2}), ("revert", {"is_lost": True})),
    "migrated": (("migrate", {}),),
    "undone": (("migrate", {}),),
    "onward": (("migrate", {}),),
}
BROKEN = {"undone": "finish", "onward": "prepare"}


@pytest.mark.parametrize("is_made", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("story", STORIES)
def test_a_move_survives_a_death_at_every_commit(story, is_made):
    survives(MemoryWorld(), story, is_made=is_made, stride=1)


@pytest.mark.parametrize(("story", "is_made"), [("confirmed", True), ("undone", False), ("lost", True)])
def test_a_move_survives_deaths_of_what_lasts(durable, story, is_made):
    survives(durable, story, is_made=is_made, stride=4)
    where = str(durable.path) if isinstance(durable, SqliteWorld) else durable.url
    assert (audit(where), orphans(where)) == ([], [])


def survives(world, story, *, is_made, stride):
    """Let a move be asked for again and again, and the database be gone at another of its commits each time."""
    hands = {}
    with opened(world, hands) as server:
        hosts = [host(f"h{number}", VCPU=4, MEMORY_MB=99 - number) for number in range(3)]
        server.run(lambda _current: server.roost.install(joined(*hosts, group("g", "anti-affinity"))))
        hands = keepers(server, "h0", "h1", "h2")
        server.build("one", in_group="g")
        at_rest(server, hands)
    deaths, hand = 0, next(iter(hands.values()))
    for at in range(1, COMMITS_MAX, stride):
        with opened(world, hands) as server:
            here, size = server.status("one").host, server.used()["VCPU"]
        act = BROKEN.get(story)
        others = [name for name in hands if name != here]
        script = (
            {(name, act): [failed("no disk")] for name in (others if story == "undone" else others[:1])} if act else {}
        )
        died = []
        for kind, more in STORIES[story]:
            work = partial(at_work, hands=hands, kind=kind, key=f"{kind} {at}", script=script, **more)
            died.append(commit_failures.run_with_commit_failure(world, hands.values(), work, at=at, is_made=is_made))
        with opened(world, hands) as server:
            checked(server, hands)
            assert story not in {"undone", "reverted", "lost"} or server.status("one").host == here
            assert story not in {"migrated", "onward"} or server.status("one").host != here
            assert server.used()["VCPU"] == (2 if story == "confirmed" else size)
        deaths += sum(died)
        if not any(died) or (story == "confirmed" and deaths > 24):
            break
        if story == "confirmed":  # Back to the size that it had, since a resize needs another.
            with opened(world, hands) as server:
                ask(server, "resize", "one", vcpus=1, key=f"back {at}")
                at_rest(server, hands)
                ask(server, "confirm", "one", key=f"back for good {at}")
                at_rest(server, hands)
    assert deaths >= 10 // stride
    assert set(hand.most_running.values()) == {1}


@pytest.mark.parametrize("end", ["confirm", "revert"])
def test_a_group_of_one_is_closed_while_its_member_moves(durable, end):
    with opened(durable, {}) as server:
        hosts = [host(f"h{number}", VCPU=4, MEMORY_MB=99 - number) for number in range(3)]
        server.run(lambda _current: server.roost.install(joined(*hosts, group("g", "affinity"))))
        hands = keepers(server, "h0", "h1", "h2")
        server.build("one", in_group="g", force_hosts=("h0",))
        at_rest(server, hands)
        ask(server, "migrate", "one", host="h1", is_verified=True)
        at_rest(server, hands)
    where = str(durable.path) if isinstance(durable, SqliteWorld) else durable.url
    assert audit(where) == []
    with opened(durable, hands) as server:
        for number in range(3):
            server.build(f"near {number}", key=f"near {number}", in_group="g", force_hosts=(f"h{number}",))
        at_rest(server, hands)
        assert [told(server, f"near {number}")[0] for number in range(3)] == ["ERROR"] * 3
        ask(server, end, "one")
        at_rest(server, hands)
        server.build("two", key="two", in_group="g")
        at_rest(server, hands)
        assert told(server, "two")[:2] == ("ACTIVE", "h1" if end == "confirm" else "h0")
    assert (audit(where), orphans(where)) == ([], [])


def checked(server, hands):
    """See that the instance runs on its host and nowhere else, and that nothing is held but what it holds."""
    status, where, _ = told(server, "one")
    assert status == "ACTIVE"
    assert {name: hand.guests for name, hand in hands.items() if hand.guests} == {where: {uuid_named("one"): "running"}}
    assert server.held("one")[0] == where
    assert server.run(lambda current: len(current.state.holders)) == 1
    assert server.open_operations() == []
    migration = server.status("one").migration_uuid
    assert migration is None or server.reader.migration(migration).status == "confirmed"


def test_a_move_is_refused_to_whoever_asks_twice_with_other_keys(world):
    hands = {}
    with opened(world, hands) as server:
        server.run(lambda _current: server.roost.install(joined(host("h0"), host("h1"))))
        hands = keepers(server, "h0", "h1")
        server.build("one")
        at_rest(server, hands)
        ask(server, "migrate", "one", key="first")
        with pytest.raises(Conflict, match="cannot resize now: its task is migrating"):
            ask(server, "resize", "one", vcpus=2, key="second")
        at_rest(server, hands)
        assert server.status("one").status == "ACTIVE"
