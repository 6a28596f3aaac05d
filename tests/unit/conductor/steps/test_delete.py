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
from tests.support.conductors.conductors import action, failure, run_until_idle, server
from tests.support.conductors.conductors import played_agent as hand
from tests.support.conductors.move_servers import request_move
from tests.support.conductors.work_rows import migration
from tests.support.fleets.named_uuids import uuid_named
from tests.support.fleets.worlds import hosts


@pytest.fixture
def app():
    with server(None, ladder(3)) as app:
        app.hands = [hand(app, f"h{number}") for number in range(3)]
        yield app


def build_active(app, *names):
    for name in names:
        app.build(name, key=name)
    run_until_idle(app, *app.hands)
    assert all(app.status(name).status == "ACTIVE" for name in names)


def test_allocations_are_released_after_the_host_destroyed_the_guest(app):
    build_active(app, "one")
    h0 = app.hands[0]
    operation = app.delete("one")
    assert (app.status("one").task, app.status("one").operation_id) == ("deleting", operation.id)
    app.turn()
    assert app.held("one")[0] == "h0"
    (order,) = h0.poll().orders
    assert (action(order), order.limit_s) == ("destroy", 120.0)
    h0.act(order)
    app.turn()
    status = app.status("one")
    assert (status.status, status.task, status.operation_id, status.host) == ("DELETED", "", 0, "")
    assert (app.held("one"), app.used()["VCPU"], h0.guests) == (None, 0, {})
    assert app.reader.operation(operation.id).outcome == "done"
    assert [kind for kind, _ in app.story("one")][-2:] == ["delete.asked", "delete.done"]


def test_deletion_has_a_higher_turn_than_the_build(app):
    app.build("one")
    app.turn()
    (spawn,) = app.hands[0].poll().orders
    app.hands[0].act(spawn)
    app.turn()
    app.delete("one")
    app.turn()
    (destroy,) = app.hands[0].poll().orders
    assert destroy.turn > spawn.turn


def test_unknown_or_deleted_instance_cannot_be_deleted(app):
    build_active(app, "one")
    with pytest.raises(NotFound, match="no such instance"):
        app.delete("nobody")
    operation = app.delete("one")
    assert app.delete("one").id == operation.id
    with pytest.raises(Conflict, match="cannot delete now: its task is deleting"):
        app.delete("one", key="another")
    run_until_idle(app, *app.hands)
    with pytest.raises(Conflict, match="is deleted"):
        app.delete("one", key="another")


def test_deletion_ignores_a_gone_host_and_cleans_it_on_its_return(app):
    build_active(app, "one")
    h0 = app.hands[0]
    h0.leave()
    app.delete("one")
    app.turn()
    assert (app.status("one").status, app.used()["VCPU"]) == ("DELETED", 0)
    reply = h0.register()
    assert (reply.is_ready, reply.destroy) == (False, (uuid_named("one"),))
    run_until_idle(app, *app.hands)
    assert h0.guests == {}
    assert app.reader.agent("h0").state == "ready"
    assert app.open_operations() == []


def test_deletion_ends_as_soon_as_its_host_leaves(app):
    build_active(app, "one")
    app.delete("one")
    app.turn()
    app.hands[0].leave()
    app.turn()
    assert (app.status("one").status, app.used()["VCPU"]) == ("DELETED", 0)


def test_deletion_waits_for_a_live_host_without_limit(app):
    build_active(app, "one")
    app.delete("one")
    app.turn()
    for _ in range(5):
        app.clock.time_s += 121
        app.hands[0].beat()
        app.turn()
    assert (app.status("one").status, app.held("one")[0]) == ("ACTIVE", "h0")
    run_until_idle(app, app.hands[0])
    assert app.status("one").status == "DELETED"


def test_forced_deletion_releases_at_once_and_destroys_later(app):
    build_active(app, "one")
    app.delete("one", is_forced=True)
    app.turn()
    assert (app.status("one").status, app.used()["VCPU"]) == ("DELETED", 0)
    run_until_idle(app, *app.hands)
    assert app.hands[0].guests == {}


def test_forced_deletion_repeats_its_order_until_the_host_is_done_or_gone(app):
    h0 = app.hands[0]
    for name in ("one", "two"):
        build_active(app, name)
        app.delete(name, is_forced=True)
        app.turn()
        (order,) = h0.poll().orders
        h0.answer(order, failure("it hangs"))
        app.turn()
        assert (h0.poll().orders, app.status(name).status) == ((), "DELETED")
        app.clock.time_s += 10
        app.turn()
        (repeat,) = h0.poll().orders
        assert (repeat.number, repeat.turn) == (2, order.turn)
        if name == "one":
            h0.act(repeat)
        else:
            h0.leave()
        app.turn()
        assert app.open_operations() == []
    h0.register()
    run_until_idle(app, *app.hands)
    assert h0.guests == {}


