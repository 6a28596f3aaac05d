"""Live migrations: the guest runs on one host at any time, and its allocations end on the same host."""

import pytest

from roost.conductor.operation.row_changes import next_version, replace_row
from roost.model.names import uuid_bytes, uuid_text
from roost.model.work.orders import Answer
from roost.model.work.work_rows import Put
from roost.model.writes import InventoryRow, Item, PutInventories
from roost.placement.write_plan import Plan
from tests.support.conductors.builders import ladder
from tests.support.conductors.conductors import action, failed, server
from tests.support.conductors.move_servers import ask, at_rest, holders, migrations, movers, one_of_four, pass_time
from tests.support.conductors.work_rows import status
from tests.support.fleets.named_uuids import uuid_named

ONE = uuid_named("one")


@pytest.fixture
def here():
    with one_of_four() as here:
        yield here


def guest_states(here):
    """Return the state of the guest on each host."""
    return {name: hand.guests[ONE] for name, hand in here.hands.items() if ONE in hand.guests}


def check_settled(here, *, host, state="ACTIVE", migration="confirmed", fault=""):
    """Check that the instance, its guest and its allocations are on one host."""
    status = here.status("one")
    assert (status.status, status.host, status.node, status.task) == (state, host, host, "")
    assert fault in status.fault
    assert bool(status.fault) is bool(fault)
    assert status.migration_uuid is None
    assert guest_states(here) == {host: "running"}
    assert holders(here) == {ONE: [host]}
    assert migrations(here, "one")[-1][1] == migration
    assert here.open_operations() == []


def test_guest_runs_on_the_target_and_the_source_is_released(here):
    operation = ask(here, "live_migrate", "one", key="the move")
    status = here.status("one")
    assert (status.status, status.task, status.operation_id) == ("ACTIVE", "live-migrating", operation.id)
    here.turn()
    assert holders(here) == {ONE: ["h1"], uuid_text(here.status("one").migration_uuid): ["h0"]}
    (order,) = here.hands["h1"].poll().orders
    assert (action(order), order.act.guest.allocations) == ("prepare", {uuid_named("h1"): {"VCPU": 1, "MEMORY_MB": 1}})
    assert migrations(here, "one") == [("live", "moving", "h0", "h1")]
    at_rest(here, here.hands)
    check_settled(here, host="h1")
    assert here.reader.operation(operation.id).outcome == "done"
    assert uuid_text(here.status("one").decision_uuid) == uuid_named("decision the move")
    assert [kind for kind, _ in here.story("one")][-3:] == [
        "live_migrate.asked",
        "live_migrate.sent",
        "live_migrate.done",
    ]


def test_live_migration_to_a_named_host_and_back(here):
    ask(here, "live_migrate", "one", host="h3")
    at_rest(here, here.hands)
    check_settled(here, host="h3")
    ask(here, "live_migrate", "one", key="back", host="h0")
    at_rest(here, here.hands)
    check_settled(here, host="h0")
    assert [each[1:] for each in migrations(here, "one")] == [("confirmed", "h0", "h3"), ("confirmed", "h3", "h0")]


def test_instance_stays_if_no_valid_host_is_found(here):
    for number in range(1, 4):
        here.build(f"full {number}", key=f"full {number}")
    at_rest(here, here.hands)
    ask(here, "live_migrate", "one")
    at_rest(here, here.hands)
    assert (here.status("one").status, here.status("one").host) == ("ACTIVE", "h0")
    assert here.status("one").fault.startswith("No valid host")
    assert migrations(here, "one") == [("live", "failed", "h0", "")]
    assert holders(here)[ONE] == ["h0"]
    assert here.used()["VCPU"] == 4
    assert here.status("one").migration_uuid is None


def test_next_alternate_is_used_if_the_target_fails(here):
    ask(here, "live_migrate", "one")
    at_rest(here, here.hands, {("h1", "prepare"): [failed("no bridge")]})
    check_settled(here, host="h2")
    assert migrations(here, "one") == [("live", "confirmed", "h0", "h2")]


