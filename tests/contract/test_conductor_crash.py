"""Whoever dies at whichever commit: the next conductor goes on, nothing is leaked, doubled or left behind."""

import pytest

from tests.contract.commit_failures import check_audit, open_server, orders_of, run_with_commit_failure, stride
from tests.support.conductors.builders import ladder
from tests.support.conductors.conductors import OK, Hand, action, failed
from tests.support.fleets.named_uuids import uuid_named

pytestmark = pytest.mark.long

COMMITS_MAX = 60


def at_work(server, hands, ask):
    """Let somebody ask, and everybody do what there is to do; no instance can be built where it is sent first."""
    ask(server)
    for _ in range(30):
        done = server.turn()
        for agent in hands:
            for order in agent.poll().orders:
                agent.act(order, failed("no network") if (order.number, action(order)) == (1, "spawn") else OK)
                done += 1
        if not done:
            return
    raise AssertionError("they never come to rest")


def checked(world, name, hands, *, status):
    """See that an instance is what it is to be, and nothing else is anywhere."""
    with open_server(world, hands) as server:
        assert server.open_operations() == []
        row = server.status(name)
        assert (row.status, row.operation_id, row.task) == (status, 0, "")
        is_there = status == "ACTIVE"
        assert bool(row.node) is is_there
        assert (server.held(name) or ("",))[0] == row.node
        assert server.used()["VCPU"] == is_there
        running = {agent.host: list(agent.guests) for agent in hands if agent.guests}
        assert running == ({row.node: [uuid_named(name)]} if is_there else {})
        assert all(order.state in {"answered", "withdrawn"} for order in orders_of(server))
    check_audit(world)


@pytest.mark.parametrize("is_made", [False, True], ids=["before", "after"])
def test_a_build_and_a_deletion_survive_a_death_at_every_commit(world, is_made):
    hands = []
    with open_server(world) as server:
        server.run(lambda _current: server.roost.install(ladder(3)))
        for number in range(3):
            hands.append(Hand(server, f"h{number}"))
            hands[-1].register()
    deaths = {"build": 0, "delete": 0}
    for at in range(1, COMMITS_MAX, stride(world)):
        name = f"i{at}"
        died = run_with_commit_failure(
            world,
            hands,
            lambda server, name=name: at_work(server, hands, lambda _: server.build(name, key=name)),
            at=at,
            is_made=is_made,
        )
        checked(world, name, hands, status="ACTIVE")
        deaths["build"] += died
        is_dead = run_with_commit_failure(
            world,
            hands,
            lambda server, name=name: at_work(server, hands, lambda _: server.delete(name)),
            at=at,
            is_made=is_made,
        )
        checked(world, name, hands, status="DELETED")
        deaths["delete"] += is_dead
        if not died and not is_dead:
            break
    assert deaths["build"] * stride(world) >= 10
    assert deaths["delete"] * stride(world) >= 5


def test_a_conductor_that_is_too_slow_loses_and_drops_what_it_did(world):
    with open_server(world) as server:
        server.run(lambda _current: server.roost.install(ladder(3)))
        hands = [Hand(server, f"h{number}") for number in range(3)]
        for agent in hands:
            agent.register()
        server.build("one")
        slow = server.conductor("slow")
        read, overtaken = slow._views, []

        def late(rows, **known):
            """Read what there is, and let another one be faster."""
            views = read(rows, **known)
            if not overtaken:
                overtaken.append(server.turn("quick"))
            return views

        slow._views = late
        while slow.turn():
            pass
        assert overtaken[0] > 0
        at_work(server, hands, lambda _server: None)
        assert server.status("one").status == "ACTIVE"
        assert server.used()["VCPU"] == 1
        assert len([order for order in orders_of(server) if order.action == "spawn"]) == 2
        assert server.open_operations() == []
