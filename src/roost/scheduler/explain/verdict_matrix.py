"""Verdicts of every check on every host: independent rejections, and the nearest hosts."""

from collections.abc import Collection, Sequence
from functools import cached_property
from typing import NamedTuple, get_args

import numpy as np

from roost.engine.columns.state import State
from roost.engine.columns.types import Amounts, Mask, Rows
from roost.engine.feasibility.feasibility import AmountCheck, GroupCheck
from roost.model.evidence.decision import Stage
from roost.model.evidence.explain import NearMiss, RuleVerdict, Shortfall
from roost.model.names import amount_text
from roost.scheduler.framework.spec import Spec, Subject
from roost.scheduler.shape.shape import Shape

_BIT = {subject: np.int16(1 << at) for at, subject in enumerate(get_args(Subject))}


class Matrix:
    """Independent verdicts of every check of a shape on every host of a state.

    Args:
        shape: the pipeline of a request.
        state: the columns of the shape, or columns with other amounts on the same hosts.
        spec: the request on this state; None: the spec of the shape.
    """

    def __init__(self, shape: Shape, state: State, spec: Spec | None = None) -> None:
        self.shape = shape
        self.state = state
        self.checks = shape.evidence.checks.rules  # name and reason
        self.masks = shape.verdicts.masks(state, spec)  # one per check; True: accepted
        self.alive: Mask = state.hosts.alive.view

    @cached_property
    def failures(self) -> Amounts:
        """The number of checks that reject each host: int64, shape (hosts,)."""
        failures: Amounts = np.zeros(len(self.alive), dtype=np.int64)
        for mask in self.masks:
            failures += ~mask
        return failures

    @cached_property
    def _refusing(self) -> list[int]:
        """The distinct sets of subjects that reject a host, as bits; 0: no rejection."""
        bits = np.zeros(len(self.alive), dtype=np.int16)
        for subject, mask in zip(self.shape.verdicts.subjects(), self.masks, strict=True):
            bits |= ~mask * _BIT[subject]
        combinations: list[int] = np.flatnonzero(np.bincount(bits[self.alive])).tolist()
        return combinations

    def passing(self) -> Rows:
        """Return the hosts that pass every check: intp, in row order."""
        passing = self.alive.copy()
        for mask in self.masks:
            passing &= mask
        return np.flatnonzero(passing)

    def could_open(self, subjects: Collection[Subject]) -> bool:
        """Return whether any host is rejected only by checks of these subjects."""
        others = ~sum(int(_BIT[subject]) for subject in subjects)
        return any(not combination & others for combination in self._refusing)

    def only(self, check: int) -> Mask:
        """Return the hosts rejected by this check and no other: bool, shape (hosts,)."""
        mask: Mask = (self.failures == 1) & ~self.masks[check] & self.alive
        return mask

    def stages(self) -> list[Stage]:
        """Return the stages of the checks, in order."""
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
        """Return the stages with each check's independent rejections."""
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


class _Comparison(NamedTuple):
    """The amounts on some hosts that a check compares with the request."""

    resource_class: str  # empty: groups
    available: Amounts
    required: int
    units: Amounts | None = None  # largest amounts of one allocation; None: no bounds


def nearest_hosts(matrix: Matrix, count: int) -> list[NearMiss]:
    """Return the hosts with the fewest rejecting checks and, among these, the smallest shortfalls."""
    if not matrix.alive.any():
        return []
    # The nearest hosts: all with fewer than ``reach`` failures, and the best with exactly ``reach`` failures.
    reach = int(np.searchsorted(np.bincount(matrix.failures[matrix.alive]).cumsum(), count))
    rows = np.flatnonzero(matrix.alive & (matrix.failures <= reach))
    comparisons = [_compare(matrix, at, rows) for at in range(len(matrix.masks))]
    parts = np.zeros(len(rows))
    for mask, compared in zip(matrix.masks, comparisons, strict=True):
        part = 1.0 if compared is None else np.maximum(compared.required - compared.available, 0) / compared.required
        parts += np.where(mask[rows], 0.0, part)
    failures = matrix.failures[rows]
    last = np.flatnonzero(failures == reach)
    if len(last) > count:
        worst = np.partition(parts[last], count - 1)[count - 1]
        last = np.concatenate((last[parts[last] < worst], last[parts[last] == worst][:count]))
    nearest = np.concatenate((np.flatnonzero(failures < reach), last))
    order = nearest[np.lexsort((nearest, parts[nearest], failures[nearest]))[:count]]
    return [
        NearMiss(
            host=matrix.state.hosts.names[int(rows[position])],
            shortfalls=[
                _shortfall(reason, compared, position)
                for mask, compared, (_, reason) in zip(matrix.masks, comparisons, matrix.checks, strict=True)
                if not mask[rows[position]]
            ],
        )
        for position in order.tolist()
    ]


def _compare(matrix: Matrix, at: int, rows: Rows) -> _Comparison | None:
    checks = matrix.shape.fit.checks
    check = checks[at] if at < len(checks) else None
    if isinstance(check, AmountCheck):
        available = np.maximum(check.largest_free(matrix.state)[rows], 0)
        units = None if check.units is None else check.largest_unit(matrix.state)[rows]
        return _Comparison(matrix.state.class_ids.name_of(check.class_id), available, check.amount, units)
    if isinstance(check, GroupCheck):
        return _Comparison("", check.count_by_host(matrix.state)[rows], check.group_count)
    return None


def _shortfall(reason: str, compared: _Comparison | None, position: int) -> Shortfall:
    if compared is None:
        return Shortfall(reason=reason)
    if compared.units is not None and 0 < compared.units[position] < compared.required:
        unit = amount_text(compared.resource_class, int(compared.units[position]))
        return Shortfall(reason=f"accept at most {unit} in one allocation")
    return Shortfall(
        reason=reason,
        resource_class=compared.resource_class,
        has=int(compared.available[position]),
        wanted=compared.required,
    )