def test_instance_stays_with_a_fault_if_every_target_fails(here):
    ask(here, "live_migrate", "one")
    script = {(f"h{number}", "prepare"): [failed(f"no bridge {number}")] for number in (1, 2, 3)}
    at_rest(here, here.hands, script)
    check_settled(here, host="h0", migration="failed", fault="no bridge 3")


def test_alternate_that_is_not_clean_yet_is_skipped(here):
    ghost = status(9, uuid=uuid_bytes(uuid_named("ghost")), host="h3", status="ACTIVE", task="")
    here.run(lambda current: current.commit([Item(writes=(), work=(Put(ghost),))]))
    ask(here, "live_migrate", "one")
    here.turn()
    here.hands["h2"].guests = {uuid_named("ghost"): "running"}
    assert not here.hands["h2"].register().is_ready
    here.hands["h1"].answer(here.hands["h1"].poll().orders[0], failed("no bridge"))
    here.turn()
    at_rest(here, here.hands)
    check_settled(here, host="h3")


def test_target_that_returned_unclean_after_the_decision_is_skipped(here):
    ask(here, "live_migrate", "one")
    put = replace_row(next_version(here.reader.agent("h1"), state="arriving"))  # The decision counts it as up.
    here.run(lambda current: current.commit([Item(writes=(), work=(put,))]))
    here.turn()
    assert here.hands["h1"].poll().orders == ()
    at_rest(here, {name: each for name, each in here.hands.items() if name != "h1"})
    check_settled(here, host="h2")


def test_stale_answer_moves_on_to_the_next_target(here):
    ask(here, "live_migrate", "one")
    at_rest(here, here.hands, {("h1", "prepare"): [Answer(outcome="stale", problem="a later order was here")]})
    check_settled(here, host="h2")


def test_aborted_prepare_ends_the_migration(here):
    ask(here, "live_migrate", "one")
    at_rest(here, here.hands, {("h1", "prepare"): [Answer(outcome="aborted", problem="it is pinned")]})
    check_settled(here, host="h0", migration="failed", fault="it is pinned")


def test_target_that_leaves_is_skipped(here):
    ask(here, "live_migrate", "one")
    here.turn()
    here.hands["h1"].leave()
    at_rest(here, here.hands)
    check_settled(here, host="h2")


def test_late_target_discards_the_guest_first(here):
    ask(here, "live_migrate", "one")
    here.turn()
    late = here.hands["h1"].poll().orders[0]
    here.hands["h1"].result(late)
    pass_time(here, here.hands, 121)
    here.turn()
    assert holders(here)[ONE] == ["h1"]
    at_rest(here, here.hands)
    check_settled(here, host="h2")
    assert "discard" in here.hands["h1"].done


def test_failed_transfer_is_aborted_inspected_and_discarded(here):
    ask(here, "live_migrate", "one")
    at_rest(here, here.hands, {("h0", "live_migrate"): [failed("the link broke")]})
    check_settled(here, host="h0", migration="failed", fault="the link broke")
    assert here.hands["h0"].done[-2:] == ["abort_migration", "inspect"]
    assert here.hands["h1"].done == ["prepare", "discard"]


def test_guest_that_arrived_despite_a_failed_answer_is_on_the_target(here):
    ask(here, "live_migrate", "one")
    here.turn()
    here.hands["h1"].work()
    here.turn()
    (order,) = here.hands["h0"].poll().orders
    here.hands["h0"].result(order)
    here.hands["h0"].answer(order, failed("it took too long"))
    at_rest(here, here.hands)
    check_settled(here, host="h1")


