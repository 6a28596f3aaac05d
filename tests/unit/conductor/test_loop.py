"""Conductors whose steps lose races: other processes change rows or operations at the same time."""

import msgspec
import pytest

from roost.conductor.operation.row_changes import next_version, replace_row
from roost.model.work.operation import Delete
from roost.model.work.work_rows import Put
from roost.model.writes import Item
from roost.placement.write_plan import Plan
from tests.contract.stores import uuid_of
from tests.support.conductors.conductors import TERMS, Server, played_agent, server
from tests.support.conductors.work_rows import operation, status
from tests.support.databases.racing_stores import OvertakenStore
from tests.support.fleets.worlds import host, merge_fleets


@pytest.fixture
def app():
    """Yield a server with a late build on h0, whose next step withdraws the order."""
    with server(OvertakenStore(), merge_fleets(host("h0", VCPU=4, MEMORY_MB=64))) as app:
        played_agent(app, "h0")
        app.build("one")
        app.turn()
        app.clock.time_s += TERMS.build_timeout_s
        app.peer = Server(app.store.peer(), clock=app.clock)
        yield app
        app.peer.stop()


def spawn_operation(app):
    (operation,) = [row for row in app.open_operations() if row.kind == "spawn"]
    return operation


def touch_order(app):
    """Commit a new version of the order in another process."""
    (order,) = app.peer.reader.orders_of(spawn_operation(app.peer).id)
    app.peer.run(lambda _current: Plan(answer=None, work=(replace_row(next_version(order)),)))


def test_step_is_retried_at_once_after_a_lost_race(app):
    left = 1

    def touch_once():
        nonlocal left
        if spawn_operation(app.peer).owner and left:
            left -= 1
            touch_order(app)

    app.store.meanwhile = touch_once
    app.conductor().turn()
    assert (spawn_operation(app).step, spawn_operation(app).owner, left) == ("clearing", "", 0)


def test_step_waits_a_second_after_three_lost_races(app):
    races = 0

    def touch_three_times():
        nonlocal races
        if spawn_operation(app.peer).owner and races < 3:
            races += 1
            touch_order(app)

    app.store.meanwhile = touch_three_times
    app.conductor().turn()
    row = spawn_operation(app)
    assert (row.step, row.owner, races) == ("spawn", "", 3)
    assert row.due_at_s == app.clock.now_s() + 1
    app.clock.time_s += 1
    app.conductor("another").turn()
    assert spawn_operation(app).step == "clearing"


def test_operation_taken_by_another_conductor_is_left_to_it(app):
    def take_over():
        row = spawn_operation(app.peer)
        if row.owner == "one":
            later_row = next_version(row, owner="another", owned_until_s=app.clock.now_s() + 30)
            app.peer.run(lambda _current: Plan(answer=None, work=(replace_row(later_row),)))

    app.store.meanwhile = take_over
    app.conductor().turn()
    assert (spawn_operation(app).step, spawn_operation(app).owner) == ("spawn", "another")


def test_step_of_another_conductor_between_two_reads_is_not_a_fault(app, monkeypatch, capfd):
    read, host = app.reader.orders_of_all, played_agent(app.peer, "h0")
    steps = []

    def finish_first(numbers):
        if not steps:
            host.leave()
            app.peer.turn("another")
            steps.extend(row.step for row in app.peer.reader.operations_by_id(numbers))
        return read(numbers)

    monkeypatch.setattr(app.reader, "orders_of_all", finish_first)
    app.conductor().turn()
    assert (steps, app.status("one").status, app.open_operations()) == (["end"], "ERROR", [])
    assert "fault" not in capfd.readouterr().err


def test_operation_of_a_cell_without_hosts_needs_a_conductor_of_all_cells():
    with server(None, merge_fleets(host("h0", VCPU=4, MEMORY_MB=64))) as app:
        body = msgspec.msgpack.encode(Delete())
        row = operation(1, kind="delete", step="send", cell="east", instance_uuid=uuid_of("instance", 1), body=body)
        rows = (row, status(1, status="SHELVED_OFFLOADED", cell="east", operation_id=1, task="deleting"))
        assert app.run(lambda current: current.commit([Item(writes=(), work=tuple(map(Put, rows)))])) == [None]
        app.conductor(cells=["", "west"]).turn()
        assert app.reader.operation(1) == row
        app.turn()
        assert (app.reader.operation(1).outcome, app.reader.status(rows[1].uuid).status) == ("done", "DELETED")
