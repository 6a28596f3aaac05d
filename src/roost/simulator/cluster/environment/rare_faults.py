"""Faults of some seeds only, so the traces of other seeds never change with this file.

Rare seeds have rare faults of all kinds. Each focus seed has a focus: its faults strike certain steps of one kind of
operation, again and again. In loss seeds, hosts lose guests. In restore seeds, the database is restored from a backup.
In plan seeds, users also apply plans of moves. In held seeds, a backup is restored, too, and the focus is the reset of
instances with a guest on another host.
"""

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from roost.compute.drivers.fake.script import Action
from roost.errors import BadRequest, Conflict, RoostError
from roost.model.fleet import NamedRequest
from roost.model.work.orders import Order

RARE_SEEDS = range(1_000, 1_500)
FOCUS_SEEDS = range(1_500, 3_000)
LOSS_SEEDS = range(3_000, 3_100)
# 3640: a guest has arrived by a resize that fails after the restore; 4056: a move to a host with a guest.
RESTORE_SEEDS = (*range(3_100, 3_200), 3_640, 4_056)
PLAN_SEEDS = range(3_200, 3_300)
WAKE_S = 0.5  # seconds between early wake-ups
# Probability of each fault in rare seeds, per opportunity.
_RARE_SHARES = {
    "woken": 0.8,  # an operation becomes due early
    "contested": 0.1,  # a decision loses all races
    "misconfigured": 0.05,  # a decision is refused as invalid
    "volume": 0.3,  # new instances boot from a volume
    "crowd": 0.1,  # a build has too many instances for one step
    "deserted": 0.05,  # hosts of an open operation sign off
    "abandoned": 0.3,  # an order fails or hangs, and the other hosts of its operation sign off
    "regretted": 0.05,  # the user deletes the instance of a new operation
}
_LOSS_SHARES = {"bereft": 0.03}  # a host loses a guest, and its agent ends
# The same in focus seeds. The first two concern operations in the focus.
_FOCUS_SHARES = {
    "focused": 0.03,  # conductors stall, and hosts of the operation leave
    "answered": 0.7,  # the same, after an answer of a host
    "cut off": 0.7,  # the host of an order is partitioned
    "stuck": 0.3,  # an order takes longer than its time limit
    "woken": 0.3,
    "abandoned": 0.4,
}


class Focus(NamedTuple):
    """The steps of an operation in which conductors stall and hosts leave.

    Drivers fail only in the actions of the focus; in these, and in ``prepare``, they also get stuck.
    """

    kind: str
    steps: tuple[str, ...]
    actions: tuple[Action, ...]
    needs: str = ""  # the kind of operation that has to succeed before; empty: none
    is_cut_off: bool = False  # whether a host is often partitioned when it begins the order named as the kind

    @property
    def requests(self) -> tuple[str, ...]:
        """The kinds of requests that users prefer."""
        return (self.kind, self.needs)


