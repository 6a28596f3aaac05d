"""The time budget of one decision's search."""

import math
from collections.abc import Iterator
from contextlib import contextmanager

from roost.engine.columns.state import State, allow_any_work
from roost.errors import OverBudget
from roost.ports import Clock

# Seconds added per further instance of a request, and the upper bound of their sum.
_PER_INSTANCE_S = 0.001
_EXTRA_MAX_S = 20.0
# Minimum seconds for each decision of one ``Scheduler.work`` call, even after the end of its time slice.
_SLICE_MIN_S = 0.001


@contextmanager
def search_budget(
    state: State, clock: Clock, *, seconds: float, count: int, slice_end_s: float = math.inf
) -> Iterator[None]:
    """Limit the search on a state for one decision; an outer budget takes precedence.

    Args:
        seconds: for the first instance.
        count: number of instances.
        slice_end_s: end of the time slice, by ``clock.elapsed_s``; then other requests get their turn. Search results
            stay cached for the next slice.

    Raises:
        OverBudget: raised by ``state.check`` after the budget is used up.
    """
    if state.check is not allow_any_work:
        yield
        return
    extra_s = min(_PER_INSTANCE_S * (count - 1), _EXTRA_MAX_S)
    allowed_s, now_s = seconds + extra_s, clock.elapsed_s()
    # An interrupted decision starts again with its first instance, so further instances lengthen the slice.
    end_s = min(now_s + allowed_s, max(slice_end_s, now_s + _SLICE_MIN_S) + extra_s)

    def check() -> None:
        if clock.elapsed_s() > end_s:
            raise OverBudget("the search for hosts", seconds=allowed_s, limit="scheduler.search_budget_s")

    state.check = check
    try:
        yield
    finally:
        state.check = allow_any_work


@contextmanager
def lift_search_limit(state: State) -> Iterator[None]:
    """Lift the time limit of searches on a state, for results that must not depend on the speed of the machine."""
    before, state.check = state.check, _allow_any_duration
    try:
        yield
    finally:
        state.check = before


def _allow_any_duration() -> None:
    """Allow the search to continue; unlike ``allow_any_work``, a budget does not replace it."""
