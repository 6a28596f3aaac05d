"""Deletions: the host destroys the guest, then its allocations are released. Other operations are cancelled."""

import pytest

from roost.conductor.operation.row_changes import next_version, replace_row
from roost.conductor.operation.step import body_of
from roost.errors import Conflict, NotFound
from roost.model.names import uuid_bytes
from roost.model.work.operation import Delete
from roost.model.work.orders import Answer
from roost.model.work.work_rows import AgentRow, Put, StatusRow
from roost.model.writes import Item
from tests.contract.stores import uuid_of
from tests.support.conductors.builders import ladder
from tests.support.conductors.conductors import action, failed, hand, served, server
from tests.support.conductors.move_servers import ask
from tests.support.conductors.work_rows import migration
from tests.support.fleets.named_uuids import uuid_named
from tests.support.fleets.worlds import hosts


@pytest.fixture
def here():
    with server(None, ladder(3)) as here:
        here.hands = [hand(here, f"h{number}") for number in range(3)]
        yield here


def build_active(here, *names):
    for name in names:
        here.build(name, key=name)
    served(here, *here.hands)
    assert all(here.status(name).status == "ACTIVE" for name in names)


def test_allocations_are_released_after_the_host_destroyed_the_guest(here):
    build_active(here, "one")
    h0 = here.hands[0]
    operation = here.delete("one")
    assert (here.status("one").task, here.status("one").operation_id) == ("deleting", operation.id)
    here.turn()
    assert here.held("one")[0] == "h0"
    (order,) = h0.poll().orders
    assert (action(order), order.limit_s) == ("destroy", 120.0)
    h0.act(order)
    here.turn()
    status = here.status("one")
    assert (status.status, status.task, status.operation_id, status.host) == ("DELETED", "", 0, "")
    assert (here.held("one"), here.used()["VCPU"], h0.guests) == (None, 0, {})
    assert here.reader.operation(operation.id).outcome == "done"
    assert [kind for kind, _ in here.story("one")][-2:] == ["delete.asked", "delete.done"]


def test_deletion_has_a_higher_turn_than_the_build(here):
    here.build("one")
    here.turn()
    (spawn,) = here.hands[0].poll().orders
    here.hands[0].act(spawn)
    here.turn()
    here.delete("one")
    here.turn()
    (destroy,) = here.hands[0].poll().orders
    assert destroy.turn > spawn.turn


def test_unknown_or_deleted_instance_cannot_be_deleted(here):
    build_active(here, "one")
    with pytest.raises(NotFound, match="no such instance"):
        here.delete("nobody")
    operation = here.delete("one")
    assert here.delete("one").id == operation.id
    with pytest.raises(Conflict, match="cannot delete now: its task is deleting"):
        here.delete("one", key="another")
    served(here, *here.hands)
    with pytest.raises(Conflict, match="is deleted"):
        here.delete("one", key="another")


def test_deletion_ignores_a_gone_host_and_cleans_it_on_its_return(here):
    build_active(here, "one")
    h0 = here.hands[0]
    h0.leave()
    here.delete("one")
    here.turn()
    assert (here.status("one").status, here.used()["VCPU"]) == ("DELETED", 0)
    reply = h0.register()
    assert (reply.is_ready, reply.destroy) == (False, (uuid_named("one"),))
    served(here, *here.hands)
    assert h0.guests == {}
    assert here.reader.agent("h0").state == "ready"
    assert here.open_operations() == []


def test_deletion_ends_as_soon_as_its_host_leaves(here):
    build_active(here, "one")
    here.delete("one")
    here.turn()
    here.hands[0].leave()
    here.turn()
    assert (here.status("one").status, here.used()["VCPU"]) == ("DELETED", 0)


def test_deletion_waits_for_a_live_host_without_limit(here):
    build_active(here, "one")
    here.delete("one")
    here.turn()
    for _ in range(5):
        here.clock.time_s += 121
        here.hands[0].beat()
        here.turn()
    assert (here.status("one").status, here.held("one")[0]) == ("ACTIVE", "h0")
    served(here, here.hands[0])
    assert here.status("one").status == "DELETED"


def test_forced_deletion_releases_at_once_and_destroys_later(here):
    build_active(here, "one")
    here.delete("one", is_forced=True)
    here.turn()
    assert (here.status("one").status, here.used()["VCPU"]) == ("DELETED", 0)
    served(here, *here.hands)
    assert here.hands[0].guests == {}


def test_forced_deletion_repeats_its_order_until_the_host_is_done_or_gone(here):
    h0 = here.hands[0]
    for name in ("one", "two"):
        build_active(here, name)
        here.delete(name, is_forced=True)
        here.turn()
        (order,) = h0.poll().orders
        h0.answer(order, failed("it hangs"))
        here.turn()
        assert (h0.poll().orders, here.status(name).status) == ((), "DELETED")
        here.clock.time_s += 10
        here.turn()
        (repeat,) = h0.poll().orders
        assert (repeat.number, repeat.turn) == (2, order.turn)
        if name == "one":
            h0.act(repeat)
        else:
            h0.leave()
        here.turn()
        assert here.open_operations() == []
    h0.register()
    served(here, *here.hands)
    assert h0.guests == {}


