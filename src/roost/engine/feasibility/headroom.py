"""How many times in a row a host can hold a request, by counting what is free.

Counting is exact where it decides (``Feasibility.undecided``) and nothing is shared between trees: groups have
classes of their own then, so what one of them takes is never in the way of another.
"""

import numpy as np

from roost.engine.columns.state import State
from roost.engine.columns.types import Amounts
from roost.engine.feasibility.feasibility import AmountCheck, Check, EitherCheck, Feasibility, GroupCheck

# Stands for no bound; sums of it over all hosts are far from overflow.
HEADROOM_MAX = 2**40


def count_headroom(state: State, fit: Feasibility) -> list[Amounts]:
    """Return how often each check, if it were alone, lets each host hold the request.

    Returns:
        int64, shape (hosts,), 0..HEADROOM_MAX, one a check, in the order of ``fit.checks``.
    """
    return [_count_check(state, check) for check in fit.checks]


def _count_check(state: State, check: Check) -> Amounts:
    if isinstance(check, AmountCheck):
        return _count_amount(state, check)
    if isinstance(check, GroupCheck):
        return _count_groups(state, check)
    if isinstance(check, EitherCheck):
        # What one way takes is never in the way of the other: they differ in the classes that they ask.
        ways = [[_count_check(state, each) for each in checks] for checks in (check.first, check.second)]
        found: Amounts = np.minimum(sum(np.minimum.reduce(rooms) for rooms in ways), HEADROOM_MAX)
        return found
    return np.where(check.mask, HEADROOM_MAX, 0)


def headroom_bound(state: State, fit: Feasibility) -> int:
    """Return a number that the whole fleet can never hold more of, whoever shares with whom: 0..HEADROOM_MAX."""
    least = HEADROOM_MAX
    for check in fit.checks:
        if isinstance(check, AmountCheck):
            free = state.inventory(check.class_id).free.view
            least = min(least, int(np.clip(free // check.amount, 0, HEADROOM_MAX).sum()))
    return least


def _count_amount(state: State, check: AmountCheck) -> Amounts:
    """Count what each provider of a tree has room for: an instance takes the class from one of them."""
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


def _count_rounds(fits: list[int], wanted: int) -> int:
    """Return how often the first ``wanted`` providers that still can each serve one more.

    That is fewer than the best choice of providers would serve, and what first fit does.
    """
    rounds = 0
    while True:
        chosen = [at for at, left in enumerate(fits) if left][:wanted]
        if len(chosen) < wanted:
            return rounds
        # The same providers come first until one of them is full.
        times = min(fits[at] for at in chosen)
        rounds += times
        for at in chosen:
            fits[at] -= times
