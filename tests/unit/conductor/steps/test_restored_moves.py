"""Moves after a restore of the database: hosts may have carried out orders that it does not know."""

import pytest

from roost.model.work.work_rows import Put
from roost.model.writes import Item
from roost.store.backup import restore_lease
from tests.support.conductors.conductors import OK, action, failure, server
from tests.support.conductors.move_servers import advance_clock, migrations, nodes_by_consumer, run_agents_until_idle
from tests.support.conductors.resize_servers import Copy, instance_summary, request_resize, resize_agents
from tests.support.fleets.named_uuids import uuid_named
from tests.support.fleets.worlds import host, merge_fleets

ONE = uuid_named("one")
BROKEN = failure("it is broken")
ARRIVED = "it is broken; but it runs on h1, from before the database was restored: confirm or revert the move"


@pytest.fixture
def app():
    """Yield a server with an instance on h0; the agents of h0 and h1 are ``hands``."""
    with server(
        None, merge_fleets(*(host(f"h{number}", VCPU=4, MEMORY_MB=100 - number) for number in range(2)))
    ) as app:
        app.hands = resize_agents(app, "h0", "h1")
        app.build("one", force_hosts=("h0",))
        run_agents_until_idle(app, app.hands)
        yield app


def note_restore(app):
    """Record a restore of the database."""
    app.clock.time_s += 1
    lease = restore_lease(app.clock.now_s())
    app.run(lambda current: current.commit([Item(writes=(), work=(Put(lease),))]))


def states(app):
    return {name: hand.guests[ONE] for name, hand in app.hands.items() if ONE in hand.guests}


def resize_with_forgotten_guest(app, kind, *, state="running", script=None):
    """Request a move to h1; before its last order, h1 gets a guest by an operation that the database does not know."""
    hand = app.hands["h1"]
    result = hand.result

    def finish_earlier(order):
        if action(order) != "finish":
            return result(order)
        hand.copies[ONE] = Copy(state, "unknown operation")
        return BROKEN

    hand.result = finish_earlier
    request_resize(app, kind, "one", vcpus=2 if kind == "resize" else 0, host="h1")
    run_agents_until_idle(app, app.hands, script)
    hand.result = result


@pytest.mark.parametrize("kind", ["resize", "migrate"])
@pytest.mark.parametrize("end", ["confirm", "revert"])
def test_guest_that_has_arrived_runs_alone_until_the_user_decides(app, kind, end):
    resize_with_forgotten_guest(app, kind)
    assert instance_summary(app, "one") == ("VERIFY_RESIZE", "h1", ARRIVED)
    assert states(app) == {"h0": "stopped", "h1": "running"}
    request_resize(app, end, "one")
    run_agents_until_idle(app, app.hands)
    place = {"confirm": "h1", "revert": "h0"}[end]
    assert instance_summary(app, "one") == ("ACTIVE", place, "")
    assert states(app) == {place: "running"}
    assert nodes_by_consumer(app) == {ONE: [place]}
    assert app.hands["h0"].most_running == {ONE: 1}


def test_arrived_guest_is_found_although_the_answer_to_discard_lacks_it(app):
    note_restore(app)
    resize_with_forgotten_guest(app, "resize", script={("h1", "discard"): [OK]})
    assert instance_summary(app, "one") == ("VERIFY_RESIZE", "h1", ARRIVED)
    assert states(app) == {"h0": "stopped", "h1": "running"}
    assert app.hands["h1"].done[-2:] == ["discard", "inspect"]


@pytest.mark.parametrize("has_copy", [True, False])
def test_revert_needs_the_copy_on_the_old_host(app, has_copy):
    request_resize(app, "resize", "one", vcpus=2, host="h1")
    run_agents_until_idle(app, app.hands)
    note_restore(app)
    if not has_copy:
        del app.hands["h0"].copies[ONE]
    request_resize(app, "revert", "one")
    run_agents_until_idle(app, app.hands)
    problem = "it cannot go back: h0 has no copy of it any more"
    expected = ("ACTIVE", "h0", "") if has_copy else ("VERIFY_RESIZE", "h1", problem)
    assert instance_summary(app, "one") == expected
    assert states(app) == {expected[1]: "running"}


def test_stopped_guest_on_the_target_does_not_keep_the_source_from_starting(app):
    resize_with_forgotten_guest(app, "resize", state="stopped")
    assert instance_summary(app, "one") == ("ACTIVE", "h0", "it is broken")
    assert states(app) == {"h0": "running", "h1": "stopped"}


def test_operation_from_a_backup_waits_for_its_gone_target_before_it_starts_the_source(app):
    request_resize(app, "resize", "one", vcpus=2, host="h1")
    run_agents_until_idle(app, app.hands, {("h0", "send_disk"): [None]})
    note_restore(app)
    app.hands["h1"].leave()
    app.hands["h0"].known = []
    run_agents_until_idle(app, app.hands)
    assert app.status("one").task == "resizing"
    assert "it may run on h1, so the operation waits for that host" in app.status("one").fault
    assert states(app)["h0"] == "stopped"
    app.hands["h1"].register()
    advance_clock(app, app.hands, 11)
    run_agents_until_idle(app, app.hands)
    assert instance_summary(app, "one")[:2] == ("ACTIVE", "h0")
    assert states(app) == {"h0": "running"}


@pytest.mark.parametrize("kind", ["confirm", "migrate"])
def test_operation_from_a_backup_leaves_the_old_copy_to_the_next_registration(app, kind):
    if kind == "confirm":
        request_resize(app, "resize", "one", host="h1")
        run_agents_until_idle(app, app.hands)
        app.clock.time_s += 1
    request_resize(app, kind, "one", host="h1")
    run_agents_until_idle(app, app.hands, {("h0", "destroy"): [BROKEN]})
    note_restore(app)
    advance_clock(app, app.hands, 11)
    run_agents_until_idle(app, app.hands)
    assert instance_summary(app, "one") == ("ACTIVE", "h1", "")
    assert states(app) == {"h0": "stopped", "h1": "running"}
    assert [each[1] for each in migrations(app, "one")] == ["left"]
    app.hands["h0"].register()
    run_agents_until_idle(app, app.hands)
    assert states(app) == {"h1": "running"}
    assert [each[1] for each in migrations(app, "one")] == ["confirmed"]
    assert nodes_by_consumer(app) == {ONE: ["h1"]}


def test_reset_ends_the_moves_away_from_the_new_home(app):
    request_resize(app, "resize", "one", vcpus=2, host="h1")
    run_agents_until_idle(app, app.hands)
    app.hands["h0"].leave()
    app.clock.time_s += 1
    request_resize(app, "confirm", "one")
    run_agents_until_idle(app, app.hands)
    assert migrations(app, "one") == [("resize", "left", "h0", "h1")]
    del app.hands["h1"].copies[ONE]
    app.hands["h0"].strangers.add(ONE)
    app.hands["h0"].guests[ONE] = app.hands["h0"].copies[ONE].state = "running"
    app.hands["h0"].register()
    run_agents_until_idle(app, app.hands)
    assert app.status("one").fault.startswith("its guest is held on h0")
    app.power("one", "reset")
    run_agents_until_idle(app, app.hands)
    assert instance_summary(app, "one") == ("ACTIVE", "h0", "")
    assert migrations(app, "one") == [("resize", "confirmed", "h0", "h1")]
    assert app.status("one").migration_uuid is None
    assert nodes_by_consumer(app) == {ONE: ["h0"]}
