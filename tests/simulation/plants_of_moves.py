"""Small bugs to plant into moves and drains."""

from dataclasses import replace

import msgspec

from roost.compute.agent import queues
from roost.compute.agent.execute_order import OrderExecutor
from roost.conductor.agents import agent_protocol
from roost.conductor.moves import migration, try_targets
from roost.conductor.moves.endings import hand_over
from roost.conductor.moves.migration import migration_of, release_migration
from roost.conductor.moves.try_targets import target_of
from roost.conductor.operation import reconcile
from roost.conductor.operation.events import Event
from roost.conductor.operation.step import body_of
from roost.conductor.operation.step_table import To
from roost.conductor.operation.watches import AT_ONCE
from roost.conductor.steps import TABLES, clean, confirm, live_migrate, move, revert, shelve, spawn
from roost.conductor.steps.batches import apply_plan, drain
from roost.model.work.change_memory import Drain
from roost.model.work.orders import Discard


def early_settlement(monkeypatch):
    """Release the source as soon as an instance has arrived, although the move may still be reverted."""
    arrivals = [table.states["finish"].find(Event.DONE) for table in (move.TABLE, move.RESIZE_TABLE)]
    arrive = arrivals[0].handler

    def release_early(view, desk, body):
        step = arrive(view, desk, body)
        if step.operation.step not in {"part", "end"}:
            return step
        return replace(step, writes=(*step.writes, *release_migration(desk.current, migration_of(view))))

    for arrival in arrivals:
        monkeypatch.setattr(arrival, "handler", release_early)


def missing_claim_on_alternate(monkeypatch):
    """Continue a move on an alternate without a claim there."""
    find_next = try_targets._find_next
    monkeypatch.setattr(try_targets, "_find_next", lambda *words, **more: find_next(*words, **more)._replace(writes=()))


def missing_release_of_failed_host(monkeypatch):
    """Continue a build on an alternate without a release of the failed host."""
    plan_alternate = spawn.plan_alternate

    def plan_without_release(current, name, pick):
        plan = plan_alternate(current, name, pick)
        return plan if isinstance(plan, str) else plan._replace(release=msgspec.structs.replace(plan.release, frees=[]))

    monkeypatch.setattr(spawn, "plan_alternate", plan_without_release)


def missing_group_place(monkeypatch):
    """Omit the place in its server group when an instance goes back."""
    monkeypatch.setattr(migration, "places_of", lambda _state, _row: [])


def missing_return_fence(monkeypatch):
    """Let a returning host keep a guest that is being evacuated from it."""
    monkeypatch.setattr(reconcile, "is_held_by", lambda _move, _host: False)
    monkeypatch.setattr(agent_protocol, "is_held_by", lambda _move, _host: False)


def missing_release_after_move(monkeypatch):
    """Keep the allocations of a finished move when its source host returns without the guest."""
    monkeypatch.setattr(agent_protocol, "end_moves", lambda *_words, **_more: ((), ()))
    monkeypatch.setattr(clean, "end_moves", lambda *_words, **_more: ((), ()))


def excessive_drain(monkeypatch):
    """Ignore moves in progress when a drain starts more moves."""
    next_step, own_subjects = drain.TABLE.next_step, drain.TABLE.subjects

    def wide(view, desk):
        body = body_of(view.operation, Drain)
        more = msgspec.structs.replace(body, at_once=body.at_once + len(body.going))
        step = next_step(replace(view, operation=_with(view.operation, more)), desk)
        after = msgspec.structs.replace(body_of(step.operation, Drain), at_once=body.at_once)
        return replace(step, operation=_with(step.operation, after))

    def subjects(operation):
        body = body_of(operation, Drain)
        more = msgspec.structs.replace(body, at_once=body.at_once + len(body.going))
        return own_subjects(_with(operation, more))

    monkeypatch.setattr(drain.TABLE, "next_step", wide)
    monkeypatch.setattr(drain.TABLE, "subjects", subjects)


def excessive_plan(monkeypatch):
    """Ignore the limit of moves to or from one host when a plan is applied."""
    limits_of = apply_plan._limits_of
    monkeypatch.setattr(
        apply_plan, "_limits_of", lambda move: [limit for limit in limits_of(move) if limit[0] != "host"]
    )


