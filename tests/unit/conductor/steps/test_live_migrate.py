"""An instance leaves its host while it runs: it is on one host at any time, and so is what it holds in the end."""

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
    with one_of_four() as made:
        yield made


def where(here):
    """Give what runs or is prepared on hosts, and what is held where."""
    return {name: hand.guests[ONE] for name, hand in here.hands.items() if ONE in hand.guests}


def settled(here, *, host, state="ACTIVE", migration="confirmed", fault=""):
    """See that the instance is on one host, with all that there is of it."""
    status = here.status("one")
    assert (status.status, status.host, status.node, status.task) == (state, host, host, "")
    assert fault in status.fault
    assert bool(status.fault) is bool(fault)
    assert status.migration_uuid is None
    assert where(here) == {host: "running"}
    assert holders(here) == {ONE: [host]}
    assert migrations(here, "one")[-1][1] == migration
    assert here.open_operations() == []


def test_it_runs_on_the_target_and_its_old_host_holds_nothing(here):
    asked = ask(here, "live_migrate", "one", key="the move")
    status = here.status("one")
    assert (status.status, status.task, status.operation_id) == ("ACTIVE", "live-migrating", asked.id)
    here.turn()
    assert holders(here) == {ONE: ["h1"], uuid_text(here.status("one").migration_uuid): ["h0"]}
    (order,) = here.hands["h1"].poll().orders
    assert (action(order), order.act.guest.allocations) == ("prepare", {uuid_named("h1"): {"VCPU": 1, "MEMORY_MB": 1}})
    assert migrations(here, "one") == [("live", "moving", "h0", "h1")]
    at_rest(here, here.hands)
    settled(here, host="h1")
    assert here.reader.operation(asked.id).outcome == "done"
    assert uuid_text(here.status("one").decision_uuid) == uuid_named("decision the move")
    assert [kind for kind, _ in here.story("one")][-3:] == [
        "live_migrate.asked",
        "live_migrate.sent",
        "live_migrate.done",
    ]


def test_to_a_named_host_and_back(here):
    ask(here, "live_migrate", "one", host="h3")
    at_rest(here, here.hands)
    settled(here, host="h3")
    ask(here, "live_migrate", "one", key="back", host="h0")
    at_rest(here, here.hands)
    settled(here, host="h0")
    assert [each[1:] for each in migrations(here, "one")] == [("confirmed", "h0", "h3"), ("confirmed", "h3", "h0")]


def test_where_nothing_is_free_it_stays(here):
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


def test_where_the_target_cannot_the_next_alternate_takes_it(here):
    ask(here, "live_migrate", "one")
    at_rest(here, here.hands, {("h1", "prepare"): [failed("no bridge")]})
    settled(here, host="h2")
    assert migrations(here, "one") == [("live", "confirmed", "h0", "h2")]


def test_where_no_target_can_it_stays_and_the_fault_says_why(here):
    ask(here, "live_migrate", "one")
    script = {(f"h{number}", "prepare"): [failed(f"no bridge {number}")] for number in (1, 2, 3)}
    at_rest(here, here.hands, script)
    settled(here, host="h0", migration="failed", fault="no bridge 3")


def test_a_target_that_is_not_rid_yet_of_what_it_had_is_passed_over(here):
    ghost = status(9, uuid=uuid_bytes(uuid_named("ghost")), host="h3", status="ACTIVE", task="")
    here.run(lambda current: current.commit([Item(writes=(), work=(Put(ghost),))]))
    ask(here, "live_migrate", "one")
    here.turn()
    here.hands["h2"].guests = {uuid_named("ghost"): "running"}
    assert not here.hands["h2"].register().is_ready
    here.hands["h1"].answer(here.hands["h1"].poll().orders[0], failed("no bridge"))
    here.turn()
    at_rest(here, here.hands)
    settled(here, host="h3")


def test_a_target_that_came_back_since_it_was_chosen_and_is_not_rid_yet_of_what_it_had_is_passed_over(here):
    ask(here, "live_migrate", "one")
    back = replace_row(next_version(here.reader.agent("h1"), state="arriving"))  # The decision takes it to be up.
    here.run(lambda current: current.commit([Item(writes=(), work=(back,))]))
    here.turn()
    assert here.hands["h1"].poll().orders == ()
    at_rest(here, {name: each for name, each in here.hands.items() if name != "h1"})
    settled(here, host="h2")