def test_failed_destroy_ends_in_error_and_keeps_the_allocations(app):
    build_active(app, "one")
    operation = app.delete("one")
    app.turn()
    (order,) = app.hands[0].poll().orders
    app.hands[0].answer(order, failure("it hangs"))
    app.turn()
    status = app.status("one")
    assert (status.status, status.fault, app.held("one")[0]) == ("ERROR", "h0 could not destroy it: it hangs", "h0")
    assert body_of(app.reader.operation(operation.id), Delete).problem == status.fault
    app.delete("one", key="again")
    run_until_idle(app, *app.hands)
    assert (app.status("one").status, app.used()["VCPU"]) == ("DELETED", 0)


@pytest.mark.parametrize("has_polled", [False, True])
def test_deletion_cancels_a_build_at_once(app, has_polled):
    build = app.build("one")
    app.turn()
    h0 = app.hands[0]
    if has_polled:
        h0.known = [h0.poll().orders[0].id]
    (spawn,) = app.reader.parts_of(build.id)
    app.delete("one")
    app.turn()
    assert (app.reader.operation(spawn.id).outcome, app.status("one").task) == ("failed", "deleting")
    assert [order.state for order in app.reader.orders_of(spawn.id)] == ["withdrawn"]
    assert app.held("one")[0] == "h0"
    run_until_idle(app, *app.hands)
    assert (app.status("one").status, app.used()["VCPU"]) == ("DELETED", 0)
    assert app.open_operations() == []
    assert ("spawn.cancelled", {}) in app.story("one")


def test_stale_destroy_of_a_returned_host_is_not_repeated(app):
    build_active(app, "one")
    app.delete("one", is_forced=True)
    app.turn()
    host = app.hands[0]
    (first,) = host.poll().orders
    host.register()
    app.turn()
    second = next(order for order in host.poll().orders if order.id != first.id)
    assert second.turn > first.turn
    host.act(second)
    host.answer(first, Answer(outcome="stale", problem="a later order was here before it"))
    app.turn()
    assert (app.status("one").status, app.open_operations(), host.poll().orders) == ("DELETED", [], ())


def test_instance_without_a_host_yet_is_deleted_once_it_has_one(app):
    app.build("one", "two")
    app.delete("one")
    with pytest.raises(Conflict, match="is being deleted already"):
        app.delete("one", key="again")
    app.turn()
    app.clock.time_s += 5
    for agent in app.hands:
        agent.beat()
    run_until_idle(app, *app.hands)
    assert [app.status(name).status for name in ("one", "two")] == ["DELETED", "ACTIVE"]
    assert (app.used()["VCPU"], app.open_operations()) == (1, [])


def test_deletion_works_if_the_build_finds_no_host(app):
    app.build("one", vcpus=9)
    app.delete("one")
    app.turn()
    app.clock.time_s += 5
    app.turn()
    assert (app.status("one").status, app.open_operations()) == ("DELETED", [])


def test_instance_in_error_without_a_host_is_deleted_at_once(app):
    app.build("one", vcpus=9)
    app.turn()
    app.delete("one")
    app.turn()
    assert app.status("one").status == "DELETED"


def test_both_hosts_of_an_open_move_destroy_the_guest():
    with server(None, hosts(3)) as app:
        app.hands = [hand(app, f"h{number}") for number in range(3)]
        build_active(app, "one")
        body = uuid_bytes(uuid_named("one"))
        target = app.status("one").host
        source = next(name for name in ("h0", "h1", "h2") if name != target)
        row = migration(1, instance_uuid=body, status="finished", source_host=source, target_host=target)
        status = app.status("one")
        work = (Put(row), replace_row(next_version(status, migration_uuid=row.uuid, status="VERIFY_RESIZE")))
        app.run(lambda current: current.commit([Item(writes=(), work=work)]))
        app.delete("one")
        app.turn()
        orders = {agent.host: [each.number for each in agent.poll().orders] for agent in app.hands}
        assert {name for name, numbers in orders.items() if numbers} == {source, target}
        assert sorted(number for numbers in orders.values() for number in numbers) == [1, 2]
        run_until_idle(app, *app.hands)
        assert app.status("one").status == "DELETED"
        assert app.reader.migration(uuid_of("migration", 1)).status == "confirmed"


