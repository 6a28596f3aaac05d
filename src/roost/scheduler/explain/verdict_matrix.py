"""Every check against every host: what each refuses alone, and which hosts were refused by least."""

from collections.abc import Collection, Sequence
from functools import cached_property
from typing import NamedTuple, get_args

import numpy as np

from roost.engine.columns.state import State
from roost.engine.columns.types import Amounts, Mask, Rows
from roost.engine.feasibility.feasibility import Amount, Family
from roost.model.evidence.decision import Stage
from roost.model.evidence.explain import NearMiss, RuleVerdict, Shortfall
from roost.scheduler.framework.spec import Spec, Subject
from roost.scheduler.pipeline.shape import Shape

_BIT = {subject: np.int16(1 << at) for at, subject in enumerate(get_args(Subject))}


class Matrix:
    """What every check of a shape says of every host of a state, each asked on its own.

    Args:
        shape: the pipeline of a request.
        state: the columns it was made for, or other amounts on the same hosts.
        spec: the request as it is there; None: that of the shape.
    """

    def __init__(self, shape: Shape, state: State, spec: Spec | None = None) -> None:
        self.shape = shape
        self.state = state
        self.checks = shape.checks.rules  # name and reason
        self.masks = shape.verdicts(state, spec)  # one a check; True: it passes the host
        self.alive: Mask = state.hosts.alive.view

    @cached_property
    def failures(self) -> Amounts:
        """How many checks refuse each host: int64, shape (hosts,)."""
        failures: Amounts = np.zeros(len(self.alive), dtype=np.int64)
        for mask in self.masks:
            failures += ~mask
        return failures

    @cached_property
    def _refusing(self) -> list[int]:
        """The combinations of subjects, as bits, by which any host is refused; 0: by none."""
        bits = np.zeros(len(self.alive), dtype=np.int16)
        for subject, mask in zip(self.shape.subjects(), self.masks, strict=True):
            bits |= ~mask * _BIT[subject]
        combinations: list[int] = np.flatnonzero(np.bincount(bits[self.alive])).tolist()
        return combinations

    def passing(self) -> Rows:
        """Return the hosts that every check passes: intp, in row order."""
        passing = self.alive.copy()
        for mask in self.masks:
            passing &= mask
        return np.flatnonzero(passing)

    def could_open(self, subjects: Collection[Subject]) -> bool:
        """Say whether any host is refused by nothing but checks of these subjects."""
        others = ~sum(int(_BIT[subject]) for subject in subjects)
        return any(not combination & others for combination in self._refusing)

    def only(self, check: int) -> Mask:
        """Return the hosts that this check refuses and no other: bool, shape (hosts,)."""
        alone: Mask = (self.failures == 1) & ~self.masks[check] & self.alive
        return alone

    def stages(self) -> list[Stage]:
        """Return what came of the checks in their order."""
        passing = self.alive.copy()
        before = int(np.count_nonzero(passing))
        stages = []
        for (rule, reason), mask in zip(self.checks, self.masks, strict=True):
            passing &= mask
            after = int(np.count_nonzero(passing))
            stages.append(Stage(rule, before, after, reason))
            before = after
        return stages

    def rules(self, stages: Sequence[Stage]) -> list[RuleVerdict]:
        """Return the same with what each check refuses on its own."""
        is_only = (self.failures == 1) & self.alive
        return [
            RuleVerdict(
                rule=stage.rule,
                reason=stage.reason,
                in_turn=stage.before - stage.after,
                alone=int(np.count_nonzero(self.alive & ~mask)),
                only=int(np.count_nonzero(is_only & ~mask)),
            )
            for stage, mask in zip(stages, self.masks, strict=True)
        ]


class _Lack(NamedTuple):
    """What some hosts have of an amount that a check asks for."""

    resource_class: str  # empty: groups
    has: Amounts
    wanted: int


def nearest_hosts(matrix: Matrix, count: int) -> list[NearMiss]:
    """Return the hosts that were refused by least: by the fewest checks, and of these by the smallest parts."""
    if not matrix.alive.any():
        return []
    # Those refused by fewer checks than ``reach`` are among the nearest; of those refused by so many the first are.
    reach = int(np.searchsorted(np.bincount(matrix.failures[matrix.alive]).cumsum(), count))
    rows = np.flatnonzero(matrix.alive & (matrix.failures <= reach))
    lacks = [_lack(matrix, at, rows) for at in range(len(matrix.masks))]
    parts = np.zeros(len(rows))
    for mask, lack in zip(matrix.masks, lacks, strict=True):
        part = 1.0 if lack is None else np.maximum(lack.wanted - lack.has, 0) / lack.wanted
        parts += np.where(mask[rows], 0.0, part)
    failures = matrix.failures[rows]
    last = np.flatnonzero(failures == reach)
    if len(last) > count:
        worst = np.partition(parts[last], count - 1)[count - 1]
        last = np.concatenate((last[parts[last] < worst], last[parts[last] == worst][:count]))
    some = np.concatenate((np.flatnonzero(failures < reach), last))
    order = some[np.lexsort((some, parts[some], failures[some]))[:count]]
    return [
        NearMiss(
            host=matrix.state.hosts.names[int(rows[position])],
            shortfalls=[
                _shortfall(reason, lack, position)
                for mask, lack, (_, reason) in zip(matrix.masks, lacks, matrix.checks, strict=True)
                if not mask[rows[position]]
            ],
        )
        for position in order.tolist()
    ]


def _lack(matrix: Matrix, at: int, rows: Rows) -> _Lack | None:
    checks = matrix.shape.fit.checks
    check = checks[at] if at < len(checks) else None
    if isinstance(check, Amount):
        has = np.maximum(check.most(matrix.state)[rows], 0)
        return _Lack(matrix.state.class_ids.name_of(check.class_id), has, check.amount)
    if isinstance(check, Family):
        return _Lack("", check.count(matrix.state)[rows], check.wanted)
    return None


def _shortfall(reason: str, lack: _Lack | None, position: int) -> Shortfall:
    if lack is None:
        return Shortfall(reason=reason)
    return Shortfall(reason=reason, resource_class=lack.resource_class, has=int(lack.has[position]), wanted=lack.wanted)
