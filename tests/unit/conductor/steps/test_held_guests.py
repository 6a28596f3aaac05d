"""A host keeps the guest of an instance that has none on its own host, for example after a restore of the database."""

import pytest

from roost.conductor.operation.row_changes import next_version, replace_row
from roost.errors import Conflict
from roost.model.names import uuid_bytes
from roost.model.work.guest import fault_of_holder
from roost.model.work.operation import USER_OPERATIONS
from roost.model.work.orders import Answer
from roost.model.work.work_rows import Put
from roost.model.writes import Item
from roost.store.backup import restore_lease
from tests.support.conductors.builders import ladder
from tests.support.conductors.conductors import (
    DOWN_TIME_S,
    TERMS,
    PlayedAgent,
    action,
    failure,
    instance_state,
    played_agent,
    run_until_idle,
    server,
)
from tests.support.fleets.named_uuids import uuid_named

ONE = uuid_named("one")
FAULT = "its guest is held on h1: reset the instance to make this its host, or delete the instance"


@pytest.fixture
def app():
    """Yield a server with an instance on h0; the agents of h0 and h1 are ``hands``."""
    with server(None, ladder(2)) as app:
        app.hands = [played_agent(app, f"h{number}") for number in range(2)]
        app.build("one")
        run_until_idle(app, *app.hands)
        yield app


def move_unnoticed(app, *, state="running", is_gone=True):
    """Let h1 return with the guest, marked by an operation that the database does not know."""
    home, holder = app.hands
    if is_gone:
        home.guests.pop(ONE)
    holder.leave()
    holder.guests[ONE] = state
    holder.strangers.add(ONE)
    return holder.register()


def hold(app, **options):
    """Let h1 return with the only guest, and let h0 answer that it has none."""
    reply = move_unnoticed(app, **options)
    run_until_idle(app, *app.hands)
    assert app.status("one").fault == FAULT
    return reply


def beat(app, *, after_s):
    """Let time pass while both agents live."""
    app.clock.time_s += after_s
    for hand in app.hands:
        hand.beat()
    app.turn()


def test_holder_keeps_the_guest_if_the_home_has_none(app):
    reply = hold(app)
    assert (reply.is_ready, reply.keep, reply.hold, reply.destroy) == (False, (), (), ())
    assert instance_state(app) == ("ACTIVE", "", FAULT, "h0")
    assert app.reader.agent("h1").state == "ready"
    assert app.hands[1].guests == {ONE: "running"}
    assert ("clean.held", {"host": "h1"}) in app.story("one")
    again = app.hands[1].register()
    assert (again.is_ready, again.keep, again.destroy) == (True, (ONE,), ())
    assert app.open_operations() == []


def test_holder_destroys_the_guest_if_the_home_has_one(app):
    assert move_unnoticed(app, is_gone=False).destroy == ()
    app.turn()
    (order,) = app.hands[0].poll().orders
    assert (action(order), order.instance) == ("inspect", ONE)
    assert app.hands[1].poll().orders == ()
    app.hands[0].act(order)
    app.turn()
    assert app.hands[1].register().destroy == (ONE,)
    run_until_idle(app, *app.hands)
    assert (app.hands[0].guests, app.hands[1].guests) == ({ONE: "running"}, {})
    assert instance_state(app) == ("ACTIVE", "", "", "h0")
    assert app.reader.agent("h1").state == "ready"


def test_incomplete_guest_is_destroyed_only_if_the_home_has_one(app):
    # A live migration may have completed it since the host looked at its guests.
    assert move_unnoticed(app, state="prepared", is_gone=False).destroy == ()
    app.turn()
    (order,) = app.hands[0].poll().orders
    app.hands[0].act(order)
    app.turn()
    assert app.hands[1].register().destroy == (ONE,)


@pytest.mark.parametrize("is_gone", [True, False], ids=["the home has none", "the home does not answer"])
def test_incomplete_guest_stays_without_a_fault_if_the_home_has_none(app, is_gone):
    move_unnoticed(app, state="prepared", is_gone=is_gone)
    if is_gone:
        run_until_idle(app, *app.hands)
    else:
        app.turn()
        beat(app, after_s=TERMS.act_timeout_s)
        beat(app, after_s=10)
    assert (app.status("one").fault, app.hands[1].guests) == ("", {ONE: "prepared"})
    assert app.reader.agent("h1").state == "ready"
    again = app.hands[1].register()
    assert (again.is_ready, again.keep, again.destroy) == (True, (ONE,), ())


@pytest.mark.parametrize("reply", [failure("no connection"), None], ids=["the query fails", "no answer"])
def test_holder_keeps_the_guest_if_the_home_does_not_answer(app, reply):
    move_unnoticed(app, is_gone=False)
    app.turn()
    (order,) = app.hands[0].poll().orders
    if reply is not None:
        app.hands[0].answer(order, reply)
    beat(app, after_s=TERMS.act_timeout_s)
    beat(app, after_s=10)
    assert (app.status("one").fault, app.hands[1].guests) == (FAULT, {ONE: "running"})
    assert app.reader.agent("h1").state == "ready"