def test_after_a_failed_deletion_an_unconfirmed_move_allows_only_delete():
    with server(None, hosts(3)) as app:
        app.hands = [hand(app, f"h{number}") for number in range(3)]
        build_active(app, "one")
        status = app.status("one")
        source = next(each for each in app.hands if each.host != status.host)
        row = migration(
            1, instance_uuid=status.uuid, status="finished", source_host=source.host, target_host=status.host
        )
        work = (Put(row), replace_row(next_version(status, migration_uuid=row.uuid, status="VERIFY_RESIZE")))
        app.run(lambda current: current.commit([Item(writes=(), work=work)]))
        app.delete("one")
        app.turn()
        (order,) = source.poll().orders
        source.answer(order, failure("it is busy"))
        run_until_idle(app, *app.hands)
        assert app.status("one").status == "ERROR"
        with pytest.raises(Conflict, match="be rebuilt: one of its moves is not settled, so it can only be deleted"):
            app.change("one", "rebuild")
        with pytest.raises(Conflict, match="cannot be evacuated: one of its moves"):
            request_move(app, "evacuate", "one")
        app.power("one", "reset")
        run_until_idle(app, *app.hands)
        assert app.story("one")[-1] == ("reset.failed", {"problem": "one of its moves is not settled"})
        assert app.status("one").status == "ERROR"
        app.delete("one", key="again")
        run_until_idle(app, *app.hands)
        assert (app.status("one").status, app.used()["VCPU"]) == ("DELETED", 0)


def change_first(app, monkeypatch, row, *, before):
    """Let another process change a row right before the first commit that changes a row of a type."""
    commit = app.store.commit

    def commit_after_change(items):
        if any(isinstance(put.row, before) and put.is_change for each in items for put in each.work):
            monkeypatch.setattr(app.store, "commit", commit)
            assert commit([Item(writes=(), work=(replace_row(row),))]).refusals == [None]
        return commit(items)

    monkeypatch.setattr(app.store, "commit", commit_after_change)


def test_host_that_returns_as_the_deletion_ends_destroys_the_guest_first(app, monkeypatch):
    build_active(app, "one")
    (hand,) = [each for each in app.hands if each.host == app.status("one").host]
    hand.leave()
    app.delete("one")
    change_first(app, monkeypatch, next_version(app.reader.agent(hand.host), state="ready"), before=StatusRow)
    app.turn()
    assert app.status("one").status == "ACTIVE"
    run_until_idle(app, *app.hands)
    assert (app.status("one").status, hand.guests) == ("DELETED", {})


def test_registration_during_the_end_of_a_deletion_lists_the_guest_to_destroy(app, monkeypatch):
    build_active(app, "one")
    (hand,) = [each for each in app.hands if each.host == app.status("one").host]
    hand.leave()
    change_first(app, monkeypatch, next_version(app.status("one"), status="DELETED", host=""), before=AgentRow)
    reply = hand.register()
    assert (reply.is_ready, reply.destroy) == (False, (uuid_named("one"),))


def test_instance_stops_and_starts_and_has_the_fault_of_a_failed_start(app):
    build_active(app, "one")
    with pytest.raises(Conflict, match="cannot start in status ACTIVE"):
        app.power("one", "start")
    app.power("one", "stop")
    assert app.status("one").task == "powering-off"
    run_until_idle(app, *app.hands)
    assert (app.status("one").status, app.hands[0].guests) == ("SHUTOFF", {uuid_named("one"): "stopped"})
    app.power("one", "start")
    app.turn()
    (order,) = app.hands[0].poll().orders
    assert action(order) == "power_on"
    app.hands[0].answer(order, failure("no memory"))
    app.turn()
    assert (app.status("one").status, app.status("one").fault, app.status("one").task) == (
        "SHUTOFF",
        "no memory",
        "",
    )
    app.clock.time_s += 1
    app.power("one", "start")
    run_until_idle(app, *app.hands)
    assert (app.status("one").status, app.status("one").fault) == ("ACTIVE", "")


def test_stop_without_an_answer_leaves_the_instance_active(app):
    build_active(app, "one")
    app.power("one", "stop")
    app.turn()
    app.clock.time_s += 120
    app.hands[0].beat()
    app.turn()
    assert (app.status("one").status, app.status("one").fault) == ("ACTIVE", "h0 did not answer within 120 s")
    app.hands[0].leave()
    app.power("one", "stop")
    app.turn()
    assert (app.status("one").status, app.status("one").fault) == ("ACTIVE", "the agent of h0 does not answer")
    assert app.open_operations() == []


def test_deletion_cancels_a_stop(app):
    build_active(app, "one")
    app.power("one", "stop")
    app.turn()
    app.delete("one")
    run_until_idle(app, *app.hands)
    assert (app.status("one").status, app.used()["VCPU"], app.open_operations()) == ("DELETED", 0, [])


def test_host_that_returns_after_the_work_was_pruned_destroys_the_guest(app):
    build_active(app, "one")
    h0 = app.hands[0]
    h0.leave()
    app.delete("one")
    app.turn()
    app.clock.time_s += 1000
    app.run(lambda current: current.store.prune_work(older_than_s=app.clock.now_s() - 1))
    assert app.status("one") is None
    h0.register()
    run_until_idle(app, *app.hands)
    assert (h0.guests, app.used()["VCPU"]) == ({}, 0)
