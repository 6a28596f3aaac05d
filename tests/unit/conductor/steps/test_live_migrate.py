"""Live migrations: the guest runs on one host at any time, and its allocations end on the same host."""

import pytest

from roost.conductor.operation.row_changes import next_version, replace_row
from roost.model.names import uuid_bytes, uuid_text
from roost.model.work.orders import Answer
from roost.model.work.work_rows import Put
from roost.model.writes import InventoryRow, Item, PutInventories
from roost.placement.write_plan import Plan
from tests.support.conductors.builders import ladder
from tests.support.conductors.conductors import action, failure, server
from tests.support.conductors.move_servers import (
    advance_clock,
    migrations,
    movers,
    nodes_by_consumer,
    request_move,
    run_agents_until_idle,
    server_of_four_hosts,
)
from tests.support.conductors.work_rows import status
from tests.support.fleets.named_uuids import uuid_named

ONE = uuid_named("one")


@pytest.fixture
def app():
    with server_of_four_hosts() as app:
        yield app


def guest_states(app):
    """Return the state of the guest on each host."""
    return {name: hand.guests[ONE] for name, hand in app.hands.items() if ONE in hand.guests}


def check_settled(app, *, host, state="ACTIVE", migration="confirmed", fault=""):
    """Check that the instance, its guest and its allocations are on one host."""
    status = app.status("one")
    assert (status.status, status.host, status.node, status.task) == (state, host, host, "")
    assert fault in status.fault
    assert bool(status.fault) is bool(fault)
    assert status.migration_uuid is None
    assert guest_states(app) == {host: "running"}
    assert nodes_by_consumer(app) == {ONE: [host]}
    assert migrations(app, "one")[-1][1] == migration
    assert app.open_operations() == []


def test_guest_runs_on_the_target_and_the_source_is_released(app):
    operation = request_move(app, "live_migrate", "one", key="the move")
    status = app.status("one")
    assert (status.status, status.task, status.operation_id) == ("ACTIVE", "live-migrating", operation.id)
    app.turn()
    assert nodes_by_consumer(app) == {ONE: ["h1"], uuid_text(app.status("one").migration_uuid): ["h0"]}
    (order,) = app.hands["h1"].poll().orders
    assert (action(order), order.act.guest.allocations) == ("prepare", {uuid_named("h1"): {"VCPU": 1, "MEMORY_MB": 1}})
    assert migrations(app, "one") == [("live", "moving", "h0", "h1")]
    run_agents_until_idle(app, app.hands)
    check_settled(app, host="h1")
    assert app.reader.operation(operation.id).outcome == "done"
    assert uuid_text(app.status("one").decision_uuid) == uuid_named("decision the move")
    assert [kind for kind, _ in app.story("one")][-3:] == [
        "live_migrate.asked",
        "live_migrate.sent",
        "live_migrate.done",
    ]


def test_live_migration_to_a_named_host_and_back(app):
    request_move(app, "live_migrate", "one", host="h3")
    run_agents_until_idle(app, app.hands)
    check_settled(app, host="h3")
    request_move(app, "live_migrate", "one", key="back", host="h0")
    run_agents_until_idle(app, app.hands)
    check_settled(app, host="h0")
    assert [each[1:] for each in migrations(app, "one")] == [("confirmed", "h0", "h3"), ("confirmed", "h3", "h0")]


def test_instance_stays_if_no_valid_host_is_found(app):
    for number in range(1, 4):
        app.build(f"full {number}", key=f"full {number}")
    run_agents_until_idle(app, app.hands)
    request_move(app, "live_migrate", "one")
    run_agents_until_idle(app, app.hands)
    assert (app.status("one").status, app.status("one").host) == ("ACTIVE", "h0")
    assert app.status("one").fault.startswith("No valid host")
    assert migrations(app, "one") == [("live", "failed", "h0", "")]
    assert nodes_by_consumer(app)[ONE] == ["h0"]
    assert app.used()["VCPU"] == 4
    assert app.status("one").migration_uuid is None


def test_next_alternate_is_used_if_the_target_fails(app):
    request_move(app, "live_migrate", "one")
    run_agents_until_idle(app, app.hands, {("h1", "prepare"): [failure("no bridge")]})
    check_settled(app, host="h2")
    assert migrations(app, "one") == [("live", "confirmed", "h0", "h2")]


