"""Apply a plan: make its moves in order, several at a time, each by a separate operation.

A move begins when the moves that it needs are done and the limits allow it. If it cannot begin, or fails on its hosts,
it is recorded as failed. The moves that need it are skipped, and the others continue. From the deadline on, and outside
of the windows of time, no move begins, and the moves under way continue to their end.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

import msgspec

from roost.conductor.intake.accept_drain import drain_method
from roost.conductor.intake.accept_plan import find_opening, format_opening, is_made, refusal_of
from roost.conductor.intake.departures import begin_departure
from roost.conductor.operation.events import Event
from roost.conductor.operation.faults import describe_error
from roost.conductor.operation.step import Commit, Desk, View, advance, body_of, end, story_line, wait_until
from roost.conductor.operation.step_table import State, Table, To
from roost.conductor.operation.watches import AT_ONCE
from roost.errors import BadRequest, Conflict, StoreBroken
from roost.model.names import valid_uuid_bytes
from roost.model.work.change_memory import AppliedMove, PlanApplication
from roost.model.work.work_rows import OperationRow, Put, StatusRow
from roost.model.writes import Write

# Waiting moves, besides those that may begin at once, whose instances are looked at: some may have to wait.
_LOOK_AHEAD = 16

_Use = Mapping[tuple[str, str], int]  # limit -> number of moves under way
_replace = msgspec.structs.replace


class _Round:
    """The moves of a plan during one step, and the rows to commit."""

    def __init__(self, view: View, desk: Desk, body: PlanApplication) -> None:
        self._view, self._desk, self._body = view, desk, body
        self._states = _states_of(body)
        self._parts = {part.instance_uuid: part for part in view.parts}
        self._next = {move.number for move in _next_moves(body)}  # the view has the statuses of their instances
        self._use: Counter[tuple[str, str]] = Counter()
        self._attempts = 0
        self._opens_at_s = find_opening(body.windows, now_s=view.now_s)
        self.writes: list[Write] = []
        self.work: list[Put] = []

    def advance(self) -> PlanApplication:
        """End and begin moves, in order, and return the plan afterwards."""
        moves = [self._end(move) for move in self._body.moves]
        self._use.update(_count_use(moves))
        stop = self._stop_reason()
        moves = [self._begin_or_skip(move, stop) for move in moves]
        opens_at_s = self._opens_at_s if any(move.state == "waiting" for move in moves) else 0.0
        if opens_at_s not in {0.0, self._body.opens_at_s}:
            self.work.append(story_line(self._view, self._desk, "apply.waiting", until=format_opening(opens_at_s)))
        return _replace(self._body, moves=tuple(moves), opens_at_s=opens_at_s)

    def has_more(self, after: PlanApplication) -> bool:
        """Return whether further moves may begin at once, since other moves ended or began in this round."""
        if self._is_closed or _states_of(after) == _states_of(self._body):
            return False
        was_cut = self._attempts == self._body.at_once
        return was_cut or any(move.number not in self._next for move in _next_moves(after))

    @property
    def _is_closed(self) -> bool:
        """Whether it is outside of all windows."""
        return self._opens_at_s > 0

    def _set(self, move: AppliedMove, **changes: object) -> AppliedMove:
        after = _replace(move, **changes)
        self._states[move.number] = after.state
        return after

    def _fail(self, move: AppliedMove, problem: str) -> AppliedMove:
        instance = valid_uuid_bytes(move.instance)
        self.work.append(story_line(self._view, self._desk, "apply.stayed", instance_uuid=instance, problem=problem))
        return self._set(move, state="failed", problem=problem)

    def _end(self, move: AppliedMove) -> AppliedMove:
        """Return a move, with its outcome if it was under way and has ended."""
        if move.state != "moving":
            return move
        part = self._parts[valid_uuid_bytes(move.instance)]  # The move began in one commit with it.
        if not part.outcome:
            return move
        if part.outcome == "done":
            return self._set(move, state="done")
        status = self._status(move)
        return self._fail(move, "the instance was deleted" if status is None else status.fault or "its move failed")

    def _stop_reason(self) -> str:
        """Return why no further move begins; empty: further moves may begin."""
        if self._view.operation.is_cancelled:
            return "the plan was cancelled"
        deadline_at_s = self._body.deadline_at_s
        return "the deadline of the plan has passed" if 0 < deadline_at_s <= self._view.now_s else ""

    def _begin_or_skip(self, move: AppliedMove, stop: str) -> AppliedMove:
        if move.state != "waiting":
            return move
        needed = {number: self._states[number] for number in move.after}
        missing = next((number for number, state in needed.items() if state in {"failed", "skipped"}), 0)
        if stop or missing:
            problem = stop or f"it needs move {missing}, which {_WORDS[needed[missing]]}"
            return self._set(move, state="skipped", problem=problem)
        if (
            self._is_closed
            or move.number not in self._next
            or not _can_begin(self._body, move, states=self._states, use=self._use)
        ):
            return move
        if self._is_syncing(move):
            return move  # It begins when its host has reported its state.
        if self._attempts == self._body.at_once:
            return move
        self._attempts += 1
        return self._begin(move)

    def _begin(self, move: AppliedMove) -> AppliedMove:
        """Begin a move, or return it with the reason why it cannot begin."""
        status = self._status(move)
        if status is not None and is_made(move, status):
            return self._set(move, state="done")
        problem = refusal_of(move, status)
        if status is None or problem:
            return self._fail(move, problem)
        how = drain_method(status).how
        assert how is not None, "it can move"
        try:
            plan = begin_departure(self._view, self._desk, status, how=how, target=move.target)
        except (BadRequest, Conflict, StoreBroken) as error:
            return self._fail(move, describe_error(error))
        event = story_line(self._view, self._desk, "apply.moving", instance_uuid=status.uuid, how=how)
        self.writes += [write for write in plan.writes if write not in self.writes]
        self.work += [*plan.work, event]
        self._use.update(_limits_of(move))
        return self._set(move, state="moving")

    def _is_syncing(self, move: AppliedMove) -> bool:
        status = self._status(move)
        return status is not None and status.task == "syncing"

    def _status(self, move: AppliedMove) -> StatusRow | None:
        """Return the status of the instance of a move; None: it does not exist."""
        status = self._view.statuses.get(valid_uuid_bytes(move.instance))
        return None if status is None or status.status == "DELETED" else status


def move(view: View, desk: Desk, body: PlanApplication) -> Commit:
    """Wait for the moves under way, and begin those that may begin; end when none is left, or if cancelled."""
    turn = _Round(view, desk, body)
    after = turn.advance()
    counts = Counter(each.state for each in after.moves)
    if counts["waiting"] or counts["moving"]:
        operation = (
            advance(view, "move", body=after)
            if turn.has_more(after)
            else wait_until(view, _due_at_s(view, after), body=after)
        )
        return Commit(operation=operation, writes=tuple(turn.writes), work=tuple(turn.work))
    missing = counts["failed"] + counts["skipped"]
    problem = ""
    if missing:
        problem = f"{missing:,} of {len(after.moves):,} moves were not made: {counts['failed']:,} failed, "
        problem += f"{counts['skipped']:,} were skipped"
    event = story_line(view, desk, "apply.failed" if problem else "apply.done", problem=problem)
    return Commit(operation=end(view, body=after, problem=problem), writes=tuple(turn.writes), work=(*turn.work, event))


def _due_at_s(view: View, body: PlanApplication) -> float:
    """Return the time of the next step: without moves under way, the opening of the next window, or the deadline."""
    if body.opens_at_s and all(move.state != "moving" for move in body.moves):
        return min(body.opens_at_s, body.deadline_at_s or body.opens_at_s)
    return view.now_s + view.terms.parts_check_s


def subjects(operation: OperationRow) -> tuple[bytes, ...]:
    """Return the instances of the moves under way, and of the next ones."""
    body = body_of(operation, PlanApplication)
    moving = (move for move in body.moves if move.state == "moving")
    return tuple(valid_uuid_bytes(move.instance) for move in (*moving, *_next_moves(body)))


def _next_moves(body: PlanApplication) -> list[AppliedMove]:
    """Return the first waiting moves that may begin now, each by itself; a plan can have many more."""
    states, use = _states_of(body), _count_use(body.moves)
    able = (move for move in body.moves if move.state == "waiting" and _can_begin(body, move, states=states, use=use))
    return list(islice(able, body.at_once + _LOOK_AHEAD))


def _can_begin(body: PlanApplication, move: AppliedMove, *, states: Mapping[int, str], use: _Use) -> bool:
    """Return whether the moves that a move needs are done, and the limits allow another move."""
    if any(states[number] != "done" for number in move.after):
        return False
    limit = {"": body.at_once, "host": body.per_host, "group": body.per_group}
    return all(use.get(key, 0) < limit[key[0]] for key in _limits_of(move))


def _states_of(body: PlanApplication) -> dict[int, str]:
    return {move.number: move.state for move in body.moves}


def _count_use(moves: Iterable[AppliedMove]) -> Counter[tuple[str, str]]:
    """Count the moves under way, by limit."""
    return Counter(key for move in moves if move.state == "moving" for key in _limits_of(move))


_WORDS = {"failed": "failed", "skipped": "was skipped"}


def _limits_of(move: AppliedMove) -> Sequence[tuple[str, str]]:
    """Return the limits that count a move: of all moves, of each of its hosts, and of its server group."""
    hosts = {name.lower() for name in (move.source, move.target) if name}
    group = [("group", move.group)] if move.group else []
    return [("", ""), *(("host", host) for host in sorted(hosts)), *group]


TABLE = Table(
    PlanApplication,
    {"move": State(AT_ONCE, {Event.STARTED: To(move, "move", "end")})},
    first=("move",),
    subjects=subjects,
    has_parts=True,
)