_MOVES: tuple[tuple[str, tuple[Action, ...], str], ...] = (
    ("prepare", ("discard",), ""),
    ("stop", ("power",), ""),
    ("copy", ("send_disk",), ""),
    ("copy", ("send_disk",), "stop"),
    ("restart", ("send_disk", "power"), ""),
    ("clear", ("discard",), ""),
)
# Each seed has one of them, in turn.
_FOCUSES = (
    *(Focus(kind, (step,), actions, needs=needs) for kind in ("migrate", "resize") for step, actions, needs in _MOVES),
    Focus("live_migrate", ("prepare",), ("discard",)),
    Focus("live_migrate", ("clear",), ("discard",)),
    Focus("live_migrate", ("look",), ("destroy",), is_cut_off=True),
    Focus("live_migrate", ("sweep",), ("destroy",), is_cut_off=True),
    Focus("live_migrate", ("look", "undo"), ("live_migrate",), is_cut_off=True),
    Focus("live_migrate", ("undo",), ("live_migrate", "discard")),
    Focus("confirm", ("look",), ("inspect",), needs="resize"),
    Focus("revert", ("send", "look"), ("inspect",), needs="resize"),
    Focus("revert", ("restart",), ("power",), needs="resize"),
    Focus("shelve", ("back",), ("save", "power")),
    Focus("shelve", ("save",), ("save",), needs="stop"),
    Focus("sync", ("send",), ("power",)),
)
_HELD_FOCUSES = tuple(Focus("reset", ("send", "wait", "holder"), ("inspect",), needs=needs) for needs in ("", "reboot"))
# Single held seeds with a focus of their own. In 3629, returning hosts and operations wait for each other.
_SINGLE_FOCUSES: Mapping[int, Focus] = MappingProxyType(
    {
        3_629: Focus("reset", ("send", "wait", "holder"), ("inspect",), needs="resize"),
        5_068: Focus("resize", ("copy",), ("send_disk",)),
        5_111: Focus("confirm", ("part",), ("destroy",), needs="resize"),
        5_200: Focus("revert", ("copy",), ("inspect",), needs="resize"),
        5_212: Focus("revert", ("copy",), ("inspect",), needs="resize"),
        6_180: Focus("resize", ("prepare",), ("discard",)),
        6_219: Focus("revert", ("copy",), ("inspect",), needs="resize"),
        6_275: Focus("migrate", ("copy",), ("send_disk",)),
    }
)
# 3602: a returning host waits for an operation; 3866: an operation of the backup would destroy the only guest; 6236: a
# reset is cancelled while it looks for the holder.
HELD_SEEDS = (*range(3_300, 3_500), 3_602, 3_866, 6_236, *_SINGLE_FOCUSES)
# Requests of the focus are more frequent by this factor.
FOCUS_WEIGHT = 10

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
        self._shares = _shares_of(seed)
        self.is_on = bool(self._shares)
        self.chance = random.Random(f"rare {seed}")
        self.driver_chance = _FocusChance(self)
        self.focus = _focus_of(seed)
        self._counts, self._is_over = counts, is_over
        # Called with an order that fails or hangs, and its host.
        self.on_trouble: Callable[[Order, str], object] = lambda _order, _host: None
        # Called with an order when its host begins it.
        self.on_begun: Callable[[Order, str], object] = lambda _order, _host: None
        # Called when a server has stored an agent's report or answer, before its conductor reads it.
        self.on_stored: Callable[[], object] = lambda: None
        self.stalled_until_s = 0.0  # no conductor takes a turn before this time

    def strikes(self, fault: str) -> bool:
        """Draw whether a fault strikes now."""
        share = self._shares.get(fault, 0.0)
        if not share or self._is_over() or self.chance.random() >= share:
            return False
        self._counts[fault] += 1
        return True

    @property
    def is_over(self) -> bool:
        """Whether faults have ended."""
        return self._is_over()

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


def _shares_of(seed: int) -> Mapping[str, float]:
    """Return the probabilities of the faults of a seed."""
    if seed in RARE_SEEDS:
        return _RARE_SHARES
    if seed in FOCUS_SEEDS or seed in HELD_SEEDS:
        return _FOCUS_SHARES
    return _LOSS_SHARES if seed in LOSS_SEEDS else {}


def _focus_of(seed: int) -> Focus | None:
    """Return the focus of a seed, if it has one."""
    if seed in _SINGLE_FOCUSES:
        return _SINGLE_FOCUSES[seed]
    if seed in HELD_SEEDS:
        return _HELD_FOCUSES[seed % len(_HELD_FOCUSES)]
    return _FOCUSES[seed % len(_FOCUSES)] if seed in FOCUS_SEEDS else None


class _FocusChance(random.Random):
    """The random generator of drivers in focus seeds; it yields faults until the simulation is calm.

    Args:
        rare: the faults of the seed.
    """

    def __init__(self, rare: RareFaults) -> None:
        super().__init__(0)
        self._rare = rare

    def random(self) -> float:
        """Return a number below 1 if a fault may strike, else 1."""
        return 1.0 if self._rare.is_over else self._rare.chance.random()