def test_instance_stays_with_a_fault_if_every_target_fails(app):
    request_move(app, "live_migrate", "one")
    script = {(f"h{number}", "prepare"): [failure(f"no bridge {number}")] for number in (1, 2, 3)}
    run_agents_until_idle(app, app.hands, script)
    check_settled(app, host="h0", migration="failed", fault="no bridge 3")


def test_alternate_that_is_not_clean_yet_is_skipped(app):
    ghost = status(9, uuid=uuid_bytes(uuid_named("ghost")), host="h3", status="ACTIVE", task="")
    app.run(lambda current: current.commit([Item(writes=(), work=(Put(ghost),))]))
    request_move(app, "live_migrate", "one")
    app.turn()
    app.hands["h2"].guests = {uuid_named("ghost"): "running"}
    assert not app.hands["h2"].register().is_ready
    app.hands["h1"].answer(app.hands["h1"].poll().orders[0], failure("no bridge"))
    app.turn()
    run_agents_until_idle(app, app.hands)
    check_settled(app, host="h3")


def test_target_that_returned_unclean_after_the_decision_is_skipped(app):
    request_move(app, "live_migrate", "one")
    put = replace_row(next_version(app.reader.agent("h1"), state="arriving"))  # The decision counts it as up.
    app.run(lambda current: current.commit([Item(writes=(), work=(put,))]))
    app.turn()
    assert app.hands["h1"].poll().orders == ()
    run_agents_until_idle(app, {name: each for name, each in app.hands.items() if name != "h1"})
    check_settled(app, host="h2")


def test_stale_answer_moves_on_to_the_next_target(app):
    request_move(app, "live_migrate", "one")
    run_agents_until_idle(
        app, app.hands, {("h1", "prepare"): [Answer(outcome="stale", problem="a later order was here")]}
    )
    check_settled(app, host="h2")


def test_aborted_prepare_ends_the_migration(app):
    request_move(app, "live_migrate", "one")
    run_agents_until_idle(app, app.hands, {("h1", "prepare"): [Answer(outcome="aborted", problem="it is pinned")]})
    check_settled(app, host="h0", migration="failed", fault="it is pinned")


def test_target_that_leaves_is_skipped(app):
    request_move(app, "live_migrate", "one")
    app.turn()
    app.hands["h1"].leave()
    run_agents_until_idle(app, app.hands)
    check_settled(app, host="h2")


def test_late_target_discards_the_guest_first(app):
    request_move(app, "live_migrate", "one")
    app.turn()
    late = app.hands["h1"].poll().orders[0]
    app.hands["h1"].result(late)
    advance_clock(app, app.hands, 121)
    app.turn()
    assert nodes_by_consumer(app)[ONE] == ["h1"]
    run_agents_until_idle(app, app.hands)
    check_settled(app, host="h2")
    assert "discard" in app.hands["h1"].done


def test_failed_transfer_is_aborted_inspected_and_discarded(app):
    request_move(app, "live_migrate", "one")
    run_agents_until_idle(app, app.hands, {("h0", "live_migrate"): [failure("the link broke")]})
    check_settled(app, host="h0", migration="failed", fault="the link broke")
    assert app.hands["h0"].done[-2:] == ["abort_migration", "inspect"]
    assert app.hands["h1"].done == ["prepare", "discard"]


def test_guest_that_arrived_despite_a_failed_answer_is_on_the_target(app):
    request_move(app, "live_migrate", "one")
    app.turn()
    app.hands["h1"].work()
    app.turn()
    (order,) = app.hands["h0"].poll().orders
    app.hands["h0"].result(order)
    app.hands["h0"].answer(order, failure("it took too long"))
    run_agents_until_idle(app, app.hands)
    check_settled(app, host="h1")


def test_late_transfer_is_aborted_and_inspected(app):
    request_move(app, "live_migrate", "one")
    app.turn()
    app.hands["h1"].work()
    app.turn()
    (migrate,) = app.hands["h0"].poll().orders
    app.hands["h0"].known = [migrate.id]
    advance_clock(app, app.hands, 601)
    app.turn()
    assert [action(order) for order in app.hands["h0"].poll().orders] == ["abort_migration", "inspect"]
    assert app.reader.order(migrate.id).state == "withdrawn"
    run_agents_until_idle(app, app.hands)
    check_settled(app, host="h0", migration="failed", fault="it did not move within 600 s")