def test_holder_keeps_the_guest_of_a_dead_home_until_that_is_back(app):
    app.hands[0].leave()
    move_unnoticed(app, is_gone=False)
    app.turn()
    assert (app.status("one").fault, app.reader.agent("h1").state) == ("", "arriving")
    beat(app, after_s=TERMS.act_timeout_s)
    assert (app.status("one").fault, app.reader.agent("h1").state) == (FAULT, "ready")
    home = app.hands[0] = PlayedAgent(app, "h0", life=2)
    home.guests = {ONE: "running"}
    home.register()
    run_until_idle(app, *app.hands)
    assert app.status("one").fault == ""
    assert not app.hands[1].register().is_ready
    run_until_idle(app, *app.hands)
    assert (home.guests, app.hands[1].guests) == ({ONE: "running"}, {})


def test_stale_query_is_sent_again_after_the_later_orders_of_the_host(app):
    move_unnoticed(app)
    app.turn()
    (order,) = app.hands[0].poll().orders
    app.hands[0].answer(order, Answer(outcome="stale", turn=40))
    app.turn()
    (order,) = app.hands[0].poll().orders
    assert (action(order), order.turn) == ("inspect", 41)
    app.hands[0].act(order)
    app.turn()
    assert (app.status("one").fault, app.hands[1].guests) == (FAULT, {ONE: "running"})


def test_home_is_queried_after_the_operation_that_holds_the_instance(app):
    app.power("one", "reboot")
    move_unnoticed(app, is_gone=False)
    app.turn()
    orders = app.hands[0].poll().orders
    assert [action(order) for order in orders] == ["reboot"]
    app.hands[0].act(orders[0])
    app.turn()
    beat(app, after_s=10)
    assert [action(order) for order in app.hands[0].poll().orders] == ["inspect"]


def test_home_has_the_whole_time_to_answer_after_an_operation(app):
    app.power("one", "reboot")
    move_unnoticed(app, is_gone=False)
    app.turn()
    (order,) = app.hands[0].poll().orders
    beat(app, after_s=TERMS.act_timeout_s - 1)
    app.hands[0].act(order)
    app.turn()
    beat(app, after_s=10)
    beat(app, after_s=TERMS.act_timeout_s - 10)
    (order,) = app.hands[0].poll().orders
    assert (action(order), app.status("one").fault) == ("inspect", "")
    app.hands[0].act(order)
    app.turn()
    assert app.hands[1].register().destroy == (ONE,)


def test_returning_host_is_up_although_an_operation_goes_on(app):
    move_unnoticed(app, is_gone=False)
    app.turn()
    beat(app, after_s=TERMS.act_timeout_s - 1)
    app.power("one", "reboot")
    app.turn()
    beat(app, after_s=10)
    assert (app.status("one").fault, app.reader.agent("h1").state) == ("", "ready")
    assert app.hands[1].register().is_ready
    assert app.hands[1].guests == {ONE: "running"}
    run_until_idle(app, *app.hands)
    assert not app.hands[1].register().is_ready
    run_until_idle(app, *app.hands)
    assert (app.hands[0].guests, app.hands[1].guests) == ({ONE: "running"}, {})


def test_answer_no_longer_counts_once_the_instance_has_changed(app):
    move_unnoticed(app, is_gone=False)
    app.turn()
    (order,) = app.hands[0].poll().orders
    app.power("one", "stop")
    app.hands[0].act(order)
    app.turn()
    assert app.hands[1].register().destroy == ()
    run_until_idle(app, *app.hands)
    beat(app, after_s=10)
    assert [action(order) for order in app.hands[0].poll().orders] == ["inspect"]


def test_guest_of_a_deleted_instance_is_destroyed_without_a_query(app):
    app.hands[1].leave()
    app.delete("one")
    run_until_idle(app, *app.hands)
    assert move_unnoticed(app, is_gone=False).destroy == (ONE,)


@pytest.mark.parametrize("kind", sorted({*USER_OPERATIONS} - {"delete", "reset"}))
def test_other_operations_are_refused_while_the_guest_is_held(app, kind):
    hold(app)
    before = app.status("one")
    words = rf"cannot {kind.replace('_', '-')}: its only guest is on h1, which is not its host; reset it, or delete it"
    with pytest.raises(Conflict, match=words):
        app.power("one", kind)
    assert app.status("one") == before


def test_deletion_destroys_the_held_guest(app):
    hold(app)
    app.delete("one")
    run_until_idle(app, *app.hands)
    assert (app.status("one").status, app.status("one").fault) == ("DELETED", "")
    assert (app.hands[1].guests, app.used()["VCPU"]) == ({}, 0)


