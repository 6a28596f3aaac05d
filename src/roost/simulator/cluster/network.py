"""Messages between agents and servers: they take their time, get lost, come twice and overtake each other."""

from collections.abc import Callable
from typing import Generic, TypeVar

from roost.errors import RoostError, Unavailable
from roost.simulator.cluster.processes import Process, Servers

A = TypeVar("A")

_QUICK_S, _LATE_S = (0.001, 0.05), (0.5, 12.0)
# Whoever is not answered asks again.
_PATIENCE_S, _AGAIN_S = 3.0, (0.2, 1.0)


class Call(Generic[A]):
    """Somebody asks a server, again and again until there is an answer.

    Args:
        world: in which they are.
        host: who asks; empty: somebody without a host.
        what: as the trace tells it.
        deed: what the server does; it may be done more than once.
        told: what to do with the answer.
        failed: what to do with an error of whoever asked.
        is_wanted: whether anybody still waits.
        wait_s: how long the answer takes at least, once it is known.
    """

    def __init__(
        self,
        world: Servers,
        host: str,
        what: str,
        *,
        deed: Callable[[Process], A],
        told: Callable[[A], None],
        failed: Callable[[RoostError], None],
        is_wanted: Callable[[], bool],
        wait_s: Callable[[A], float] = lambda _answer: 0.0,
    ) -> None:
        self._world, self._host, self._what = world, host, what
        self._deed, self._told, self._failed = deed, told, failed
        self._is_wanted, self._wait_s = is_wanted, wait_s
        self._tries = 0
        self._is_answered = False
        self._try()

    def _try(self) -> None:
        if self._is_answered or not self._is_wanted():
            return
        self._tries += 1
        number = self._tries
        times = 2 if self._world.trouble.strikes("doubled") else 1
        for _ in range(times):
            if not self._is_cut():
                self._later(self._what, lambda: self._arrive(number))
        self._world.happenings.after(_PATIENCE_S, "patience", lambda: self._give_up(number), told=self._name)

    @property
    def _name(self) -> str:
        return f"{self._host} {self._what}".strip()

    def _give_up(self, number: int) -> None:
        if number == self._tries:
            self._try()

    def _is_cut(self) -> bool:
        return self._world.is_cut(self._host) or self._world.trouble.strikes("lost")

    def _later(self, kind: str, act: Callable[[], None], *, more_s: float = 0.0) -> None:
        world = self._world
        span = _LATE_S if world.trouble.strikes("late") else _QUICK_S
        world.happenings.after(world.chance.uniform(*span) + more_s, kind, act, told=self._host)

    def _arrive(self, number: int) -> None:
        """Let a server do it."""
        process = self._world.server()
        if process is None:
            return
        try:
            answer = self._deed(process)
        except Unavailable:
            self._world.happenings.after(
                self._world.chance.uniform(*_AGAIN_S), "again", lambda: self._give_up(number), told=self._name
            )
        except RoostError as error:
            wrong = error
            self._reply(lambda: self._failed(wrong))
        else:
            self._reply(lambda: self._told(answer), more_s=self._wait_s(answer))

    def _reply(self, say: Callable[[], None], *, more_s: float = 0.0) -> None:
        if not self._is_cut():
            self._later(f"{self._what} answered", lambda: self._hear(say), more_s=more_s)

    def _hear(self, say: Callable[[], None]) -> None:
        if self._is_answered or not self._is_wanted() or self._world.is_cut(self._host):
            return
        self._is_answered = True
        say()
