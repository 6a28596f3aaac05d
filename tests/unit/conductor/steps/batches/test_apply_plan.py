"""Applied plans: moves begin in order within their limits; failed ones stop only the moves that need them."""

import json

import pytest

from roost.conductor.intake import accept_drain, accept_plan
from roost.conductor.operation.step import body_of
from roost.conductor.steps.batches import apply_plan
from roost.errors import BadRequest
from roost.model.names import uuid_bytes, uuid_text
from roost.model.work.change_memory import AppliedMove, PlanApplication
from tests.support.conductors.conductors import failure, server
from tests.support.conductors.move_servers import advance_clock, movers, run_agents_until_idle
from tests.support.fleets.named_uuids import uuid_named
from tests.support.fleets.worlds import group, host, merge_fleets

NAMES = ("h0", "h1", "h2")
FLEET = merge_fleets(
    host("h0", VCPU=6, MEMORY_MB=100),
    host("h1", VCPU=3, MEMORY_MB=50),
    host("h2", VCPU=3, MEMORY_MB=50),
    group("apart", "soft-anti-affinity"),
)


@pytest.fixture
def app():
    with server(None, FLEET) as app:
        app.hands = movers(app, NAMES)
        yield app


def build(app, *names, on="h0", **request):
    for name in names:
        app.build(name, key=name, force_hosts=(on,), **request)
    run_agents_until_idle(app, app.hands)


def planned(number, name, target="h1", *, source="h0", after=()):
    return AppliedMove(number=number, instance=uuid_named(name), source=source, target=target, after=after)


def apply(app, *moves, at_once=9, per_host=9, per_group=9, deadline_s=None, windows=()):
    """Begin to apply a plan."""
    now_s = app.clock.now_s()
    body = PlanApplication(
        moves=moves,
        at_once=at_once,
        per_host=per_host,
        per_group=per_group,
        deadline_at_s=0.0 if deadline_s is None else now_s + deadline_s,
        windows=windows,
    )
    return app.run(
        lambda current: accept_plan.apply(
            current,
            body,
            accept_plan.find_statuses(app.reader, moves, may_move=lambda _status: True),
            documents=current.store.document,
            operation_uuid=uuid_bytes(uuid_named("plan")),
            now_s=now_s,
        )
    )


def finish(app, operation, script=None, *, turns=60):
    """Let conductor and agents work until the plan ends; return its row, and the open moves before each round."""
    open_moves = []
    for _ in range(turns):
        app.turn()
        open_moves.append({each.instance_uuid for each in app.reader.parts_of(operation.id) if not each.outcome})
        run_agents_until_idle(app, app.hands, script)
        row = app.reader.operation(operation.id)
        if row.outcome:
            return row, open_moves
        advance_clock(app, app.hands, 1.0)
    raise AssertionError("it never ends")


def results(row):
    return [(move.state, move.problem) for move in body_of(row, PlanApplication).moves]


def test_moves_go_to_their_targets_and_wait_for_those_that_they_need(app):
    build(app, "one", "two")
    build(app, "a", "b", "c", on="h1")
    operation = apply(app, planned(1, "a", "h2", source="h1"), planned(2, "one", "h1", after=(1,)))
    row, open_moves = finish(app, operation)
    assert (row.outcome, results(row)) == ("done", [("done", ""), ("done", "")])
    assert (app.status("a").host, app.status("one").host, app.status("two").host) == ("h2", "h1", "h0")
    assert max(map(len, open_moves)) == 1
    assert app.open_operations() == []


