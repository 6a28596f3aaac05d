"""After a crash at any commit, the next conductor continues: nothing is leaked, doubled or left behind."""

import pytest

from tests.contract.commit_failures import (
    check_audit,
    open_server,
    orders_of,
    run_until_idle,
    run_with_commit_failure,
    stride,
)
from tests.support.conductors.builders import ladder
from tests.support.conductors.conductors import PlayedAgent
from tests.support.fleets.named_uuids import uuid_named

pytestmark = pytest.mark.long

COMMITS_MAX = 60


def send_and_run(server, hands, send):
    """Send a request, and run until all parts are idle."""
    send(server)
    run_until_idle(server, hands)


def check_instance(world, name, hands, *, status):
    """Assert the status of an instance, and that no other guest, allocation or open order exists."""
    with open_server(world, hands) as server:
        assert server.open_operations() == []
        row = server.status(name)
        assert (row.status, row.operation_id, row.task) == (status, 0, "")
        is_there = status == "ACTIVE"
        assert bool(row.node) is is_there
        assert (server.held(name) or ("",))[0] == row.node
        assert server.used()["VCPU"] == is_there
        guests = {agent.host: list(agent.guests) for agent in hands if agent.guests}
        assert guests == ({row.node: [uuid_named(name)]} if is_there else {})
        assert all(order.state in {"answered", "withdrawn"} for order in orders_of(server))
    check_audit(world)


@pytest.mark.parametrize("is_made", [False, True], ids=["before", "after"])
def test_build_and_delete_survive_a_crash_at_every_commit(world, is_made):
    hands = []
    with open_server(world) as server:
        server.run(lambda _current: server.roost.install(ladder(3)))
        for number in range(3):
            hands.append(PlayedAgent(server, f"h{number}"))
            hands[-1].register()
    failures = {"build": 0, "delete": 0}
    for at in range(1, COMMITS_MAX, stride(world)):
        name = f"i{at}"
        has_build_failed = run_with_commit_failure(
            world,
            hands,
            lambda server, name=name: send_and_run(server, hands, lambda _: server.build(name, key=name)),
            at=at,
            is_made=is_made,
        )
        check_instance(world, name, hands, status="ACTIVE")
        failures["build"] += has_build_failed
        has_delete_failed = run_with_commit_failure(
            world,
            hands,
            lambda server, name=name: send_and_run(server, hands, lambda _: server.delete(name)),
            at=at,
            is_made=is_made,
        )
        check_instance(world, name, hands, status="DELETED")
        failures["delete"] += has_delete_failed
        if not has_build_failed and not has_delete_failed:
            break
    assert failures["build"] * stride(world) >= 10
    assert failures["delete"] * stride(world) >= 5


def test_slow_conductor_loses_the_race_and_drops_its_work(world):
    with open_server(world) as server:
        server.run(lambda _current: server.roost.install(ladder(3)))
        hands = [PlayedAgent(server, f"h{number}") for number in range(3)]
        for agent in hands:
            agent.register()
        server.build("one")
        slow = server.conductor("slow")
        read, overtaken = slow._views, []

        def read_then_lose(rows, **known):
            """Read the operations, then let another conductor win the race."""
            views = read(rows, **known)
            if not overtaken:
                overtaken.append(server.turn("quick"))
            return views

        slow._views = read_then_lose
        while slow.turn():
            pass
        assert overtaken[0] > 0
        run_until_idle(server, hands)
        assert server.status("one").status == "ACTIVE"
        assert server.used()["VCPU"] == 1
        assert len([order for order in orders_of(server) if order.action == "spawn"]) == 2
        assert server.open_operations() == []