def impatient_plan(monkeypatch):
    """Begin planned moves before the moves that they need are done."""
    begin_or_skip = apply_plan._Round._begin_or_skip

    def begin(turn, move, stop):
        return msgspec.structs.replace(
            begin_or_skip(turn, msgspec.structs.replace(move, after=()), stop), after=move.after
        )

    monkeypatch.setattr(apply_plan._Round, "_begin_or_skip", begin)


def unexplained_plan(monkeypatch):
    """Omit the reason why a planned move failed."""
    monkeypatch.setattr(apply_plan._Round, "_fail", lambda turn, move, _problem: turn._set(move, state="failed"))


def _with(operation, body):
    return msgspec.structs.replace(operation, body=msgspec.msgpack.encode(body))


def early_confirm(monkeypatch):
    """Release the source of a confirmed move before the host has destroyed the guest."""
    for name in ("order_parting", "leave_source"):
        monkeypatch.setattr(confirm, name, confirm.finish)
    for event in (Event.STARTED, Event.HOST_GONE):
        monkeypatch.setattr(confirm.PART.find(event), "handler", confirm.finish)


def unchecked_undo(monkeypatch):
    """Undo an unanswered live migration on its target without checking where the instance runs."""
    inspect = live_migrate._inspect

    def undo(view, desk, body, *, host, lost=""):
        if view.operation.step != "migrate":
            return inspect(view, desk, body, host=host, lost=lost)
        target = target_of(body)
        return live_migrate._send(view, desk, body, host=target, actions=("discard",), step="undo", lost=lost)

    monkeypatch.setattr(live_migrate, "_inspect", undo)


def discard_of_running_guest(monkeypatch):
    """Discard a guest that started on the target of a live migration after the order to discard."""
    monkeypatch.setattr(OrderExecutor, "_runs", lambda _self, _instance, _operation: False)


def early_revert(monkeypatch):
    """Start a reverted instance on its old host before the other host has discarded it."""
    state = revert.TABLE.states["discard"]
    monkeypatch.setattr(state, "watch", AT_ONCE)
    monkeypatch.setattr(state, "events", {Event.STARTED: To(revert.restart, "restart", "end")})


def early_offload(monkeypatch):
    """Mark an instance offloaded although its host failed to destroy the guest."""
    to = shelve.TABLE.states["offload"].find(Event.FAILED)
    monkeypatch.setattr(to, "handler", shelve.finish_offload)


def missing_release_of_cancelled_move(monkeypatch):
    """Omit the release of a cancelled move's allocations when a deletion ends it."""

    def end_without_release(view, desk, body):
        step = hand_over(view, desk, body)
        return replace(step, work=(*step.work, migration.update_migration(view, "failed")))

    for table in (move.TABLE, move.RESIZE_TABLE, live_migrate.TABLE, TABLES["evacuate"]):
        monkeypatch.setattr(table.cancel, "handler", end_without_release)


def single_discard(monkeypatch):
    """Never repeat a failed discard of a prepared guest."""
    may_be_left = queues.may_be_left
    monkeypatch.setattr(
        queues,
        "may_be_left",
        lambda order, answer: not isinstance(order.act, Discard) and may_be_left(order, answer),
    )


_RESIZE_KINDS = ("build", "resize", "confirm", "revert")

# Each plant with the kinds of operations that find it fast; an empty tuple stands for all kinds.
PLANTS_OF_MOVES = {
    early_settlement: _RESIZE_KINDS,
    missing_claim_on_alternate: (),
    missing_release_of_failed_host: (),
    missing_group_place: (),
    missing_return_fence: ("build", "evacuate"),
    missing_release_after_move: ("build", "evacuate"),
    excessive_drain: ("build", "drain"),
    excessive_plan: ("build", "apply"),
    impatient_plan: ("build", "apply"),
    unexplained_plan: ("build", "apply"),
    early_confirm: _RESIZE_KINDS,
    unchecked_undo: ("build", "live_migrate"),
    discard_of_running_guest: (),
    early_revert: _RESIZE_KINDS,
    early_offload: ("build", "shelve", "offload", "unshelve"),
    missing_release_of_cancelled_move: (),
    single_discard: ("build", "resize"),
}
