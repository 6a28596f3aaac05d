"""After a crash at any commit of a rebuild, reboot, shelve or unshelve, the next server continues."""

from dataclasses import replace
from functools import partial

import pytest

from roost.conductor.operation.stored_request import image_of
from roost.model.image import Image
from tests.contract.commit_failures import (
    check_audit,
    open_server,
    orders_of,
    run_until_idle,
    run_with_commit_failure,
    stride,
)
from tests.support.conductors.builders import ladder
from tests.support.conductors.conductors import TERMS, PlayedAgent
from tests.support.fleets.named_uuids import uuid_named

pytestmark = pytest.mark.long

COMMITS_MAX = 60
ONE = uuid_named("one")
OLD, NEW = Image(id="old"), Image(id="new")
# The requests in order; after each the expected status, whether the instance is on a host, and its image.
SEQUENCE = [
    ("rebuild", "ACTIVE", True, "new"),
    ("reboot", "ACTIVE", True, "new"),
    ("shelve", "SHELVED_OFFLOADED", False, f"saved {ONE}"),
    ("unshelve", "ACTIVE", True, "new"),
    ("keep", "SHELVED", True, f"saved {ONE}"),
    ("offload", "SHELVED_OFFLOADED", False, f"saved {ONE}"),
    ("unshelve", "ACTIVE", True, "new"),
]


def request(server, kind, *, key):
    if kind == "reboot":
        server.power("one", kind, key=key)
    else:
        more = {"image": NEW} if kind == "rebuild" else {}
        server.change("one", "shelve" if kind == "keep" else kind, key=key, **more)


def send_and_run(server, *, hands, kind, key):
    """Send a request, and run until all parts are idle."""
    server.terms = replace(TERMS, owner_s=0.0, shelved_offload_time_s=-1.0 if kind == "keep" else 0.0)
    request(server, kind, key=key)
    run_until_idle(server, hands)


def check_instance(server, hands, *, status, is_on_host, image):
    """Assert the status, host and image of the instance, and that no other guest or open order exists."""
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
def test_instance_changes_survive_a_crash_at_every_commit(world, is_made):
    hands = []
    with open_server(world) as server:
        server.run(lambda _current: server.roost.install(ladder(3)))
        for number in range(3):
            hands.append(PlayedAgent(server, f"h{number}"))
            hands[-1].register()
        server.build("one", image=OLD)
        run_until_idle(server, hands)
        assert server.status("one").status == "ACTIVE"
    failures, left = [0] * len(SEQUENCE), set(range(len(SEQUENCE)))
    for at in range(1, COMMITS_MAX, stride(world)):
        for number, (kind, status, is_on_host, image) in enumerate(SEQUENCE):
            work = partial(send_and_run, hands=hands, kind=kind, key=f"{kind} {number} {at}")
            if number in left:
                has_failed = run_with_commit_failure(world, hands, work, at=at, is_made=is_made)
                failures[number] += has_failed
                left -= set() if has_failed else {number}
            with open_server(world, hands) as server:
                work(server)
                check_instance(server, hands, status=status, is_on_host=is_on_host, image=image)
        if not left:
            break
    check_audit(world)
    assert all(count * stride(world) >= 5 for count in failures), failures
