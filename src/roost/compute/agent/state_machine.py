"""The host agent as a pure state machine: events in, tasks out.

It has no thread, socket, clock or randomness. The runtime runs the tasks that are ``due`` and reports their results.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Literal

import msgspec

from roost.compute.agent import queues
from roost.compute.agent.agent_journal import Entry, Key
from roost.compute.agent.guest_scans import GuestScans
from roost.compute.agent.identity import Identity
from roost.compute.agent.journal_port import OrderMemory
from roost.compute.agent.queues import Lane, OpenOrder, key_of, lane_of
from roost.compute.agent.tasks import Clean, Register, Reply, Scan, Task, Undo, Work
from roost.errors import AccessDenied, BadRequest, BadSettings, Conflict, JournalLost, NotFound, RoostError
from roost.model.work.guest import GuestReport
from roost.model.work.orders import (
    HELD_MAX,
    PROBLEM_MAX,
    AbortMigration,
    Destroy,
    Discard,
    LiveMigrate,
    Order,
    OrderAnswer,
    OwnNode,
    PollingAgent,
    Power,
    Reboot,
    Registration,
    RegistrationAnswer,
)

_RETRY_S, _RETRY_MAX_S, _UNDO_RETRY_S = 0.5, 15.0, 5.0  # first, longest pause between requests; between undos, s
_REGISTRATIONS_WHILE_UP = 4  # at least this often before the server counts a silent agent as down


class Agent:
    """The agent of one host.

    Args:
        identity: identity of the agent.
        memory: journal of the agent.
        driver_timeout_s: seconds after which an order under way counts as failed.
        sync_s: seconds between reports of its guests; <= 0: only at the start.
        spread: factor of all pauses, so that many agents do not act at the same moment, > 0.
    """

    def __init__(
        self, identity: Identity, memory: OrderMemory, *, driver_timeout_s: float, sync_s: float = 0, spread: float = 1
    ) -> None:
        self._identity, self._memory = identity, memory
        self._timeout_s, self._spread = driver_timeout_s, spread
        self._phase: Literal["away", "scanning", "scanned", "registering", "cleaning", "ready"] = "away"
        self._retry_at_s, self._pause_s = 0.0, _RETRY_S
        self._registration: Registration | None = None
        self._scans = GuestScans(every_s=sync_s, spread=spread)
        self._registered: RegistrationAnswer | None = None
        self._has_failed_to_clean = self._was_polled = self._is_tracked = self._is_stopping = False
        self._orders: dict[Key, OpenOrder] = {}
        self._lanes: dict[str, Lane] = {}
        self._overdue: dict[Key, Order] = {}
        self._undelivered: dict[Key, OpenOrder] = {}
        self.end: RoostError | None = None  # Why the agent must end; None: it need not.
        self.is_disabled: bool | None = None  # Whether the service is disabled; None: unknown.
        for entry in memory.entries():
            self._restore(entry)

    @property
    def host(self) -> str:
        """The host."""
        return self._identity.host

    @property
    def is_ready(self) -> bool:
        """Whether it is registered, and its host is clean."""
        return self._phase == "ready"

    @property
    def is_registered(self) -> bool:
        """Whether it has registered since its start."""
        return self._registered is not None

    @property
    def is_idle(self) -> bool:
        """Whether no work is under way, and the server has all answers."""
        is_working = any(each.begun_at_s is not None and each.answer is None for each in self._orders.values())
        return not (self._undelivered or is_working or any(lane.current for lane in self._lanes.values()))

    @property
    def is_undoing(self) -> bool:
        """Whether effects of withdrawn or failed orders may remain."""
        return any(lane.undos for lane in self._lanes.values())

    @property
    def needs_prompt_poll(self) -> bool:
        """Whether orders from before this registration wait until the server confirms them."""
        return bool(self._orders) and not self._was_polled

    @property
    def down_after_s(self) -> float:
        """Seconds of silence after which the server counts it as down; infinite while unknown."""
        return self._registered.down_after_s if self._registered else float("inf")

    # --- tasks ---

    def due(self, now_s: float) -> list[Task]:
        """Return the tasks that are due; each is returned once."""
        if self.end is not None:
            return []
        tasks: list[Task] = []
        self._fail_overdue(now_s)
        scan_at_s = {"away": self._retry_at_s, "ready": self._scans.due_at_s}.get(self._phase, float("inf"))
        if now_s >= scan_at_s and not (self._scans.is_running or self._is_stopping):
            self._phase = "scanning" if self._phase == "away" else "ready"
            self._scans.begin(self._lanes, now_s=now_s)
            tasks.append(Scan())
        if self._phase == "scanned" and self._registration is not None:
            self._phase = "registering"
            tasks.append(Register(self._registration))
        if self._phase in ("cleaning", "ready"):
            tasks += self._next_in_lanes(now_s)
            tasks += self._due_replies(now_s)
        return tasks

    def poll_part(self) -> PollingAgent | None:
        """Return its part of a poll; None: it takes no part now."""
        if self._phase != "ready" or self._registered is None or self._is_stopping or self.end is not None:
            return None
        # Without withdrawn and settled orders: the server need not report these again.
        held = sorted(each.order.id for each in self._orders.values() if not (each.is_unwanted or each.is_settled))
        return PollingAgent(
            host=self.host, run=self._identity.run, fence=self._registered.fence, held=tuple(held[:HELD_MAX])
        )

    def stop(self) -> None:
        """Begin nothing more; work under way ends, and its answers are sent."""
        self._is_stopping = True

    # --- events ---

    def on_scan(self, nodes: Sequence[OwnNode], guests: Sequence[GuestReport]) -> None:
        """Take the result of a scan."""
        self._scans.end()
        if self._phase not in ("scanning", "ready"):
            return  # The agent must register again, after a new scan.
        self._registration = Registration(
            run=self._identity.run,
            driver=self._identity.driver,
            software=self._identity.software,
            cell=self._identity.cell,
            nodes=tuple(nodes),
            guests=self._scans.add_new_guests(guests),
            paused=tuple(sorted(self._memory.list_paused())),
        )
        self._phase = "scanned"

    def on_registered(self, registered: RegistrationAnswer, now_s: float) -> None:
        """Take the answer to a registration: the fate of the guests."""
        assert self._registration is not None, "a registration was sent"
        self._was_polled &= self._registered is not None and registered.fence == self._registered.fence
        self._registered, self.is_disabled = registered, registered.is_disabled
        running = {found.uuid for found in self._registration.guests if found.state == "running"}
        cleans = [Clean(uuid, "destroy") for uuid in registered.destroy]
        cleans += [Clean(uuid, "pause") for uuid in registered.hold if uuid in running]
        cleans += [Clean(uuid, "resume") for uuid in registered.keep if uuid in self._memory.list_paused()]
        # An earlier process may have ended after a guest was destroyed and before its resources were released.
        gone = self._memory.holders() - {found.uuid for found in self._registration.guests} - self._scans.lane_names
        cleans += [Clean(uuid, "destroy") for uuid in sorted(gone)]
        for lane in self._lanes.values():
            lane.cleans.clear()  # Earlier instructions no longer count.
        for clean in cleans:
            self._lane(clean.instance).cleans.append(clean)
        self._has_failed_to_clean = False
        self._phase = "ready" if registered.is_ready else "cleaning"
        self._scans.schedule_regular(now_s)
        if registered.is_ready and not cleans:
            self._pause_s = _RETRY_S
        elif not cleans:
            self._register_later(now_s)

    def on_refused(self, error: RoostError, now_s: float) -> None:
        """Take the failure of a scan or a registration. A ready agent continues: its next scan may succeed."""
        self._scans.end()
        fatal = JournalLost if self._phase == "ready" else (AccessDenied, BadSettings, Conflict, JournalLost)
        if isinstance(error, fatal):
            self.end = error
        elif self._phase in ("scanning", "registering"):
            self._register_later(now_s)

    def on_polled(
        self,
        fence: int,
        orders: Iterable[Order],
        *,
        now_s: float,
        withdrawn: Collection[int] = (),
        settled: Collection[int] = (),
        is_unknown: bool = False,
        is_superseded: bool = False,
        is_disabled: bool = False,
    ) -> None:
        """Take the answer to a poll.

        Args:
            fence: fence in the poll.
            now_s: time of the answer's arrival.
            orders, withdrawn, settled, is_unknown, is_superseded, is_disabled: the agent's part of ``PollAnswer``.
        """
        if self._registered is None or fence != self._registered.fence or self.end is not None:
            return
        if is_superseded:
            self.end = Conflict(f"another agent of host {self.host} has registered, so this one ends")
            return
        if is_unknown:
            self.on_unknown(now_s)
            return
        self.is_disabled, self._was_polled = is_disabled, True
        for each in [*self._orders.values()]:
            if each.order.id in withdrawn:
                self._withdraw(each)
            elif each.order.id in settled:
                self._mark_settled(each)
        for order in orders:
            self._receive(order)

    def has_polled_state(self, *, is_disabled: bool) -> bool:
        """Return whether an answer to a poll, without orders, would change nothing."""
        return self._was_polled and self.is_disabled is is_disabled

    def on_unknown(self, now_s: float) -> None:
        """Register again: the server does not know this agent."""
        if self._phase == "ready":
            self._register_later(now_s)

    def on_tracked(self) -> None:
        """Allow orders: the server and Placement have the state of the host."""
        self._is_tracked = True

    def on_worked(self, task: Work | Undo | Clean, answer: OrderAnswer, now_s: float) -> None:
        """Take the result of a task for the driver."""
        is_state_unclear = isinstance(task, Undo) or answer.outcome != "ok"
        if not isinstance(task, Clean) and isinstance(task.order.act, (Power, Reboot)) and is_state_unclear:
            self._scans.schedule_soon(now_s)
        match task:
            case Clean():
                self._end_task(task.instance, task)
                self._has_failed_to_clean |= answer.outcome != "ok"
                is_open = self._phase == "cleaning" or (self._phase == "ready" and self._has_failed_to_clean)
                if is_open and not any(map(queues.is_cleaning, self._lanes.values())):
                    # At once unless something failed, so that the host is up soon.
                    self._register_later(now_s, is_at_once=not self._has_failed_to_clean)
            case Undo():
                self._end_task(lane_of(task.order), task)
                self._end_undo(task, answer, now_s)
            case Work():
                self._end_task(lane_of(task.order), task)
                self._finish(task.order, answer)

    def on_delivered(self, order: Order) -> None:
        """Note that the server has the answer to an order."""
        self._settle(key_of(order))

    def on_undelivered(self, order: Order, error: RoostError, now_s: float) -> None:
        """Note that the server refused the answer to an order, or could not be reached."""
        each = self._orders.get(key_of(order))
        if each is None or each.answer is None:
            return
        each.is_being_sent = False
        match error:
            case AccessDenied() | BadSettings():
                self.end = error
            case Conflict():
                self._withdraw(each)
            case NotFound() | BadRequest() if each.refusals:
                self._settle(key_of(order))  # Do not send the answer forever.
            case NotFound():
                each.refusals += 1
                self.on_unknown(now_s)
            case BadRequest():
                each.refusals += 1
                if each.answer.outcome == "ok" and queues.is_building(order):
                    self._lane(lane_of(order)).undos.append(Undo(order))  # The server does not know the guest.
                problem = f"the server does not understand the answer: {error}"[:PROBLEM_MAX]
                each.answer = OrderAnswer(run=self._identity.run, outcome="aborted", problem=problem)
            case _:
                self._retry_at_s = now_s + self._pause_s * self._spread

    # --- orders ---

    def _restore(self, entry: Entry) -> None:
        """Resume an order of an earlier process."""
        if entry.state == "taken":
            return
        each = OpenOrder(order=entry.order, is_resumed=True, answer=entry.answer)
        self._orders[key_of(entry.order)] = each
        if entry.answer is None:
            self._lane(lane_of(entry.order)).waiting.append(each)
        else:
            self._undelivered[key_of(entry.order)] = each
            if queues.may_be_left(entry.order, entry.answer):
                self._lane(lane_of(entry.order)).undos.append(Undo(entry.order))

    def _receive(self, order: Order) -> None:
        if (key := key_of(order)) in self._orders:
            return
        known, mark = self._memory.entry(key), self._memory.mark(lane_of(order))
        if known is not None and known.answer is not None:
            answer = queues.answer_again(order, known.answer, mark, run=self._identity.run)
            self._orders[key] = self._undelivered[key] = OpenOrder(order=order, answer=answer)
        else:
            self._orders[key] = each = OpenOrder(order=order)
            self._lane(lane_of(order)).waiting.append(each)

    def _withdraw(self, each: OpenOrder) -> None:
        """Drop or undo an order; an order under way is undone after its end."""
        if each.is_unwanted:
            return
        key, lane = key_of(each.order), self._lane(lane_of(each.order))
        is_waiting = each.answer is None and each.begun_at_s is None
        if is_waiting:
            lane.waiting.remove(each)
        if each.answer is None and each.begun_at_s is not None:
            each.is_unwanted = True
        elif (is_waiting and each.is_resumed) or (each.answer is not None and each.answer.outcome == "ok"):
            each.is_unwanted = True
            self._undelivered.pop(key, None)
            lane.undos.append(Undo(each.order))
        else:
            self._settle(key)
        self._drop_empty_lane(lane_of(each.order))

    def _mark_settled(self, each: OpenOrder) -> None:
        """Settle an order that the server has an answer to, or does not know; do not begin it."""
        if each.answer is None and each.begun_at_s is None:
            self._lane(lane_of(each.order)).waiting.remove(each)
            self._drop_empty_lane(lane_of(each.order))
        if each.answer is not None or each.begun_at_s is None:
            self._settle(key_of(each.order))
        else:
            each.is_settled = True  # Let it end, and keep its effects.

    def _finish(self, order: Order, answer: OrderAnswer) -> None:
        key = key_of(order)
        each = self._orders.get(key)
        if queues.may_be_left(order, answer):
            self._lane(lane_of(order)).undos.append(Undo(order))
        if self._overdue.pop(key, None) is not None and (each is None or each.answer is not None):
            # The order was reported as failed before its end, and the server has acted on the report.
            if answer.outcome == "ok":
                self._lane(lane_of(order)).undos.append(Undo(order))
            if each is not None and each.is_unwanted:
                self._settle(key)
            return
        assert each is not None, "an order under way is open"
        self._answer(each, answer)
        if each.is_settled:
            self._settle(key)
        elif each.is_unwanted:
            each.is_unwanted = False
            self._withdraw(each)

    def _end_undo(self, undo: Undo, answer: OrderAnswer, now_s: float) -> None:
        """Delete a withdrawn order once its effects are undone; send the answer if the server still waits for it."""
        lane = self._lane(lane_of(undo.order))
        if answer.outcome != "ok":
            lane.undos.append(undo)
            lane.undo_at_s = now_s + _UNDO_RETRY_S * self._spread
            return
        each = self._orders.get(key_of(undo.order))
        if each is None or each.is_unwanted:
            self._settle(key_of(undo.order))
        elif each.answer is not None and queues.may_be_left(each.order, each.answer):
            # Recorded, so that no later process repeats the undo.
            self._answer(each, queues.answer_after_undo(each.order, each.answer))
        self._drop_empty_lane(lane_of(undo.order))

    def _answer(self, each: OpenOrder, answer: OrderAnswer) -> None:
        self._memory.finish(each.order, answer)
        each.answer = answer
        self._undelivered[key_of(each.order)] = each

    def _settle(self, key: Key) -> None:
        """Settle an order: send nothing more, and forget it unless it must still be undone."""
        self._undelivered.pop(key, None)
        each = self._orders.get(key)
        if each is None:
            return
        if key in self._overdue or ((lane := self._lanes.get(lane_of(each.order))) and lane.undoes(each.order)):
            each.is_unwanted = True  # A later process undoes it if this one does not.
            return
        del self._orders[key]
        known = self._memory.entry(key)
        if known is not None and known.answer is not None:
            self._memory.take(key)
        elif known is not None:
            self._memory.forget(key)

    def _fail_overdue(self, now_s: float) -> None:
        for key, each in self._orders.items():
            is_late = each.begun_at_s is not None and now_s >= each.begun_at_s + self._timeout_s
            if not is_late or each.answer is not None or key in self._overdue:
                continue
            self._overdue[key] = each.order
            if each.is_unwanted or each.is_settled:
                continue  # The server waits for no answer.
            name = queues.order_name(each.order)
            problem = f"the driver on host {self.host} did not end {name} in {self._timeout_s:g} s"
            self._answer(each, self._fail(problem, found=queues.new_guest_of(each.order)))

    def _due_replies(self, now_s: float) -> Iterable[Reply]:
        if now_s < self._retry_at_s and self._phase == "ready":
            return
        for each in self._undelivered.values():
            if not each.is_being_sent and each.answer is not None:
                each.is_being_sent = True
                # An earlier process may have taken the order, but this one answers.
                yield Reply(each.order, msgspec.structs.replace(each.answer, run=self._identity.run))

    # --- lanes ---

    def _next_in_lanes(self, now_s: float) -> list[Task]:
        if self._is_stopping:
            return []
        tasks: list[Task] = []
        begun: list[OpenOrder] = []
        may_work = self._phase == "ready" and self._is_tracked and self._was_polled
        for name, lane in [*self._lanes.items()]:
            if lane.current is not None:
                begun += self._take_aborts(lane) if may_work else ()
            elif lane.cleans:
                lane.current = lane.cleans.pop(0)
                tasks.append(lane.current)
            elif may_work and lane.undos and now_s >= lane.undo_at_s:
                lane.current = lane.undos.pop(0)
                tasks.append(lane.current)
            elif may_work and (each := self._next_order(name, lane)) is not None:
                lane.current = Work(each.order, each.is_resumed)
                begun.append(each)
                self._scans.note_work(name, lane)
            self._drop_empty_lane(name)
        if fresh := [each.order for each in begun if not each.is_resumed]:
            self._memory.begin(fresh)  # Before any of them begins, so that a later process knows them after a crash.
        for each in begun:
            each.begun_at_s = now_s
            tasks.append(Work(each.order, each.is_resumed))
        return tasks

    def _next_order(self, name: str, lane: Lane) -> OpenOrder | None:
        """Take the next order of an instance; answer stale orders."""
        lane.waiting.sort(key=lambda each: (not each.is_resumed, each.mark))
        newest, hung = max((each.order.turn for each in lane.waiting), default=0), self._overdue.values()
        while lane.waiting:
            each = lane.waiting.pop(0)
            # An overtaken Destroy or Discard begins too: the later order may fail, and then does not replace it.
            is_overtaken = each.order.turn < newest and not isinstance(each.order.act, (Destroy, Discard))
            if not each.is_resumed and (is_overtaken or each.mark < self._memory.mark(name)):
                self._answer(each, queues.stale_answer(each.order, self._memory.mark(name), run=self._identity.run))
            elif problem := queues.refusal(each.order, lane, hung=() if each.is_resumed else hung, host=self.host):
                self._answer(each, self._fail(problem))
            else:
                return each
        return None

    def _take_aborts(self, lane: Lane) -> list[OpenOrder]:
        """Take the orders to abort the present move of a guest."""
        current = lane.current
        if not isinstance(current, Work) or not isinstance(current.order.act, LiveMigrate):
            return []
        found = [each for each in lane.waiting if isinstance(each.order.act, AbortMigration)]
        lane.waiting = [each for each in lane.waiting if each not in found]
        return found

    def _lane(self, name: str) -> Lane:
        if self._scans.is_running or self._phase in ("scanned", "registering"):
            self._scans.note(name)
        return self._lanes.setdefault(name, Lane())

    def _end_task(self, name: str, task: Work | Undo | Clean) -> None:
        lane = self._lane(name)
        if lane.current == task:  # The abort of a move runs beside the move.
            lane.current = None
        self._drop_empty_lane(name)

    def _drop_empty_lane(self, name: str) -> None:
        if name in self._lanes and self._lanes[name].is_empty:
            del self._lanes[name]

    def _register_later(self, now_s: float, *, is_at_once: bool = False) -> None:
        """Register again, after a pause that grows each time; the server must not count the agent as down meanwhile."""
        self._phase = "away"
        pause_s = 0.0 if is_at_once else min(self._pause_s, self.down_after_s / _REGISTRATIONS_WHILE_UP)
        self._retry_at_s = now_s + pause_s * self._spread
        self._pause_s = self._pause_s if is_at_once else min(self._pause_s * 2, _RETRY_MAX_S)

    def _fail(self, problem: str, found: GuestReport | None = None) -> OrderAnswer:
        return OrderAnswer(run=self._identity.run, outcome="failed", problem=problem, found=found)