def test_failed_move_stops_only_the_moves_that_need_it(app):
    build(app, "one", "two", "three")
    build(app, "a", "b", "c", on="h1")
    operation = apply(
        app,
        planned(1, "one", "h1"),
        planned(2, "gone", "h2"),
        planned(3, "a", "h2", source="h2"),
        planned(4, "two", "h2", after=(1,)),
        planned(5, "b", "h0", source="h1", after=(4,)),
        planned(6, "three", "h2"),
    )
    row, _ = finish(app, operation)
    (full, gone, elsewhere, *_, made) = results(row)
    assert full[0] == "failed"
    assert full[1]  # h1 is full
    assert gone == ("failed", "the instance does not exist")
    assert elsewhere == ("failed", "the instance is on h1, and not on h2")
    assert results(row)[3:5] == [
        ("skipped", "it needs move 1, which failed"),
        ("skipped", "it needs move 4, which was skipped"),
    ]
    assert (made, app.status("three").host) == (("done", ""), "h2")
    problem = body_of(row, PlanApplication).problem
    assert (row.outcome, problem) == ("failed", "5 of 6 moves were not made: 3 failed, 2 were skipped")


def test_move_that_fails_on_its_host_is_reported_with_the_reason(app):
    build(app, "one")
    row, _ = finish(app, apply(app, planned(1, "one")), {("h0", "live_migrate"): [failure("it hangs")] * 9})
    ((state, problem),) = results(row)
    assert (state, app.status("one").host) == ("failed", "h0")
    assert "it hangs" in problem


@pytest.mark.parametrize(("limit", "most"), [("at_once", 1), ("per_host", 1), ("per_group", 1), (None, 3)])
def test_limits_of_concurrent_moves_are_respected(app, limit, most):
    build(app, "one", "two", "three", in_group="apart")
    moves = (planned(1, "one"), planned(2, "two", "h2"), planned(3, "three", "h2"))
    row, open_moves = finish(app, apply(app, *moves, **({} if limit is None else {limit: 1})))
    assert row.outcome == "done"
    assert max(map(len, open_moves)) == most


def test_long_plan_ends_although_few_instances_are_looked_at_together():
    room = {"VCPU": 40, "MEMORY_MB": 600}
    with server(None, merge_fleets(host("h0", **room), host("h1", **room))) as app:
        app.hands = movers(app, NAMES[:2])
        names = [f"i{number}" for number in range(30)]
        build(app, *names)
        operation = apply(app, *(planned(number, name) for number, name in enumerate(names, start=1)), at_once=3)
        assert len(apply_plan.subjects(app.reader.operation(operation.id))) == 3 + 16
        row, open_moves = finish(app, operation)
        assert row.outcome == "done"
        assert {app.status(name).host for name in names} == {"h1"}
        assert max(map(len, open_moves)) == 3


def test_after_the_deadline_no_move_begins_and_open_ones_end(app):
    build(app, "one", "two")
    operation = apply(app, planned(1, "one"), planned(2, "two"), at_once=1, deadline_s=0.5)
    app.turn()
    advance_clock(app, app.hands, 1.0)
    row, _ = finish(app, operation)
    assert results(row) == [("done", ""), ("skipped", "the deadline of the plan has passed")]
    assert (app.status("one").host, app.status("two").host) == ("h1", "h0")


def waits_of(app, operation):
    """Return the time of the next step, that of the next window, and the ends of waits in the story."""
    row = app.reader.operation(operation.id)
    story = [json.loads(each.body) for each in app.reader.events_of(row.id, newest=99) if each.kind == "apply.waiting"]
    return row.due_at_s, body_of(row, PlanApplication).opens_at_s, [each["until"] for each in story]


def test_outside_of_its_windows_a_plan_waits_without_work(app):
    build(app, "one")
    assert app.clock.now_s() == 1000.0  # 00:16:40
    operation = apply(app, planned(1, "one"), windows=("00:20-00:22", "fri@00:00-24:00"))
    assert app.turn() == 1
    assert waits_of(app, operation) == (1200.0, 1200.0, ["1970-01-01 00:20Z"])
    advance_clock(app, app.hands, 199.9)
    assert (app.turn(), app.reader.parts_of(operation.id)) == (0, [])
    advance_clock(app, app.hands, 0.1)
    row, _ = finish(app, operation)
    assert (results(row), app.status("one").host) == ([("done", "")], "h1")
    assert waits_of(app, operation)[1:] == (0.0, ["1970-01-01 00:20Z"])


