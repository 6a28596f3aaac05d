"""Rare faults. Only ``RARE_SEEDS`` have them, so the traces of other seeds never change with this file."""

import random
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from roost.compute.drivers.fake.script import Action
from roost.errors import BadRequest, Conflict, RoostError
from roost.model.fleet import NamedRequest
from roost.model.work.orders import Order

RARE_SEEDS = range(1_000, 2_000)
WAKE_S = 0.5  # seconds between early wake-ups
# Probability of each fault, per opportunity.
_SHARES = {
    "woken": 0.8,  # an operation becomes due early
    "contested": 0.1,  # a decision loses all races
    "misconfigured": 0.05,  # a decision is refused as invalid
    "volume": 0.3,  # new instances boot from a volume
    "crowd": 0.1,  # a build has too many instances for one step
    "deserted": 0.05,  # hosts of an open operation sign off
    "focused": 0.03,  # conductors stall, and hosts of an operation in the seed's focus leave
    "answered": 0.7,  # the same, after an answer of a host
    "abandoned": 0.3,  # an order fails or hangs, and the other hosts of its operation sign off
    "regretted": 0.05,  # the user deletes the instance of a new operation
}


_MOVE_STEPS: tuple[tuple[str, Action], ...] = (
    ("prepare", "discard"),
    ("stop", "power"),
    ("copy", "send_disk"),
    ("restart", "send_disk"),
    ("clear", "discard"),
)


class Focus(NamedTuple):
    """The steps of an operation in which conductors stall and hosts leave, and an action that drivers often fail."""

    kind: str
    steps: tuple[str, ...]
    action: Action
    needs: str = ""  # the kind of operation that has to succeed before; empty: none

    @property
    def requests(self) -> tuple[str, ...]:
        """The kinds of requests that users prefer."""
        return (self.kind, self.needs)


# Each seed has one of them, in turn.
_FOCUSES = (
    *(Focus(kind, (step,), action) for kind in ("migrate", "resize") for step, action in _MOVE_STEPS),
    Focus("live_migrate", ("prepare",), "discard"),
    Focus("live_migrate", ("migrate",), "destroy"),
    Focus("live_migrate", ("migrate", "look"), "destroy"),
    Focus("live_migrate", ("migrate", "undo"), "discard"),
    Focus("live_migrate", ("undo",), "discard"),
    Focus("confirm", ("look",), "inspect", needs="resize"),
    Focus("revert", ("send", "look"), "inspect", needs="resize"),
    Focus("revert", ("restart",), "power", needs="resize"),
    Focus("shelve", ("back",), "save"),
    Focus("sync", ("send",), "power"),
)
# Requests of the focus are more frequent by this factor.
FOCUS_WEIGHT = 6

# Requests for decisions, and their results.
Decide = Callable[[Sequence[Any]], list[Any]]


class RareFaults:
    """Draws rare faults from a random generator of its own, and counts them.

    Args:
        seed: of the simulation.
        counts: counts of all faults.
        is_over: returns whether faults have ended.
    """

    def __init__(self, seed: int, *, counts: Counter[str], is_over: Callable[[], bool]) -> None:
        self.is_on = seed in RARE_SEEDS
        self.chance = random.Random(f"rare {seed}")
        self.focus = _FOCUSES[seed % len(_FOCUSES)] if self.is_on else None
        self._counts, self._is_over = counts, is_over
        # Called with an order that fails or hangs, and its host.
        self.on_trouble: Callable[[Order, str], object] = lambda _order, _host: None
        # Called when a server has stored an agent's report or answer, before its conductor reads it.
        self.on_stored: Callable[[], object] = lambda: None
        self.stalled_until_s = 0.0  # no conductor takes a turn before this time

    def strikes(self, fault: str) -> bool:
        """Draw whether a fault strikes now."""
        if not self.is_on or self._is_over() or self.chance.random() >= _SHARES[fault]:
            return False
        self._counts[fault] += 1
        return True

    def disturb(self, decide: Decide) -> Decide:
        """Return a scheduler that loses some races for good, and refuses some requests."""
        if not self.is_on:
            return decide

        def decide_or_fail(acts: Sequence[Any]) -> list[Any]:
            errors = {at: error for at, act in enumerate(acts) if (error := self._error(act)) is not None}
            results = iter(decide([act for at, act in enumerate(acts) if at not in errors]))
            return [errors[at] if at in errors else next(results) for at in range(len(acts))]

        return decide_or_fail

    def _error(self, act: object) -> RoostError | None:
        if not isinstance(act, NamedRequest):
            return None
        if self.strikes("contested"):
            return Conflict("every claim lost its race")
        return BadRequest("a setting has changed") if self.strikes("misconfigured") else None
