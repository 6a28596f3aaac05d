"""Hosts with room for an instance after departures, and the missing amounts."""

from collections.abc import Sequence

import numpy as np

from roost.engine.columns.state import State
from roost.engine.columns.types import Mask
from roost.engine.feasibility.feasibility import AmountCheck, GroupCheck
from roost.scheduler.plans.board import Mover
from roost.scheduler.shape.shape import Shape


def find_candidates(shape: Shape, state: State) -> list[int]:
    """Return the hosts with room for an instance only after departures, smallest shortfall first.

    Only amounts, groups of resources and rules about present instances refuse such a host. A host that could not serve
    an amount even if it was empty is left out.
    """
    masks = shape.verdicts.masks()
    possible = _could_take(shape, state, masks) & ~np.logical_and.reduce(masks)
    score = np.zeros(len(possible))
    for check in shape.fit.checks:
        if isinstance(check, AmountCheck):
            score += np.clip(check.amount - check.largest_free(state), 0, check.amount) / check.amount
        elif isinstance(check, GroupCheck):
            score += np.maximum(check.group_count - check.count_by_host(state), 0) / check.group_count
    rows = np.flatnonzero(possible)
    found: list[int] = rows[np.argsort(score[rows], kind="stable")].tolist()
    return found


def missing_amounts(shape: Shape, state: State, row: int) -> dict[int, int]:
    """Return the missing amounts on a host for an instance, by class id.

    Classes of connected sharing providers are left out, because instances on other hosts can return amounts of them.
    """
    missing = {}
    for check in shape.fit.checks:
        if isinstance(check, AmountCheck) and not check.lenders:
            lacking = check.amount - state.best_free(check.class_id).item(row)
            if lacking > 0:
                missing[check.class_id] = lacking
    return missing


def _could_take(shape: Shape, state: State, masks: Sequence[Mask]) -> Mask:
    """Return the hosts with possible room after departures: bool, shape (hosts,)."""
    possible = state.hosts.alive.view.copy()
    dynamic = {at for at, _ in shape.verdicts.dynamic_filters}
    for at, (subject, mask) in enumerate(zip(shape.verdicts.subjects(), masks, strict=True)):
        if subject not in {"amount", "search"} and at not in dynamic:
            possible &= mask
    host_of, _ = state.host_trees()
    for check in shape.fit.checks:
        if isinstance(check, AmountCheck) and not check.lenders:
            columns = state.inventory(check.class_id)
            large = (host_of >= 0) & (columns.total.view > 0) & (columns.capacity.view >= check.amount)
            could_serve = np.zeros(len(possible), dtype=np.bool_)
            could_serve[host_of[large]] = True
            possible &= could_serve
            if check.units is not None:
                possible &= check.units
    return possible


def least_departures(movers: Sequence[Mover], missing: dict[int, int]) -> int | None:
    """Return a lower bound on the departures from a host; None: even all of them free too little."""
    bound = 1
    for class_id, lacking in missing.items():
        freed = sorted((mover.freed.get(class_id, 0) for mover in movers), reverse=True)
        enough = np.flatnonzero(np.cumsum(freed) >= lacking)
        if not len(enough):
            return None
        bound = max(bound, int(enough[0]) + 1)
    return bound if movers else None
