"""A conductor whose steps are refused, since somebody else was faster with a row that is not the operation's."""

import msgspec
import pytest

from roost.conductor.operation.row_changes import next_version, replace_row
from roost.model.work.operation import Delete
from roost.model.work.work_rows import Put
from roost.model.writes import Item
from roost.placement.write_plan import Plan
from tests.contract.stores import uuid_of
from tests.support.conductors.conductors import TERMS, Server, hand, server
from tests.support.conductors.work_rows import operation, status
from tests.support.databases.racing_stores import Overtaken
from tests.support.fleets.worlds import host, joined


@pytest.fixture
def here():
    """Give a server whose build on h0 is late: its next step takes the order back."""
    with server(Overtaken(), joined(host("h0", VCPU=4, MEMORY_MB=64))) as made:
        hand(made, "h0")
        made.build("one")
        made.turn()
        made.clock.time_s += TERMS.build_timeout_s
        made.peer = Server(made.store.peer(), clock=made.clock)
        yield made
        made.peer.stop()


def spawning(here):
    (operation,) = [row for row in here.open_operations() if row.kind == "spawn"]
    return operation


def touched(here):
    """Give a new version of the order to whoever reads it next."""
    (order,) = here.peer.reader.orders_of(spawning(here.peer).id)
    here.peer.run(lambda _current: Plan(answer=None, work=(replace_row(next_version(order)),)))


def test_a_step_that_lost_a_race_for_another_row_is_looked_for_at_once(here):
    left = 1

    def once():
        nonlocal left
        if spawning(here.peer).owner and left:
            left -= 1
            touched(here)

    here.store.meanwhile = once
    here.conductor().turn()
    assert (spawning(here).step, spawning(here).owner, left) == ("clearing", "", 0)


def test_one_that_loses_again_and_again_waits_a_second(here):
    races = 0

    def always():
        nonlocal races
        if spawning(here.peer).owner and races < 3:
            races += 1
            touched(here)

    here.store.meanwhile = always
    here.conductor().turn()
    row = spawning(here)
    assert (row.step, row.owner, races) == ("spawn", "", 3)
    assert row.due_at_s == here.clock.now_s() + 1
    here.clock.time_s += 1
    here.conductor("another").turn()
    assert spawning(here).step == "clearing"


def test_one_that_somebody_else_has_taken_by_then_is_left_to_him(here):
    def taken():
        row = spawning(here.peer)
        if row.owner == "one":
            later_row = next_version(row, owner="another", owned_until_s=here.clock.now_s() + 30)
            here.peer.run(lambda _current: Plan(answer=None, work=(replace_row(later_row),)))

    here.store.meanwhile = taken
    here.conductor().turn()
    assert (spawning(here).step, spawning(here).owner) == ("spawn", "another")


def test_what_was_read_of_it_before_and_after_somebody_else_went_on_with_it_is_no_fault(here, monkeypatch, capfd):
    read, host = here.reader.orders_of_all, hand(here.peer, "h0")
    ended = []

    def overtaken(numbers):
        if not ended:
            host.leave()
            here.peer.turn("another")
            ended.extend(row.step for row in here.peer.reader.operations_by(numbers))
        return read(numbers)

    monkeypatch.setattr(here.reader, "orders_of_all", overtaken)
    here.conductor().turn()
    assert (ended, here.status("one").status, here.open_operations()) == (["end"], "ERROR", [])
    assert "fault" not in capfd.readouterr().err


def test_operations_of_a_cell_that_has_no_host_any_more_are_worked_on_by_who_works_for_all_cells():
    with server(None, joined(host("h0", VCPU=4, MEMORY_MB=64))) as here:
        body = msgspec.msgpack.encode(Delete())
        row = operation(1, kind="delete", step="send", cell="east", instance_uuid=uuid_of("instance", 1), body=body)
        rows = (row, status(1, status="SHELVED_OFFLOADED", cell="east", operation_id=1, task="deleting"))
        assert here.run(lambda current: current.commit([Item(writes=(), work=tuple(map(Put, rows)))])) == [None]
        here.conductor(cells=["", "west"]).turn()
        assert here.reader.operation(1) == row
        here.turn()
        assert (here.reader.operation(1).outcome, here.reader.status(rows[1].uuid).status) == ("done", "DELETED")