def test_late_transfer_is_aborted_and_inspected(here):
    ask(here, "live_migrate", "one")
    here.turn()
    here.hands["h1"].work()
    here.turn()
    (migrate,) = here.hands["h0"].poll().orders
    here.hands["h0"].known = [migrate.id]
    pass_time(here, here.hands, 601)
    here.turn()
    assert [action(order) for order in here.hands["h0"].poll().orders] == ["abort_migration", "inspect"]
    assert here.reader.order(migrate.id).state == "withdrawn"
    at_rest(here, here.hands)
    check_settled(here, host="h0", migration="failed", fault="it did not move within 600 s")


def order_to_source(here):
    """Begin a live migration; return the order to the source."""
    ask(here, "live_migrate", "one")
    here.turn()
    here.hands["h1"].work()
    here.turn()
    (order,) = here.hands["h0"].poll().orders
    return order


def test_instance_is_on_the_target_if_the_source_left_after_the_transfer(here):
    here.hands["h0"].result(order_to_source(here))
    here.hands["h0"].leave()
    at_rest(here, here.hands)
    status = here.status("one")
    assert (status.status, status.host, guest_states(here)) == ("ACTIVE", "h1", {"h1": "running"})
    assert migrations(here, "one") == [("live", "finished", "h0", "h1")]
    assert holders(here) == {ONE: ["h1"], uuid_text(status.migration_uuid): ["h0"]}
    reply = here.hands["h0"].register()
    assert reply.is_ready
    assert holders(here) == {ONE: ["h1"]}
    assert migrations(here, "one") == [("live", "confirmed", "h0", "h1")]


def test_returning_source_destroys_its_leftover_copy(here):
    here.hands["h0"].result(order_to_source(here))
    here.hands["h0"].leave()
    at_rest(here, here.hands)
    here.hands["h0"].guests[ONE] = "stopped"
    reply = here.hands["h0"].register()
    assert (reply.is_ready, reply.destroy) == (False, (ONE,))
    assert holders(here)[uuid_text(here.status("one").migration_uuid)] == ["h0"]
    at_rest(here, here.hands)
    assert (guest_states(here), holders(here)) == ({"h1": "running"}, {ONE: ["h1"]})
    assert migrations(here, "one") == [("live", "confirmed", "h0", "h1")]


def test_instance_stays_if_the_source_left_before_the_transfer(here):
    order_to_source(here)
    here.hands["h0"].leave()
    at_rest(here, here.hands)
    check_settled(here, host="h0", migration="failed", fault="the agent of h0 does not answer")
    assert here.hands["h0"].register().keep == (ONE,)


@pytest.mark.parametrize("is_back", [False, True])
def test_guest_that_arrives_before_the_discard_is_on_the_target(here, is_back):
    migrate = order_to_source(here)
    here.hands["h0"].leave()
    here.turn()
    here.hands["h1"].work()  # It reports that the guest has not arrived.
    here.turn()
    assert [action(order) for order in here.hands["h1"].poll().orders] == ["discard"]
    here.hands["h0"].result(migrate)
    if is_back:
        here.hands["h0"].register()
    at_rest(here, here.hands)
    status = here.status("one")
    assert (status.status, status.host, guest_states(here)) == ("ACTIVE", "h1", {"h1": "running"})
    if is_back:
        check_settled(here, host="h1")
    else:
        assert holders(here) == {ONE: ["h1"], uuid_text(status.migration_uuid): ["h0"]}


def test_migration_waits_for_its_target_if_both_hosts_are_gone(here):
    here.hands["h0"].result(order_to_source(here))
    here.hands["h0"].leave()
    here.hands["h1"].leave()
    for _ in range(5):
        here.turn()
        pass_time(here, here.hands, 11)
    assert (here.status("one").task, len(holders(here))) == ("live-migrating", 2)
    here.hands["h0"].register()
    for _ in range(5):
        at_rest(here, here.hands)
        pass_time(here, here.hands, 11)
    assert here.status("one").task == "live-migrating"
    here.hands["h1"].register()
    for _ in range(3):
        at_rest(here, here.hands)
        pass_time(here, here.hands, 11)
    check_settled(here, host="h1")


