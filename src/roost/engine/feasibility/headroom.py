"""Headroom: how many requests of one shape each host can hold, by counting free amounts.

Counting is exact for a host under two conditions: ``Feasibility.undecided`` is False for it, and sharing providers
serve no part of the request. The checks of such a host concern different classes, so they never compete.
"""

import numpy as np

from roost.engine.columns.state import State
from roost.engine.columns.types import Amounts
from roost.engine.feasibility.feasibility import AmountCheck, Check, EitherCheck, Feasibility, GroupCheck

# The highest headroom of a host, used if a check has no bound. The sum over a million hosts fits in int64.
HEADROOM_MAX = 2**40


def count_headroom(state: State, fit: Feasibility) -> list[Amounts]:
    """Count the headroom of each host by each check alone.

    Returns:
        int64, shape (hosts,), 0..HEADROOM_MAX, one per check, in the order of ``fit.checks``.
    """
    return [_count_check(state, check) for check in fit.checks]


def _count_check(state: State, check: Check) -> Amounts:
    if isinstance(check, AmountCheck):
        return _count_amount(state, check)
    if isinstance(check, GroupCheck):
        return _count_groups(state, check)
    if isinstance(check, EitherCheck):
        # The ways never compete: they request different classes.
        ways = [[_count_check(state, each) for each in checks] for checks in (check.first, check.second)]
        found: Amounts = np.minimum(sum(np.minimum.reduce(rooms) for rooms in ways), HEADROOM_MAX)
        return found
    return np.where(check.mask, HEADROOM_MAX, 0)


def headroom_bound(state: State, fit: Feasibility) -> int:
    """Return an upper bound of the fleet's headroom, including sharing providers: 0..HEADROOM_MAX."""
    least = HEADROOM_MAX
    for check in fit.checks:
        if isinstance(check, AmountCheck):
            free = state.inventory(check.class_id).free.view
            least = min(least, int(np.clip(free // check.amount, 0, HEADROOM_MAX).sum()))
    return least


def _count_amount(state: State, check: AmountCheck) -> Amounts:
    """Sum the headroom of all providers of a tree: an instance takes the class from one of them."""
    columns = state.inventory(check.class_id)
    host_of, _ = state.host_trees()
    rows = np.flatnonzero((host_of >= 0) & (columns.total.view > 0))
    fits = np.clip(columns.free.view[rows] // check.amount, 0, HEADROOM_MAX)
    if not columns.plain_units:
        fits *= columns.unit_mask(check.amount)[rows]
    found: Amounts = np.zeros(len(state.hosts), dtype=np.int64)
    np.add.at(found, host_of[rows], fits)
    return np.minimum(found, HEADROOM_MAX)


def _count_groups(state: State, family: GroupCheck) -> Amounts:
    found: Amounts = np.zeros(len(state.hosts), dtype=np.int64)
    if len(family.rows) == 0:
        return found
    fits: Amounts = np.full(len(family.rows), HEADROOM_MAX, dtype=np.int64)
    for class_id, amount in family.amounts:
        np.minimum(fits, np.maximum(state.inventory(class_id).free.view[family.rows] // amount, 0), out=fits)
    if family.is_isolated and family.group_count > 1:
        ends = [*family.starts[1:].tolist(), len(fits)]
        for host, start, end in zip(family.hosts.tolist(), family.starts.tolist(), ends, strict=True):
            found[host] = _count_rounds(fits[start:end].tolist(), family.group_count)
        return found
    found[family.hosts] = np.add.reduceat(fits, family.starts) // family.group_count
    return np.minimum(found, HEADROOM_MAX)


def _count_rounds(fits: list[int], group_count: int) -> int:
    """Count the rounds in which the first ``group_count`` providers with room each serve one group.

    This is first fit; the best choice of providers could serve more.
    """
    rounds = 0
    while True:
        chosen = [at for at, left in enumerate(fits) if left][:group_count]
        if len(chosen) < group_count:
            return rounds
        # The same providers stay first until one of them is full.
        times = min(fits[at] for at in chosen)
        rounds += times
        for at in chosen:
            fits[at] -= times