def test_failed_destroy_ends_in_error_and_keeps_the_allocations(here):
    build_active(here, "one")
    operation = here.delete("one")
    here.turn()
    (order,) = here.hands[0].poll().orders
    here.hands[0].answer(order, failed("it hangs"))
    here.turn()
    status = here.status("one")
    assert (status.status, status.fault, here.held("one")[0]) == ("ERROR", "h0 could not destroy it: it hangs", "h0")
    assert body_of(here.reader.operation(operation.id), Delete).problem == status.fault
    here.delete("one", key="again")
    served(here, *here.hands)
    assert (here.status("one").status, here.used()["VCPU"]) == ("DELETED", 0)


@pytest.mark.parametrize("has_polled", [False, True])
def test_deletion_cancels_a_build_at_once(here, has_polled):
    build = here.build("one")
    here.turn()
    h0 = here.hands[0]
    if has_polled:
        h0.known = [h0.poll().orders[0].id]
    (spawn,) = here.reader.parts_of(build.id)
    here.delete("one")
    here.turn()
    assert (here.reader.operation(spawn.id).outcome, here.status("one").task) == ("failed", "deleting")
    assert [order.state for order in here.reader.orders_of(spawn.id)] == ["withdrawn"]
    assert here.held("one")[0] == "h0"
    served(here, *here.hands)
    assert (here.status("one").status, here.used()["VCPU"]) == ("DELETED", 0)
    assert here.open_operations() == []
    assert ("spawn.cancelled", {}) in here.story("one")


def test_stale_destroy_of_a_returned_host_is_not_repeated(here):
    build_active(here, "one")
    here.delete("one", is_forced=True)
    here.turn()
    host = here.hands[0]
    (first,) = host.poll().orders
    host.register()
    here.turn()
    second = next(order for order in host.poll().orders if order.id != first.id)
    assert second.turn > first.turn
    host.act(second)
    host.answer(first, Answer(outcome="stale", problem="a later order was here before it"))
    here.turn()
    assert (here.status("one").status, here.open_operations(), host.poll().orders) == ("DELETED", [], ())


def test_instance_without_a_host_yet_is_deleted_once_it_has_one(here):
    here.build("one", "two")
    here.delete("one")
    with pytest.raises(Conflict, match="is to be deleted already"):
        here.delete("one", key="again")
    here.turn()
    here.clock.time_s += 5
    for agent in here.hands:
        agent.beat()
    served(here, *here.hands)
    assert [here.status(name).status for name in ("one", "two")] == ["DELETED", "ACTIVE"]
    assert (here.used()["VCPU"], here.open_operations()) == (1, [])


def test_deletion_works_if_the_build_finds_no_host(here):
    here.build("one", vcpus=9)
    here.delete("one")
    here.turn()
    here.clock.time_s += 5
    here.turn()
    assert (here.status("one").status, here.open_operations()) == ("DELETED", [])


def test_instance_in_error_without_a_host_is_deleted_at_once(here):
    here.build("one", vcpus=9)
    here.turn()
    here.delete("one")
    here.turn()
    assert here.status("one").status == "DELETED"


def test_both_hosts_of_an_open_move_destroy_the_guest():
    with server(None, hosts(3)) as here:
        here.hands = [hand(here, f"h{number}") for number in range(3)]
        build_active(here, "one")
        body = uuid_bytes(uuid_named("one"))
        target = here.status("one").host
        source = next(name for name in ("h0", "h1", "h2") if name != target)
        row = migration(1, instance_uuid=body, status="finished", source_host=source, target_host=target)
        status = here.status("one")
        work = (Put(row), replace_row(next_version(status, migration_uuid=row.uuid, status="VERIFY_RESIZE")))
        here.run(lambda current: current.commit([Item(writes=(), work=work)]))
        here.delete("one")
        here.turn()
        orders = {agent.host: [each.number for each in agent.poll().orders] for agent in here.hands}
        assert {name for name, numbers in orders.items() if numbers} == {source, target}
        assert sorted(number for numbers in orders.values() for number in numbers) == [1, 2]
        served(here, *here.hands)
        assert here.status("one").status == "DELETED"
        assert here.reader.migration(uuid_of("migration", 1)).status == "confirmed"


