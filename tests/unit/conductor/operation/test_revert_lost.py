"""Reverts of moves to a lost host. That host destroys its guest before it is up again."""

import pytest

from roost.conductor.operation.row_changes import next_version, replace_row
from roost.errors import Conflict
from roost.model.names import uuid_text
from roost.model.writes import Item
from tests.support.conductors.conductors import failure, server
from tests.support.conductors.move_servers import advance_clock, migrations, nodes_by_consumer, run_agents_until_idle
from tests.support.conductors.resize_servers import instance_summary, request_resize, resize_agents
from tests.support.fleets.named_uuids import uuid_named
from tests.support.fleets.worlds import group, host, merge_fleets

ONE = uuid_named("one")


@pytest.fixture
def app():
    """Yield a server with an instance on h0, and agents of three hosts."""
    hosts = [host(f"h{number}", VCPU=4, MEMORY_MB=100 - number) for number in range(3)]
    with server(None, merge_fleets(*hosts, group("g", "anti-affinity"))) as app:
        app.hands = resize_agents(app, "h0", "h1", "h2")
        app.build("one", in_group="g", force_hosts=("h0",))
        run_agents_until_idle(app, app.hands)
        yield app


def resize(app, *, is_on=True):
    if not is_on:
        app.power("one", "stop")
        run_agents_until_idle(app, app.hands)
    request_resize(app, "resize", "one", vcpus=3)
    run_agents_until_idle(app, app.hands)
    assert instance_summary(app, "one") == ("VERIFY_RESIZE", "h1", "")


def revert_from_lost_host(app, *, is_on=True):
    resize(app, is_on=is_on)
    app.hands["h1"].leave()
    return request_resize(app, "revert", "one", is_lost=True)


def states(app):
    return {name: hand.copies[ONE].state for name, hand in app.hands.items() if ONE in hand.copies}


def check_reverted(app, *, state="ACTIVE", fault=""):
    """Check that the instance is on its old host, and that its migration holds the lost host."""
    status = app.status("one")
    assert (status.status, status.host, status.task, status.fault) == (state, "h0", "", fault)
    assert nodes_by_consumer(app) == {ONE: ["h0"], uuid_text(status.migration_uuid): ["h1"]}
    assert app.used()["VCPU"] == 4
    assert migrations(app, "one") == [("resize", "reverted", "h0", "h1"), ("evacuate", "finished", "h1", "h0")]
    assert app.open_operations() == []


def check_cleaned_up(app):
    """Check that nothing is left of the move."""
    assert instance_summary(app, "one") == ("ACTIVE", "h0", "")
    assert (states(app), nodes_by_consumer(app), app.used()["VCPU"]) == ({"h0": "running"}, {ONE: ["h0"]}, 1)
    assert migrations(app, "one")[-1] == ("evacuate", "confirmed", "h1", "h0")
    assert app.reader.agent("h1").state == "ready"
    assert app.open_operations() == []


def test_instance_reverts_and_the_lost_host_is_cleaned_on_its_return(app):
    old_flavor_id = app.status("one").flavor_id
    operation = revert_from_lost_host(app)
    run_agents_until_idle(app, app.hands)
    check_reverted(app)
    assert app.reader.operation(operation.id).outcome == "done"
    assert app.status("one").flavor_id == old_flavor_id
    assert states(app) == {"h0": "running", "h1": "running"}
    reply = app.hands["h1"].register()
    assert (reply.is_ready, reply.destroy) == (False, (ONE,))
    assert len(nodes_by_consumer(app)) == 2
    run_agents_until_idle(app, app.hands)
    check_cleaned_up(app)


def test_lost_host_that_returns_without_the_guest_is_released(app):
    revert_from_lost_host(app)
    run_agents_until_idle(app, app.hands)
    app.hands["h1"].copies.clear()
    app.hands["h1"].guests = {}
    assert app.hands["h1"].register().is_ready
    check_cleaned_up(app)


def test_stopped_instance_stays_stopped_after_the_revert(app):
    revert_from_lost_host(app, is_on=False)
    run_agents_until_idle(app, app.hands)
    check_reverted(app, state="SHUTOFF")
    assert states(app)["h0"] == "stopped"


def test_anti_affinity_members_stay_apart_after_the_revert(app):
    revert_from_lost_host(app)
    run_agents_until_idle(app, app.hands)
    app.build("two", key="two", in_group="g", force_hosts=("h0",))
    app.build("three", key="three", in_group="g", force_hosts=("h2",))
    run_agents_until_idle(app, app.hands)
    assert (app.status("two").status, app.status("three").status) == ("ERROR", "ACTIVE")