def order_to_source(app):
    """Begin a live migration; return the order to the source."""
    request_move(app, "live_migrate", "one")
    app.turn()
    app.hands["h1"].work()
    app.turn()
    (order,) = app.hands["h0"].poll().orders
    return order


def test_instance_is_on_the_target_if_the_source_left_after_the_transfer(app):
    app.hands["h0"].result(order_to_source(app))
    app.hands["h0"].leave()
    run_agents_until_idle(app, app.hands)
    status = app.status("one")
    assert (status.status, status.host, guest_states(app)) == ("ACTIVE", "h1", {"h1": "running"})
    assert migrations(app, "one") == [("live", "finished", "h0", "h1")]
    assert nodes_by_consumer(app) == {ONE: ["h1"], uuid_text(status.migration_uuid): ["h0"]}
    reply = app.hands["h0"].register()
    assert reply.is_ready
    assert nodes_by_consumer(app) == {ONE: ["h1"]}
    assert migrations(app, "one") == [("live", "confirmed", "h0", "h1")]


def test_returning_source_destroys_its_leftover_copy(app):
    app.hands["h0"].result(order_to_source(app))
    app.hands["h0"].leave()
    run_agents_until_idle(app, app.hands)
    app.hands["h0"].guests[ONE] = "stopped"
    reply = app.hands["h0"].register()
    assert (reply.is_ready, reply.destroy) == (False, (ONE,))
    assert nodes_by_consumer(app)[uuid_text(app.status("one").migration_uuid)] == ["h0"]
    run_agents_until_idle(app, app.hands)
    assert (guest_states(app), nodes_by_consumer(app)) == ({"h1": "running"}, {ONE: ["h1"]})
    assert migrations(app, "one") == [("live", "confirmed", "h0", "h1")]


def test_instance_stays_if_the_source_left_before_the_transfer(app):
    order_to_source(app)
    app.hands["h0"].leave()
    run_agents_until_idle(app, app.hands)
    check_settled(app, host="h0", migration="failed", fault="the agent of h0 does not answer")
    assert app.hands["h0"].register().keep == (ONE,)


@pytest.mark.parametrize("is_back", [False, True])
def test_guest_that_arrives_before_the_discard_is_on_the_target(app, is_back):
    migrate = order_to_source(app)
    app.hands["h0"].leave()
    app.turn()
    app.hands["h1"].work()  # It reports that the guest has not arrived.
    app.turn()
    assert [action(order) for order in app.hands["h1"].poll().orders] == ["discard"]
    app.hands["h0"].result(migrate)
    if is_back:
        app.hands["h0"].register()
    run_agents_until_idle(app, app.hands)
    status = app.status("one")
    assert (status.status, status.host, guest_states(app)) == ("ACTIVE", "h1", {"h1": "running"})
    if is_back:
        check_settled(app, host="h1")
    else:
        assert nodes_by_consumer(app) == {ONE: ["h1"], uuid_text(status.migration_uuid): ["h0"]}


def test_migration_waits_for_its_target_if_both_hosts_are_gone(app):
    app.hands["h0"].result(order_to_source(app))
    app.hands["h0"].leave()
    app.hands["h1"].leave()
    for _ in range(5):
        app.turn()
        advance_clock(app, app.hands, 11)
    assert (app.status("one").task, len(nodes_by_consumer(app))) == ("live-migrating", 2)
    app.hands["h0"].register()
    for _ in range(5):
        run_agents_until_idle(app, app.hands)
        advance_clock(app, app.hands, 11)
    assert app.status("one").task == "live-migrating"
    app.hands["h1"].register()
    for _ in range(3):
        run_agents_until_idle(app, app.hands)
        advance_clock(app, app.hands, 11)
    check_settled(app, host="h1")


def test_source_that_returns_before_the_end_destroys_its_copy(app):
    app.hands["h0"].result(order_to_source(app))
    app.hands["h0"].leave()
    app.turn()
    app.hands["h0"].guests[ONE] = "stopped"
    assert app.hands["h0"].register().keep == (ONE,)
    run_agents_until_idle(app, app.hands)
    check_settled(app, host="h1")


