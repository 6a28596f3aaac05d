"""Carries out the steps of calls on blocking sockets."""

import time
from collections.abc import Iterator, Mapping

from roost.client.library.attempts import ask
from roost.client.library.event_lines import Event, EventLines
from roost.client.library.exchange import Attempt, Call, Outcome, Pause, Step, Steps, T
from roost.client.library.session import EventLosses, Session
from roost.client.library.socket_pool import SocketPool


class SocketDriver:
    """The connections of a synchronous client."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._pool = SocketPool(session.endpoint, connections_max=session.options.connections_max)

    def ask(self, call: Call[T], *, timeout_s: float | None) -> T:
        """Send a call, with retries."""
        return self.run(ask(call, self.session.conditions, timeout_s=self.session.timeout_s(timeout_s)))

    def run(self, steps: Steps[T]) -> T:
        """Carry out steps, and return their result."""
        outcome: Outcome = None
        while True:
            try:
                step = steps.send(outcome)
            except StopIteration as end:
                result: T = end.value
                return result
            outcome = self._carry_out(step)

    def _carry_out(self, step: Step) -> Outcome:
        if isinstance(step, Attempt):
            request = self.session.endpoint.encode(step, login=self._login_headers())
            return self._pool.send(request, timeout_s=step.timeout_s)
        if isinstance(step, Pause):
            time.sleep(step.seconds)
        elif self.session.login is not None:
            self.session.login.renew()
        return None

    def events(self, path: str, *, after: str) -> Iterator[Event]:
        """Yield events without end, across connections; see ``EventLosses`` for lost ones."""
        losses = EventLosses(self.session.conditions)
        while True:
            lines = EventLines()
            request = self.session.endpoint.encode_events(path, after=after, login=self._login_headers())
            try:
                for part in self._pool.stream(request):
                    for event in lines.feed(losses.check(part)):
                        losses.clear()
                        if event is not None:
                            after = event.id or after
                            yield event
            except losses.KINDS as error:
                time.sleep(losses.pause_s(error))
            else:
                time.sleep(losses.pause_s(None))

    def close(self) -> None:
        """Close the connections."""
        self._pool.close()

    def _login_headers(self) -> Mapping[str, str]:
        return {} if self.session.login is None else self.session.login.headers()
