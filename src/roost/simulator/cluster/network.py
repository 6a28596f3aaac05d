"""Messages between agents and servers: delayed, lost, duplicated and reordered."""

from collections.abc import Callable
from typing import Generic, TypeVar

from roost.errors import RoostError, Unavailable
from roost.simulator.cluster.processes import Process, Servers

A = TypeVar("A")

_QUICK_S, _LATE_S = (0.001, 0.05), (0.5, 12.0)
# Seconds until a caller repeats its request: without a reply, and after the error ``Unavailable``.
_TIMEOUT_S, _RETRY_S = 3.0, (0.2, 1.0)


class Call(Generic[A]):
    """A request that its caller repeats until a server replies.

    Args:
        world: the servers and the network.
        host: of the calling agent; empty: a user.
        name: its name in the trace.
        action: the server's work; may run more than once.
        on_reply: called with the reply.
        on_error: called with an error of the request.
        is_wanted: whether the caller still waits.
        hold_s: seconds by which the server delays the reply.
    """

    def __init__(
        self,
        world: Servers,
        host: str,
        name: str,
        *,
        action: Callable[[Process], A],
        on_reply: Callable[[A], None],
        on_error: Callable[[RoostError], None],
        is_wanted: Callable[[], bool],
        hold_s: Callable[[A], float] = lambda _answer: 0.0,
    ) -> None:
        self._world, self._host, self._action_name = world, host, name
        self._action, self._on_reply, self._on_error = action, on_reply, on_error
        self._is_wanted, self._hold_s = is_wanted, hold_s
        self._tries = 0
        self._is_answered = False
        self._send()

    def _send(self) -> None:
        if self._is_answered or not self._is_wanted():
            return
        self._tries += 1
        number = self._tries
        times = 2 if self._world.faults.strikes("doubled") else 1
        for _ in range(times):
            if not self._is_lost():
                self._deliver(self._action_name, lambda: self._serve(number))
        self._world.events.schedule(_TIMEOUT_S, "patience", lambda: self._retry(number), detail=self._name)

    @property
    def _name(self) -> str:
        return f"{self._host} {self._action_name}".strip()

    def _retry(self, number: int) -> None:
        if number == self._tries:
            self._send()

    def _is_lost(self) -> bool:
        return self._world.is_cut_off(self._host) or self._world.faults.strikes("lost")

    def _deliver(self, kind: str, act: Callable[[], None], *, more_s: float = 0.0) -> None:
        world = self._world
        span = _LATE_S if world.faults.strikes("late") else _QUICK_S
        world.events.schedule(world.chance.uniform(*span) + more_s, kind, act, detail=self._host)

    def _serve(self, number: int) -> None:
        """Run the action on a server and send the reply."""
        process = self._world.pick_server()
        if process is None:
            return
        try:
            answer = self._action(process)
        except Unavailable:
            self._world.events.schedule(
                self._world.chance.uniform(*_RETRY_S), "again", lambda: self._retry(number), detail=self._name
            )
        except RoostError as error:
            problem = error
            self._reply(lambda: self._on_error(problem))
        else:
            self._reply(lambda: self._on_reply(answer), more_s=self._hold_s(answer))

    def _reply(self, apply: Callable[[], None], *, more_s: float = 0.0) -> None:
        if not self._is_lost():
            self._deliver(f"{self._action_name} answered", lambda: self._receive(apply), more_s=more_s)

    def _receive(self, apply: Callable[[], None]) -> None:
        if self._is_answered or not self._is_wanted() or self._world.is_cut_off(self._host):
            return
        self._is_answered = True
        apply()