def test_a_target_that_got_rid_of_the_instance_by_a_later_order_is_passed_over(here):
    ask(here, "live_migrate", "one")
    at_rest(here, here.hands, {("h1", "prepare"): [Answer(outcome="stale", problem="a later order was here")]})
    settled(here, host="h2")


def test_an_answer_that_no_other_host_would_do_ends_it(here):
    ask(here, "live_migrate", "one")
    at_rest(here, here.hands, {("h1", "prepare"): [Answer(outcome="aborted", problem="it is pinned")]})
    settled(here, host="h0", migration="failed", fault="it is pinned")


def test_a_target_that_falls_silent_is_passed_over(here):
    ask(here, "live_migrate", "one")
    here.turn()
    here.hands["h1"].leave()
    at_rest(here, here.hands)
    settled(here, host="h2")


def test_a_target_that_takes_too_long_undoes_it_first(here):
    ask(here, "live_migrate", "one")
    here.turn()
    late = here.hands["h1"].poll().orders[0]
    here.hands["h1"].result(late)
    pass_time(here, here.hands, 121)
    here.turn()
    assert holders(here)[ONE] == ["h1"]
    at_rest(here, here.hands)
    settled(here, host="h2")
    assert "discard" in here.hands["h1"].done


def test_what_failed_on_the_way_is_looked_for_and_undone_on_the_target(here):
    ask(here, "live_migrate", "one")
    at_rest(here, here.hands, {("h0", "live_migrate"): [failed("the link broke")]})
    settled(here, host="h0", migration="failed", fault="the link broke")
    assert here.hands["h0"].done[-2:] == ["abort_migration", "inspect"]
    assert here.hands["h1"].done == ["prepare", "discard"]


def test_what_arrived_although_it_was_said_to_have_failed_is_there(here):
    ask(here, "live_migrate", "one")
    here.turn()
    here.hands["h1"].work()
    here.turn()
    (order,) = here.hands["h0"].poll().orders
    here.hands["h0"].result(order)
    here.hands["h0"].answer(order, failed("it took too long"))
    at_rest(here, here.hands)
    settled(here, host="h1")


def test_what_does_not_arrive_in_time_is_aborted_and_looked_for(here):
    ask(here, "live_migrate", "one")
    here.turn()
    here.hands["h1"].work()
    here.turn()
    (moving,) = here.hands["h0"].poll().orders
    here.hands["h0"].known = [moving.id]
    pass_time(here, here.hands, 601)
    here.turn()
    assert [action(order) for order in here.hands["h0"].poll().orders] == ["abort_migration", "inspect"]
    assert here.reader.order(moving.id).state == "withdrawn"
    at_rest(here, here.hands)
    settled(here, host="h0", migration="failed", fault="it did not move within 600 s")


def on_its_way(here):
    """Let the source have the order to let it go."""
    ask(here, "live_migrate", "one")
    here.turn()
    here.hands["h1"].work()
    here.turn()
    (order,) = here.hands["h0"].poll().orders
    return order


def test_where_the_source_is_gone_and_it_runs_on_the_target_it_is_there(here):
    here.hands["h0"].result(on_its_way(here))
    here.hands["h0"].leave()
    at_rest(here, here.hands)
    status = here.status("one")
    assert (status.status, status.host, where(here)) == ("ACTIVE", "h1", {"h1": "running"})
    assert migrations(here, "one") == [("live", "finished", "h0", "h1")]
    assert holders(here) == {ONE: ["h1"], uuid_text(status.migration_uuid): ["h0"]}
    told = here.hands["h0"].register()
    assert told.is_ready
    assert holders(here) == {ONE: ["h1"]}
    assert migrations(here, "one") == [("live", "confirmed", "h0", "h1")]


def test_what_the_source_has_of_it_then_goes_when_it_is_back(here):
    here.hands["h0"].result(on_its_way(here))
    here.hands["h0"].leave()
    at_rest(here, here.hands)
    here.hands["h0"].guests[ONE] = "stopped"
    told = here.hands["h0"].register()
    assert (told.is_ready, told.destroy) == (False, (ONE,))
    assert holders(here)[uuid_text(here.status("one").migration_uuid)] == ["h0"]
    at_rest(here, here.hands)
    assert (where(here), holders(here)) == ({"h1": "running"}, {ONE: ["h1"]})
    assert migrations(here, "one") == [("live", "confirmed", "h0", "h1")]