def test_instance_stays_if_the_source_reports_failure_and_the_target_left(app):
    order = order_to_source(app)
    app.hands["h1"].leave()
    app.hands["h0"].answer(order, failure("nobody listens"))
    run_agents_until_idle(app, app.hands)
    status = app.status("one")
    assert (status.host, status.fault, nodes_by_consumer(app)) == ("h0", "nobody listens", {ONE: ["h0"]})
    assert app.hands["h1"].register().destroy == (ONE,)
    run_agents_until_idle(app, app.hands)
    check_settled(app, host="h0", migration="failed", fault="nobody listens")


def test_instance_is_in_error_if_neither_host_has_the_guest(app):
    order = order_to_source(app)
    del app.hands["h0"].guests[ONE]
    app.hands["h0"].answer(order, failure("it crashed"))
    run_agents_until_idle(app, app.hands)
    status = app.status("one")
    assert (status.status, status.host, nodes_by_consumer(app)) == ("ERROR", "h0", {ONE: ["h0"]})
    assert status.fault == "it crashed; and neither h0 nor h1 has it"


def test_failed_inspection_is_repeated(app):
    order = order_to_source(app)
    app.hands["h0"].answer(order, failure("the link broke"))
    script = {("h0", "inspect"): [failure("it hangs"), failure("it hangs")]}
    run_agents_until_idle(app, app.hands, script)
    assert app.status("one").task == "live-migrating"
    for _ in range(3):
        advance_clock(app, app.hands, 11)
        run_agents_until_idle(app, app.hands, script)
    check_settled(app, host="h0", migration="failed", fault="the link broke")


@pytest.mark.parametrize("turns", range(8))
def test_deletion_ends_the_live_migration_at_any_step(app, turns):
    request_move(app, "live_migrate", "one")
    for number in range(turns):
        if number % 2 == 0:
            app.conductor().turn()
        else:
            assert [hand.work() for hand in app.hands.values()]
    app.delete("one")
    for _ in range(3):
        run_agents_until_idle(app, app.hands)
        advance_clock(app, app.hands, 6)
    assert (app.status("one").status, guest_states(app), nodes_by_consumer(app)) == ("DELETED", {}, {})
    assert app.used()["VCPU"] == 0
    assert app.open_operations() == []
    assert migrations(app, "one")[0][1] in {"failed", "confirmed"}


def test_guest_that_stopped_by_itself_stays_on_the_source_as_shutoff(app):
    request_move(app, "live_migrate", "one")
    app.hands["h0"].guests[ONE] = "stopped"
    run_agents_until_idle(app, app.hands, {("h0", "live_migrate"): [failure("it does not run")]})
    status = app.status("one")
    assert (status.status, status.host, status.fault) == ("SHUTOFF", "h0", "it does not run")
    assert (guest_states(app), nodes_by_consumer(app)) == ({"h0": "stopped"}, {ONE: ["h0"]})


@pytest.mark.parametrize("is_late", [False, True])
def test_reduced_max_unit_of_the_source_does_not_stop_the_migration(is_late):
    with server(None, ladder(3, vcpus=4)) as app:
        app.hands = movers(app, ["h0", "h1", "h2"])
        app.build("one", vcpus=2)
        run_agents_until_idle(app, app.hands)
        if not is_late:
            shrink(app, "h0")
        request_move(app, "live_migrate", "one")
        app.turn()
        assert sorted(nodes_by_consumer(app).values()) == [["h0"], ["h1"]]
        if is_late:
            shrink(app, "h0")
        run_agents_until_idle(app, app.hands, {("h0", "live_migrate"): [failure("the link broke")]})
        check_settled(app, host="h0", migration="failed", fault="the link broke")
        app.clock.time_s += 1
        request_move(app, "live_migrate", "one")
        run_agents_until_idle(app, app.hands)
        check_settled(app, host="h1")


def shrink(app, name):
    """Let a host offer at most one VCPU to an allocation."""

    def task(current):
        state = current.state
        row = state.providers.row_of_uuid[uuid_named(name)]
        cpu, memory = (state.class_ids.id_of(each) for each in ("VCPU", "MEMORY_MB"))
        inventories = [InventoryRow(cpu, 4, 0, 1, 1, 1, 1.0), InventoryRow(memory, 1000, 0, 1, 1000, 1, 1.0)]
        return Plan(
            answer=None,
            writes=(PutInventories(state.providers.ids[row], int(state.providers.generation.each[row]), inventories),),
        )

    app.run(task)