def test_after_a_failed_deletion_an_unconfirmed_move_allows_only_delete():
    with server(None, hosts(3)) as here:
        here.hands = [hand(here, f"h{number}") for number in range(3)]
        build_active(here, "one")
        status = here.status("one")
        source = next(each for each in here.hands if each.host != status.host)
        row = migration(
            1, instance_uuid=status.uuid, status="finished", source_host=source.host, target_host=status.host
        )
        work = (Put(row), replace_row(next_version(status, migration_uuid=row.uuid, status="VERIFY_RESIZE")))
        here.run(lambda current: current.commit([Item(writes=(), work=work)]))
        here.delete("one")
        here.turn()
        (order,) = source.poll().orders
        source.answer(order, failed("it is busy"))
        served(here, *here.hands)
        assert here.status("one").status == "ERROR"
        with pytest.raises(Conflict, match="cannot be rebuilt: a move of it is not settled, so it can only be deleted"):
            here.change("one", "rebuild")
        with pytest.raises(Conflict, match="cannot be evacuated: a move"):
            ask(here, "evacuate", "one")
        here.power("one", "reset")
        served(here, *here.hands)
        assert here.story("one")[-1] == ("reset.failed", {"problem": "a move of it is not settled"})
        assert here.status("one").status == "ERROR"
        here.delete("one", key="again")
        served(here, *here.hands)
        assert (here.status("one").status, here.used()["VCPU"]) == ("DELETED", 0)


def change_first(here, monkeypatch, row, *, before):
    """Let another process change a row right before the first commit that changes a row of a type."""
    commit = here.store.commit

    def commit_after_change(items):
        if any(isinstance(put.row, before) and put.is_change for each in items for put in each.work):
            monkeypatch.setattr(here.store, "commit", commit)
            assert commit([Item(writes=(), work=(replace_row(row),))]).refusals == [None]
        return commit(items)

    monkeypatch.setattr(here.store, "commit", commit_after_change)


def test_host_that_returns_as_the_deletion_ends_destroys_the_guest_first(here, monkeypatch):
    build_active(here, "one")
    (hand,) = [each for each in here.hands if each.host == here.status("one").host]
    hand.leave()
    here.delete("one")
    change_first(here, monkeypatch, next_version(here.reader.agent(hand.host), state="ready"), before=StatusRow)
    here.turn()
    assert here.status("one").status == "ACTIVE"
    served(here, *here.hands)
    assert (here.status("one").status, hand.guests) == ("DELETED", {})


def test_registration_during_the_end_of_a_deletion_lists_the_guest_to_destroy(here, monkeypatch):
    build_active(here, "one")
    (hand,) = [each for each in here.hands if each.host == here.status("one").host]
    hand.leave()
    change_first(here, monkeypatch, next_version(here.status("one"), status="DELETED", host=""), before=AgentRow)
    reply = hand.register()
    assert (reply.is_ready, reply.destroy) == (False, (uuid_named("one"),))


def test_instance_stops_and_starts_and_has_the_fault_of_a_failed_start(here):
    build_active(here, "one")
    with pytest.raises(Conflict, match="cannot start in status ACTIVE"):
        here.power("one", "start")
    here.power("one", "stop")
    assert here.status("one").task == "powering-off"
    served(here, *here.hands)
    assert (here.status("one").status, here.hands[0].guests) == ("SHUTOFF", {uuid_named("one"): "stopped"})
    here.power("one", "start")
    here.turn()
    (order,) = here.hands[0].poll().orders
    assert action(order) == "power_on"
    here.hands[0].answer(order, failed("no memory"))
    here.turn()
    assert (here.status("one").status, here.status("one").fault, here.status("one").task) == (
        "SHUTOFF",
        "no memory",
        "",
    )
    here.clock.time_s += 1
    here.power("one", "start")
    served(here, *here.hands)
    assert (here.status("one").status, here.status("one").fault) == ("ACTIVE", "")


def test_stop_without_an_answer_leaves_the_instance_active(here):
    build_active(here, "one")
    here.power("one", "stop")
    here.turn()
    here.clock.time_s += 120
    here.hands[0].beat()
    here.turn()
    assert (here.status("one").status, here.status("one").fault) == ("ACTIVE", "h0 did not answer within 120 s")
    here.hands[0].leave()
    here.power("one", "stop")
    here.turn()
    assert (here.status("one").status, here.status("one").fault) == ("ACTIVE", "the agent of h0 does not answer")
    assert here.open_operations() == []


def test_deletion_cancels_a_stop(here):
    build_active(here, "one")
    here.power("one", "stop")
    here.turn()
    here.delete("one")
    served(here, *here.hands)
    assert (here.status("one").status, here.used()["VCPU"], here.open_operations()) == ("DELETED", 0, [])


def test_host_that_returns_after_the_work_was_pruned_destroys_the_guest(here):
    build_active(here, "one")
    h0 = here.hands[0]
    h0.leave()
    here.delete("one")
    here.turn()
    here.clock.time_s += 1000
    here.run(lambda current: current.store.prune_work(older_than_s=here.clock.now_s() - 1))
    assert here.status("one") is None
    h0.register()
    served(here, *here.hands)
    assert (h0.guests, here.used()["VCPU"]) == ({}, 0)
