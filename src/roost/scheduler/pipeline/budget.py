"""How long one decision may search."""

import math
from collections.abc import Iterator
from contextlib import contextmanager

from roost.engine.columns.state import State, unbounded
from roost.errors import OverBudget
from roost.ports import Clock

# Seconds more for each further instance of one request, and for all of them at most.
_EACH_S = 0.001
_MORE_MAX_S = 20.0
# Each decision of a group may search for so long, although the slice of the group is used up.
_SLICE_MIN_S = 0.001


@contextmanager
def search_budget(
    state: State, clock: Clock, *, seconds: float, count: int, slice_end_s: float = math.inf
) -> Iterator[None]:
    """Bound the search on a state for one decision; where a budget holds already, that one counts.

    Args:
        seconds: for the first instance.
        count: instances.
        slice_end_s: when others are to have a turn, by ``clock.elapsed_s``; what was searched until then is kept.

    Raises:
        OverBudget: by ``state.check``, when the budget is used up.
    """
    if state.check is not unbounded:
        yield
        return
    more_s = min(_EACH_S * (count - 1), _MORE_MAX_S)
    allowed_s, now_s = seconds + more_s, clock.elapsed_s()
    # What was placed is not kept when others have their turn, so a slice has room for all instances.
    end_s = min(now_s + allowed_s, max(slice_end_s, now_s + _SLICE_MIN_S) + more_s)

    def check() -> None:
        if clock.elapsed_s() > end_s:
            raise OverBudget("the search for hosts", seconds=allowed_s, limit="scheduler.search_budget_s")

    state.check = check
    try:
        yield
    finally:
        state.check = unbounded
