"""Faults of the fake driver: drawn at random from a seed, so that the same seed repeats them."""

import random
import threading
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase

from roost.compute.drivers.fake.script import Action, Fault
from roost.errors import BuildAborted, BuildFailed, DriverNotReady

_SLOW_S, _HANG_S = 1.0, 86_400.0


class FakeCrash(Exception):
    """A simulated crash: the action was begun, and stays incomplete."""


class Faults:
    """Draws the faults of a host, action by action.

    Args:
        faults: the faults, in the order of their draws.
        host: name of the host, matched with the pattern of each fault.
        chance: source of random numbers: each action draws one number per matching fault.
    """

    def __init__(
        self, faults: Sequence[Fault], *, host: str, chance: random.Random, wait: Callable[[float], None]
    ) -> None:
        self._remaining = {number: fault.times for number, fault in enumerate(faults) if fnmatchcase(host, fault.host)}
        self._faults, self._host = faults, host
        self._chance, self._wait = chance, wait
        self._lock = threading.Lock()

    def strike(self, action: Action, *, on_crash: Callable[[], None] = lambda: None) -> None:
        """Delay or fail an action, if a fault is drawn for it.

        Args:
            action: the action.
            on_crash: completes a part of it before a crash.

        Raises:
            BuildFailed, BuildAborted, DriverNotReady, FakeCrash: as scripted; a hang ends in BuildFailed.
        """
        fault = self._draw(action)
        if fault is None:
            return
        delays = {"slow": _SLOW_S, "hang": _HANG_S}
        delay_s = delays.get(fault.kind, 0.0) if fault.delay_s is None else fault.delay_s
        if delay_s > 0:
            self._wait(delay_s)
        message = fault.message or f"{action} on {self._host} was made to fail ({fault.kind})"
        if fault.kind in ("failed", "hang"):
            raise BuildFailed(message)
        if fault.kind == "aborted":
            raise BuildAborted(message)
        if fault.kind == "unready":
            raise DriverNotReady(message)
        if fault.kind == "crash":
            on_crash()
            raise FakeCrash(message)

    def _draw(self, action: Action) -> Fault | None:
        with self._lock:
            for number, remaining in self._remaining.items():
                fault = self._faults[number]
                if fault.action != action or remaining == 0 or self._chance.random() >= fault.share:
                    continue
                self._remaining[number] = None if remaining is None else remaining - 1
                return fault
        return None