def test_where_the_source_is_gone_and_the_target_does_not_run_it_it_stays(here):
    on_its_way(here)
    here.hands["h0"].leave()
    at_rest(here, here.hands)
    settled(here, host="h0", migration="failed", fault="the agent of h0 does not answer")
    assert here.hands["h0"].register().keep == (ONE,)


@pytest.mark.parametrize("is_back", [False, True])
def test_what_arrives_after_the_target_was_asked_and_before_it_undid_it_is_there(here, is_back):
    moving = on_its_way(here)
    here.hands["h0"].leave()
    here.turn()
    here.hands["h1"].work()  # It says that nothing has come yet.
    here.turn()
    assert [action(order) for order in here.hands["h1"].poll().orders] == ["discard"]
    here.hands["h0"].result(moving)
    if is_back:
        here.hands["h0"].register()
    at_rest(here, here.hands)
    status = here.status("one")
    assert (status.status, status.host, where(here)) == ("ACTIVE", "h1", {"h1": "running"})
    if is_back:
        settled(here, host="h1")
    else:
        assert holders(here) == {ONE: ["h1"], uuid_text(status.migration_uuid): ["h0"]}


def test_where_both_are_gone_nothing_is_decided_until_one_is_back(here):
    here.hands["h0"].result(on_its_way(here))
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
    settled(here, host="h1")


def test_a_source_that_is_back_before_it_is_decided_gets_rid_of_its_copy(here):
    here.hands["h0"].result(on_its_way(here))
    here.hands["h0"].leave()
    here.turn()
    here.hands["h0"].guests[ONE] = "stopped"
    assert here.hands["h0"].register().keep == (ONE,)
    at_rest(here, here.hands)
    settled(here, host="h1")


def test_where_the_target_is_gone_the_word_of_the_source_counts(here):
    order = on_its_way(here)
    here.hands["h1"].leave()
    here.hands["h0"].answer(order, failed("nobody listens"))
    at_rest(here, here.hands)
    status = here.status("one")
    assert (status.host, status.fault, holders(here)) == ("h0", "nobody listens", {ONE: ["h0"]})
    assert here.hands["h1"].register().destroy == (ONE,)
    at_rest(here, here.hands)
    settled(here, host="h0", migration="failed", fault="nobody listens")


def test_what_neither_has_is_in_error_on_its_old_host(here):
    order = on_its_way(here)
    del here.hands["h0"].guests[ONE]
    here.hands["h0"].answer(order, failed("it crashed"))
    at_rest(here, here.hands)
    status = here.status("one")
    assert (status.status, status.host, holders(here)) == ("ERROR", "h0", {ONE: ["h0"]})
    assert status.fault == "it crashed; and neither h0 nor h1 has it"


def test_who_cannot_say_what_it_has_is_asked_again(here):
    order = on_its_way(here)
    here.hands["h0"].answer(order, failed("the link broke"))
    script = {("h0", "inspect"): [failed("it hangs"), failed("it hangs")]}
    at_rest(here, here.hands, script)
    assert here.status("one").task == "live-migrating"
    for _ in range(3):
        pass_time(here, here.hands, 11)
        at_rest(here, here.hands, script)
    settled(here, host="h0", migration="failed", fault="the link broke")


@pytest.mark.parametrize("turns", range(8))
def test_a_deletion_ends_it_at_any_step(here, turns):
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
    assert (here.status("one").status, where(here), holders(here)) == ("DELETED", {}, {})
    assert here.used()["VCPU"] == 0
    assert here.open_operations() == []
    assert migrations(here, "one")[0][1] in {"failed", "confirmed"}


def test_what_is_stopped_on_its_host_by_then_stays_there_stopped(here):
    ask(here, "live_migrate", "one")
    here.hands["h0"].guests[ONE] = "stopped"
    at_rest(here, here.hands, {("h0", "live_migrate"): [failed("it does not run")]})
    status = here.status("one")
    assert (status.status, status.host, status.fault) == ("SHUTOFF", "h0", "it does not run")
    assert (where(here), holders(here)) == ({"h0": "stopped"}, {ONE: ["h0"]})


@pytest.mark.parametrize("is_late", [False, True])
def test_a_host_that_gives_less_at_once_by_then_lets_it_go_and_takes_it_back(is_late):
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
        settled(here, host="h0", migration="failed", fault="the link broke")
        here.clock.time_s += 1
        ask(here, "live_migrate", "one")
        at_rest(here, here.hands)
        settled(here, host="h1")


def shrink(here, name):
    """Let a host give one processor at once, and no more."""

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