def test_at_the_end_of_a_window_moves_under_way_complete_and_no_other_begins(app):
    build(app, "one", "two")
    operation = apply(app, planned(1, "one"), planned(2, "two"), at_once=1, windows=("00:16-00:17",))
    app.turn()
    advance_clock(app, app.hands, 20.0)
    app.turn()
    assert waits_of(app, operation)[:2] == (1021.0, 87_360.0), "it still watches the move under way"
    for _ in range(3):
        run_agents_until_idle(app, app.hands)
        advance_clock(app, app.hands, 1.0)
        app.turn()
    assert results(app.reader.operation(operation.id)) == [("done", ""), ("waiting", "")]
    assert waits_of(app, operation) == (87_360.0, 87_360.0, ["1970-01-02 00:16Z"])
    app.clock.time_s = 87_360.0
    row, _ = finish(app, operation)
    assert results(row) == [("done", ""), ("done", "")]


def test_deadline_ends_a_plan_that_waits_for_its_window(app):
    build(app, "one")
    operation = apply(app, planned(1, "one"), deadline_s=60.0, windows=("12:00-13:00",))
    app.turn()
    assert waits_of(app, operation)[:2] == (1060.0, 43_200.0)
    advance_clock(app, app.hands, 60.0)
    row, _ = finish(app, operation, turns=1)
    assert results(row) == [("skipped", "the deadline of the plan has passed")]


def test_plan_that_waits_for_its_window_can_be_cancelled(app):
    build(app, "one")
    operation = apply(app, planned(1, "one"), windows=("12:00-13:00",))
    app.turn()
    app.run(lambda _current: accept_drain.cancel(app.reader, uuid_text(operation.uuid), now_s=app.clock.now_s()))
    row, _ = finish(app, operation, turns=1)
    assert results(row) == [("skipped", "the plan was cancelled")]


def test_wrong_windows_are_refused():
    accept_plan.check_windows(["sat,sun@22:00-06:00"])
    with pytest.raises(BadRequest, match="the window '22:00-22:00' is empty: it begins and ends at the same time"):
        accept_plan.check_windows(["21:00-22:00", "22:00-22:00"])


def test_cancelled_plan_ends_its_open_moves_only(app):
    build(app, "one", "two")
    operation = apply(app, planned(1, "one"), planned(2, "two"), at_once=1)
    app.turn()
    app.run(lambda _current: accept_drain.cancel(app.reader, uuid_text(operation.uuid), now_s=app.clock.now_s()))
    row, _ = finish(app, operation)
    assert results(row) == [("done", ""), ("skipped", "the plan was cancelled")]


def test_instance_in_a_power_sync_moves_after_the_sync_and_delays_no_other(app):
    build(app, "one", "two")
    app.hands["h0"].guests[uuid_named("one")] = "stopped"
    app.hands["h0"].register()
    assert app.status("one").task == "syncing"
    operation = apply(app, planned(1, "one"), planned(2, "two", "h2"), at_once=1)
    app.turn()
    assert [part.instance_uuid for part in app.reader.parts_of(operation.id)] == [uuid_bytes(uuid_named("two"))]
    row, _ = finish(app, operation)
    assert (row.outcome, app.status("one").host, app.status("two").host) == ("done", "h1", "h2")


def test_instance_on_its_target_already_is_done(app):
    build(app, "one", on="h1")
    row, open_moves = finish(app, apply(app, planned(1, "one")))
    assert (results(row), max(map(len, open_moves))) == ([("done", "")], 0)


@pytest.mark.parametrize(
    ("moves", "problem"),
    [
        ([planned(1, "one"), planned(2, "one")], "moves twice"),
        ([planned(1, "one"), planned(1, "two")], "two moves have the number 1"),
        ([planned(1, "one", after=(2,)), planned(2, "two")], "move 1 needs move 2, which is not before it"),
        ([AppliedMove(number=1, instance="x", source="h0", target="h1")], "is not a valid UUID"),
    ],
)
def test_moves_that_form_no_plan_are_refused(moves, problem):
    with pytest.raises(BadRequest, match=problem):
        accept_plan.check_moves(moves)
