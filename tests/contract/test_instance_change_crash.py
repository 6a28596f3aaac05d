"""Whoever dies at whichever commit while an instance is shelved, unshelved, rebuilt and so on: the next one goes on."""

from dataclasses import replace
from functools import partial

import pytest

from roost.conductor.operation.stored_request import image_of
from roost.model.image import Image
from tests.contract.commit_failures import check_audit, open_server, orders_of, run_with_commit_failure, stride
from tests.support.conductors.builders import ladder
from tests.support.conductors.conductors import OK, TERMS, Hand, action, failed
from tests.support.fleets.named_uuids import uuid_named

pytestmark = pytest.mark.long

COMMITS_MAX = 60
ONE = uuid_named("one")
OLD, NEW = Image(id="old"), Image(id="new")
# What is asked, one after the other; after each the status, whether it is on a host, and from which image.
SEQUENCE = [
    ("rebuild", "ACTIVE", True, "new"),
    ("reboot", "ACTIVE", True, "new"),
    ("shelve", "SHELVED_OFFLOADED", False, f"saved {ONE}"),
    ("unshelve", "ACTIVE", True, "new"),
    ("keep", "SHELVED", True, f"saved {ONE}"),
    ("offload", "SHELVED_OFFLOADED", False, f"saved {ONE}"),
    ("unshelve", "ACTIVE", True, "new"),
]


def ask(server, kind, *, key):
    if kind == "reboot":
        server.power("one", kind, key=key)
    else:
        more = {"image": NEW} if kind == "rebuild" else {}
        server.change("one", "shelve" if kind == "keep" else kind, key=key, **more)


def at_work(server, *, hands, kind, key):
    """Let somebody ask, and everybody do what there is to do; where it is sent first, it cannot be built."""
    server.terms = replace(TERMS, owner_s=0.0, shelved_offload_time_s=-1.0 if kind == "keep" else 0.0)
    ask(server, kind, key=key)
    for _ in range(30):
        done = server.turn()
        for agent in hands:
            for order in agent.poll().orders:
                agent.act(order, failed("no network") if (order.number, action(order)) == (1, "spawn") else OK)
                done += 1
        if not done:
            return
    raise AssertionError("they never come to rest")


def checked(server, hands, *, status, is_on_host, image):
    """See that the instance is what it is to be, and nothing else is anywhere."""
    assert server.open_operations() == []
    row = server.status("one")
    assert (row.status, row.operation_id, row.task) == (status, 0, "")
    assert bool(row.host) is is_on_host
    assert server.run(lambda current: image_of(current.store.document, row)).id == image
    assert (server.held("one") or ("",))[0] == row.node
    assert server.used()["VCPU"] == is_on_host
    state = "running" if status == "ACTIVE" else "stopped"
    guests = {agent.host: agent.guests for agent in hands if agent.guests}
    assert guests == ({row.host: {ONE: state}} if is_on_host else {})
    assert all(order.state in {"answered", "withdrawn"} for order in orders_of(server))


@pytest.mark.parametrize("is_made", [False, True], ids=["before", "after"])
def test_each_survives_a_death_at_every_commit(world, is_made):
    hands = []
    with open_server(world) as server:
        server.run(lambda _current: server.roost.install(ladder(3)))
        for number in range(3):
            hands.append(Hand(server, f"h{number}"))
            hands[-1].register()
        server.build("one", image=OLD)
        for _ in range(3):
            server.turn()
            for agent in hands:
                for order in agent.poll().orders:
                    agent.act(order)
    deaths, left = [0] * len(SEQUENCE), set(range(len(SEQUENCE)))
    for at in range(1, COMMITS_MAX, stride(world)):
        for number, (kind, status, is_on_host, image) in enumerate(SEQUENCE):
            work = partial(at_work, hands=hands, kind=kind, key=f"{kind} {number} {at}")
            if number in left:
                is_dead = run_with_commit_failure(world, hands, work, at=at, is_made=is_made)
                deaths[number] += is_dead
                left -= set() if is_dead else {number}
            with open_server(world, hands) as server:
                work(server)
                checked(server, hands, status=status, is_on_host=is_on_host, image=image)
        if not left:
            break
    check_audit(world)
    assert all(count * stride(world) >= 5 for count in deaths), deaths