def test_source_that_returns_before_the_end_destroys_its_copy(here):
    here.hands["h0"].result(order_to_source(here))
    here.hands["h0"].leave()
    here.turn()
    here.hands["h0"].guests[ONE] = "stopped"
    assert here.hands["h0"].register().keep == (ONE,)
    at_rest(here, here.hands)
    check_settled(here, host="h1")


def test_instance_stays_if_the_source_reports_failure_and_the_target_left(here):
    order = order_to_source(here)
    here.hands["h1"].leave()
    here.hands["h0"].answer(order, failed("nobody listens"))
    at_rest(here, here.hands)
    status = here.status("one")
    assert (status.host, status.fault, holders(here)) == ("h0", "nobody listens", {ONE: ["h0"]})
    assert here.hands["h1"].register().destroy == (ONE,)
    at_rest(here, here.hands)
    check_settled(here, host="h0", migration="failed", fault="nobody listens")


def test_instance_is_in_error_if_neither_host_has_the_guest(here):
    order = order_to_source(here)
    del here.hands["h0"].guests[ONE]
    here.hands["h0"].answer(order, failed("it crashed"))
    at_rest(here, here.hands)
    status = here.status("one")
    assert (status.status, status.host, holders(here)) == ("ERROR", "h0", {ONE: ["h0"]})
    assert status.fault == "it crashed; and neither h0 nor h1 has it"


def test_failed_inspection_is_repeated(here):
    order = order_to_source(here)
    here.hands["h0"].answer(order, failed("the link broke"))
    script = {("h0", "inspect"): [failed("it hangs"), failed("it hangs")]}
    at_rest(here, here.hands, script)
    assert here.status("one").task == "live-migrating"
    for _ in range(3):
        pass_time(here, here.hands, 11)
        at_rest(here, here.hands, script)
    check_settled(here, host="h0", migration="failed", fault="the link broke")


@pytest.mark.parametrize("turns", range(8))
def test_deletion_ends_the_live_migration_at_any_step(here, turns):
    ask(here, "live_migrate", "one")
    for number in range(turns):
        if number % 2 == 0:
            here.conductor().turn()
        else:
            assert [hand.work() for hand in here.hands.values()]
    here.delete("one")
    for _ in range(3):
        at_rest(here, here.hands)
        pass_time(here, here.hands, 6)
    assert (here.status("one").status, guest_states(here), holders(here)) == ("DELETED", {}, {})
    assert here.used()["VCPU"] == 0
    assert here.open_operations() == []
    assert migrations(here, "one")[0][1] in {"failed", "confirmed"}


def test_guest_that_stopped_by_itself_stays_on_the_source_as_shutoff(here):
    ask(here, "live_migrate", "one")
    here.hands["h0"].guests[ONE] = "stopped"
    at_rest(here, here.hands, {("h0", "live_migrate"): [failed("it does not run")]})
    status = here.status("one")
    assert (status.status, status.host, status.fault) == ("SHUTOFF", "h0", "it does not run")
    assert (guest_states(here), holders(here)) == ({"h0": "stopped"}, {ONE: ["h0"]})


@pytest.mark.parametrize("is_late", [False, True])
def test_reduced_max_unit_of_the_source_does_not_stop_the_migration(is_late):
    with server(None, ladder(3, vcpus=4)) as here:
        here.hands = movers(here, ["h0", "h1", "h2"])
        here.build("one", vcpus=2)
        at_rest(here, here.hands)
        if not is_late:
            shrink(here, "h0")
        ask(here, "live_migrate", "one")
        here.turn()
        assert sorted(holders(here).values()) == [["h0"], ["h1"]]
        if is_late:
            shrink(here, "h0")
        at_rest(here, here.hands, {("h0", "live_migrate"): [failed("the link broke")]})
        check_settled(here, host="h0", migration="failed", fault="the link broke")
        here.clock.time_s += 1
        ask(here, "live_migrate", "one")
        at_rest(here, here.hands)
        check_settled(here, host="h1")


def shrink(here, name):
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

    here.run(task)