@pytest.mark.parametrize(("state", "status"), [("running", "ACTIVE"), ("stopped", "SHUTOFF")])
@pytest.mark.parametrize("is_away", [False, True], ids=["home there", "home away"])
def test_reset_makes_the_holder_the_home(app, state, status, is_away):
    hold(app, state=state)
    if is_away:
        app.hands[0].leave()
    app.power("one", "reset")
    run_until_idle(app, *app.hands)
    assert instance_state(app) == (status, "", "", "h1")
    node, _ = app.held("one")
    assert (node, app.used()["VCPU"]) == ("h1", 1)
    assert app.story("one")[-1] == ("reset.done", {"status": status, "host": "h1", "source": "h0"})
    assert app.hands[1].register().is_ready


def test_reset_keeps_all_if_the_holder_has_no_room(app):
    app.build("other", key="other", force_hosts=("h1",))
    run_until_idle(app, *app.hands)
    hold(app)
    app.power("one", "reset")
    run_until_idle(app, *app.hands)
    assert instance_state(app) == ("ACTIVE", "", FAULT, "h0")
    kind, words = app.story("one")[-1]
    assert (kind, words["problem"].startswith("h1 cannot be its host: ")) == ("reset.failed", True)


def test_reset_clears_the_fault_if_the_home_has_the_guest_after_all(app):
    hold(app)
    app.hands[0].guests[ONE] = "stopped"
    app.power("one", "reset")
    run_until_idle(app, *app.hands)
    assert instance_state(app) == ("SHUTOFF", "", "", "h0")


def return_home(app):
    """Let a new agent of h0 register with the guest."""
    home = app.hands[0] = PlayedAgent(app, "h0", life=2)
    home.guests = {ONE: "running"}
    home.register()


@pytest.mark.parametrize("is_first", [True, False], ids=["before the answer", "after the answer"])
def test_reset_queries_a_home_that_returns_meanwhile(app, is_first):
    hold(app)
    app.hands[0].leave()
    app.power("one", "reset")
    app.turn()
    (order,) = app.hands[1].poll().orders
    if is_first:
        return_home(app)
    app.hands[1].act(order)
    if not is_first:
        return_home(app)
    run_until_idle(app, *app.hands)
    assert instance_state(app) == ("ACTIVE", "", "", "h0")
    assert app.hands[0].guests == {ONE: "running"}


@pytest.mark.parametrize("is_reset", [False, True], ids=["report", "reset"])
def test_resized_instance_still_waits_for_its_confirmation(app, is_reset):
    hold(app)
    app.hands[0].guests[ONE] = "running"
    status = next_version(app.status("one"), status="VERIFY_RESIZE")
    app.run(lambda current: current.commit([Item(writes=(), work=(replace_row(status),))]))
    if is_reset:
        app.power("one", "reset")
    else:
        app.hands[0].register()
    run_until_idle(app, *app.hands)
    assert instance_state(app) == ("VERIFY_RESIZE", "", "", "h0")


def test_reset_keeps_all_if_the_holder_has_lost_the_guest(app):
    hold(app)
    app.hands[1].guests.clear()
    app.power("one", "reset")
    run_until_idle(app, *app.hands)
    assert instance_state(app) == ("ACTIVE", "", FAULT, "h0")
    assert app.story("one")[-1] == ("reset.failed", {"problem": "h1 has no complete guest of this instance"})


def test_report_of_the_home_without_the_guest_keeps_the_fault(app):
    hold(app)
    app.clock.time_s += DOWN_TIME_S * 10
    app.hands[0].register()
    run_until_idle(app, *app.hands)
    assert app.status("one").fault == fault_of_holder("h1")
    assert app.status("one").uuid == uuid_bytes(ONE)


def test_operation_goes_on_after_the_later_orders_of_a_host_if_the_database_was_restored(app):
    lease = restore_lease(app.clock.now_s())
    app.run(lambda current: current.commit([Item(writes=(), work=(Put(lease),))]))
    app.power("one", "stop")
    app.turn()
    (order,) = app.hands[0].poll().orders
    app.delete("one")
    app.hands[0].answer(order, Answer(outcome="stale", turn=40))
    app.turn()
    (order,) = app.hands[0].poll().orders
    assert (action(order), order.turn) == ("destroy", 42)


def test_forced_deletion_repeats_a_stale_order_if_the_database_was_restored(app):
    lease = restore_lease(app.clock.now_s())
    app.run(lambda current: current.commit([Item(writes=(), work=(Put(lease),))]))
    app.delete("one", is_forced=True)
    app.turn()
    (order,) = app.hands[0].poll().orders
    app.hands[0].answer(order, Answer(outcome="stale", turn=40))
    app.turn()
    beat(app, after_s=11)
    (order,) = app.hands[0].poll().orders
    assert (action(order), order.turn) == ("destroy", 41)
    run_until_idle(app, *app.hands)
    assert (app.open_operations(), app.hands[0].guests) == ([], {})
