"""The results of acts: decisions, errors, and None for departures."""

from collections.abc import Callable, Sequence

from roost.errors import BadRequest, Conflict, NotFound, OverBudget, RoostError
from roost.model.evidence.decision import Decision
from roost.model.fleet import Departure, NamedRequest
from roost.model.request import Request

Results = list[Decision | RoostError | None]


def attempt(results: Results, at: int, act: Callable[[], object]) -> bool:
    """Execute one act; an error becomes its result and does not affect other acts."""
    try:
        act()
    except (BadRequest, Conflict, NotFound, OverBudget) as error:
        results[at] = error
        return False
    return True


def fail_open_acts(
    acts: Sequence[Request | NamedRequest | Departure], results: Results, *, error: RoostError, durable: int
) -> None:
    """Give an error to each act without a durable result.

    Args:
        acts, results: of one call.
        error: the result of these acts.
        durable: the departures before this position are durable.
    """
    for at, act in enumerate(acts):
        is_departed = isinstance(act, Departure) and at < durable and results[at] is None
        if not is_departed and not isinstance(results[at], Decision):
            results[at] = error
