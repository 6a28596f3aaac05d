"""The check index of a dry run: a request with it is refused if its instances would be placed elsewhere by now."""

import hashlib
from collections.abc import Sequence
from functools import partial

from roost.api.v1.call import Call
from roost.api.v1.wire.decode_body import field_problem
from roost.errors import Conflict, OverBudget
from roost.model.evidence.decision import Decision, Pick
from roost.model.request import Request
from roost.placement.current import Current

_DIGITS = 16
_HOSTS_MAX = 3


def index_of(decision: Decision) -> str | None:
    """Return the check index of a dry run; None: the decision would be a refusal."""
    return f"{decision.position}-{_fingerprint(decision.picks)}" if decision.is_granted else None


def check_index(call: Call, request: Request, index: str) -> None:
    """Refuse a request that would be decided otherwise than in its dry run.

    The search happens on the columns themselves, and is withdrawn. So it takes the time of one decision.

    Raises:
        Problem: 400, the index is malformed, or the request is a move.
        Conflict: the decision would be another one, or the server uses a remote Placement.
        OverBudget: the search takes too long.
    """
    _, dash, expected = index.partition("-")
    if not dash or len(expected) != _DIGITS:
        raise field_problem("$.check_index", "must be the check_index of a dry run")
    if request.move is not None:
        raise field_problem("$.check_index", "is not supported for a move")
    if call.product.remote is not None:
        raise Conflict(
            "this server uses a remote Placement: check_index is not supported", problem_type="not-supported"
        )
    picks = _find_picks(call, request)
    if not picks:
        raise Conflict(
            "the fleet has changed since the dry run: no host fits now; repeat the dry run",
            problem_type="choice-changed",
        )
    if _fingerprint(picks) != expected:
        hosts = [*dict.fromkeys(pick.host for pick in picks)]
        more = len(hosts) - _HOSTS_MAX
        named = ", ".join(hosts[:_HOSTS_MAX]) + (f" and {more:,} more" if more > 0 else "")
        raise Conflict(
            f"the fleet has changed since the dry run: the choice would now be {named}; repeat the dry run",
            problem_type="choice-changed",
        )


def _find_picks(call: Call, request: Request) -> Sequence[Pick]:
    found: list[Pick] = []

    def find(_: Current) -> None:
        found.extend(call.product.scheduler.trial_picks(request, seed=0))

    budget_s = call.product.settings.scheduler.search_budget_s
    slow = partial(OverBudget, "the search for hosts", seconds=budget_s, limit="scheduler.search_budget_s")
    call.request.with_budget(budget_s, find, too_slow=slow)(call.current)
    return found


def _fingerprint(picks: Sequence[Pick]) -> str:
    text = "\0".join(f"{pick.host}/{pick.node}" for pick in picks)
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]
