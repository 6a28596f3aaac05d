"""A kind of operation as a table: for each step and event, the handler for the next step."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Generic, TypeVar

from roost.conductor.operation.events import REFUSED, Event, Reply, Transition
from roost.conductor.operation.step import CHOOSE, B, Body, Commit, Desk, Step, View, body_of, wait_until
from roost.conductor.operation.watches import Watch
from roost.errors import RoostError, StoreBroken
from roost.model.work.work_rows import OperationRow

C_contra = TypeVar("C_contra", bound=Body, contravariant=True)

Handler = Callable[[View, Desk, C_contra], Step]
END = "end"


class To(Generic[C_contra]):
    """The handler of an event.

    Args:
        handler: returns the next step; the first paragraph of its docstring describes it in documents.
        then: the possible next steps.
    """

    def __init__(self, handler: Handler[C_contra], *then: str) -> None:
        self.handler = handler
        self.then = then


class State(Generic[C_contra]):
    """A step of an operation.

    Args:
        watch: finds the event.
        events: handlers by event, or by several events joined by ``|``. Without an entry for ``NOT_YET``, the
            operation waits in its step.
    """

    def __init__(self, watch: Watch, events: Mapping[Event, To[C_contra]]) -> None:
        self.watch = watch
        self.events = events

    def find(self, event: Event) -> To[C_contra] | None:
        """Return the handler of an event; None: there is none."""
        return next((to for events, to in self.events.items() if event in events), None)


class Refusal:
    """The handler of an error of the scheduler in place of a decision.

    Args:
        handler: returns the next step.
        then: the possible next steps.
    """

    def __init__(self, handler: Callable[[View, Desk, RoostError], Commit], *then: str) -> None:
        self.handler = handler
        self.then = then


def own_instance(operation: OperationRow) -> tuple[bytes, ...]:
    """Return the instance of an operation, if it has one."""
    return () if operation.instance_uuid is None else (operation.instance_uuid,)


class Table(Generic[B]):
    """The steps of a kind of operation.

    Args:
        body: type of the stored body.
        first: the possible first steps.
        states: its steps by name.
        cancel: handler of a cancellation in any step; None: the steps handle it themselves.
        subjects: returns the uuids of the instances; the view has their statuses.
        refusal: handler of the scheduler's errors; None: the scheduler is not called.
        has_parts: whether the view includes the parts of the operation.
        about: its description in documents; empty: the docstring of its module.
    """

    def __init__(
        self,
        body: type[B],
        states: Mapping[str, State[B]],
        *,
        first: tuple[str, ...],
        cancel: To[B] | None = None,
        subjects: Callable[[OperationRow], tuple[bytes, ...]] = own_instance,
        refusal: Refusal | None = None,
        has_parts: bool = False,
        about: str = "",
    ) -> None:
        self.first = first
        self.states = states
        self.cancel = cancel
        self.subjects = subjects
        self.refusal = refusal
        self.has_parts = has_parts
        self.about = about
        self._body = body

    def next_step(self, view: View, desk: Desk) -> Step:
        """Return the next step of an operation.

        Raises:
            StoreBroken: the step of the operation is unknown.
        """
        operation, body = view.operation, body_of(view.operation, self._body)
        state = self.states.get(operation.step)
        if state is None:
            raise StoreBroken(
                f"operation {operation.id} is in step {operation.step!r}, which this program does not know"
            )
        if operation.is_cancelled and self.cancel is not None:
            reply, to = Reply(event=Event.CANCELLED, problem="it was cancelled"), self.cancel
        else:
            reply = state.watch.observe(view, body)
            to = state.find(reply.event) or To(_wait)
        step = to.handler(replace(view, reply=reply), desk, body)
        transition = Transition(operation.kind, operation.step, reply.event.name or "", step.operation.step)
        return replace(step, transition=transition)

    def step_after_refusal(self, view: View, desk: Desk, error: RoostError) -> Commit:
        """Return the next step of an operation after an error of the scheduler."""
        assert self.refusal is not None, "only kinds with a refusal call the scheduler"
        step = self.refusal.handler(view, desk, error)
        transition = Transition(view.operation.kind, view.operation.step, REFUSED, step.operation.step)
        return replace(step, transition=transition)

    def transitions(self, kind: str) -> Iterator[Transition]:
        """Yield every transition of the table."""
        for step, state in self.states.items():
            for event in Event:
                to = self.cancel if event is Event.CANCELLED else state.find(event)
                if to is None and event is Event.NOT_YET and event in state.watch.events:
                    yield Transition(kind, step, "NOT_YET", step)
                if to is not None and (event in state.watch.events or event is Event.CANCELLED):
                    yield from (Transition(kind, step, event.name or "", then) for then in to.then)
        if self.refusal is not None:
            yield from (Transition(kind, CHOOSE, REFUSED, then) for then in self.refusal.then)

    def check(self) -> list[str]:
        """Return the faults of the table: unreachable steps, and events without a handler."""
        problems = []
        reached, ahead = set[str](), list(self.first)
        while ahead:
            step = ahead.pop()
            if step in reached or step == END:
                continue
            reached.add(step)
            state = self.states.get(step)
            if state is None:
                problems.append(f"there is no step {step}")
                continue
            for to in (*state.events.values(), *filter(None, [self.cancel])):
                ahead += to.then
            problems += [
                f"{step}: no handler of {event.name}"
                for event in state.watch.events
                if event is not Event.NOT_YET and state.find(event) is None
            ]
            problems += [
                f"{step}: {event.name} never happens"
                for events in state.events
                for event in events
                if event not in state.watch.events
            ]
        return problems + [f"{step}: no step leads here" for step in self.states if step not in reached]


def _wait(view: View, _desk: Desk, _body: Body) -> Commit:
    """Wait in this step."""
    return Commit(operation=wait_until(view, view.reply.until_s))