def test_instance_is_shutoff_if_the_old_host_cannot_start_it(app):
    revert_from_lost_host(app)
    run_agents_until_idle(app, app.hands, {("h0", "power_on"): [failure("no memory")]})
    check_reverted(app, state="SHUTOFF", fault="it went back to h0, and was not started there: no memory")


def test_instance_is_shutoff_if_the_old_host_leaves_during_the_revert(app):
    revert_from_lost_host(app)
    app.hands["h0"].known = []
    app.turn()
    app.hands["h0"].leave()
    run_agents_until_idle(app, app.hands)
    assert instance_summary(app, "one")[:2] == ("SHUTOFF", "h0")
    assert len(nodes_by_consumer(app)) == 2


def test_revert_fails_if_the_old_host_is_gone_too(app):
    resize(app)
    for name in ("h0", "h1"):
        app.hands[name].leave()
    request_resize(app, "revert", "one", is_lost=True)
    run_agents_until_idle(app, app.hands)
    assert instance_summary(app, "one") == ("VERIFY_RESIZE", "h1", "it cannot go back: the agent of h0 does not answer")


def test_revert_from_a_gone_host_fails_without_is_lost(app):
    resize(app)
    app.hands["h1"].leave()
    request_resize(app, "revert", "one")
    run_agents_until_idle(app, app.hands)
    fault = "the agent of h1 does not answer; if it will not return, use `roost instance revert --lost`"
    assert instance_summary(app, "one") == ("VERIFY_RESIZE", "h1", fault)


def test_host_with_a_live_agent_is_not_accepted_as_lost(app):
    resize(app)
    with pytest.raises(Conflict, match="cannot be reverted from a lost host: the agent of h1 is there"):
        request_resize(app, "revert", "one", is_lost=True)
    assert app.status("one").task == ""


def test_lost_host_that_returns_before_the_first_step_undoes_the_move(app):
    revert_from_lost_host(app)
    app.hands["h1"].register()
    run_agents_until_idle(app, app.hands)
    assert (instance_summary(app, "one"), states(app)) == (("ACTIVE", "h0", ""), {"h0": "running"})
    assert migrations(app, "one") == [("resize", "reverted", "h0", "h1")]
    assert app.hands["h0"].most_running == {ONE: 1}


def test_step_is_refused_if_the_lost_host_registers_concurrently(app, monkeypatch):
    revert_from_lost_host(app)
    commit, store = app.store.commit, app.store

    def register_first(items):
        if any(getattr(put.row, "step", "") == "apart" for item in items for put in item.work):
            monkeypatch.setattr(store, "commit", commit)
            row = app.reader.agent("h1")
            commit([Item(writes=(), work=(replace_row(next_version(row, state="ready")),))])
        return commit(items)

    monkeypatch.setattr(store, "commit", register_first)
    run_agents_until_idle(app, app.hands)
    assert migrations(app, "one") == [("resize", "reverted", "h0", "h1")]
    assert (instance_summary(app, "one"), states(app)) == (("ACTIVE", "h0", ""), {"h0": "running"})


def test_waiting_revert_continues_once_its_host_is_declared_lost(app):
    resize(app)
    first = request_resize(app, "revert", "one", key="first")
    run_agents_until_idle(app, app.hands, {("h1", "discard"): [None]})
    app.hands["h1"].leave()
    run_agents_until_idle(app, app.hands)
    assert "waits for that host" in app.status("one").fault
    assert request_resize(app, "revert", "one", key="second", is_lost=True).id == first.id
    run_agents_until_idle(app, app.hands)
    check_reverted(app)
    app.hands["h1"].known = []
    app.hands["h1"].register()
    advance_clock(app, app.hands, 11)
    run_agents_until_idle(app, app.hands)
    check_cleaned_up(app)


@pytest.mark.parametrize("turns", [0, 1, 2, 9])
@pytest.mark.parametrize("is_back", [False, True])
def test_deletion_ends_the_revert_at_any_step(app, turns, is_back):
    revert_from_lost_host(app)
    for _ in range(turns):
        app.turn()
    app.delete("one")
    run_agents_until_idle(app, app.hands)
    if is_back:
        app.hands["h1"].known = []
        app.hands["h1"].register()
        run_agents_until_idle(app, app.hands)
        assert states(app) == {}
    assert app.status("one").status == "DELETED"
    assert (nodes_by_consumer(app), app.open_operations()) == ({}, [])
