"""Limits of build attempts, and their errors."""

from collections.abc import Sequence

from roost.errors import BuildFailed, MaxRetriesExceeded
from roost.model.evidence.decision import Pick
from roost.model.request import Request
from roost.model.work.builds import Attempt

_SHOWN_MAX = 5  # attempts in a fault
_PROBLEM_MAX = 200  # characters of the problem of one attempt in a fault


def first_attempt(request: Request) -> int:
    """Return the number of the first attempt: the number in a repeated request, otherwise 1."""
    return 1 if request.retry is None else max(1, request.retry.attempts)


def check_attempt(
    request: Request,
    *,
    instance_uuid: str,
    attempt: int,
    attempts_max: int,
    error: BuildFailed | None,
    attempts: Sequence[Attempt] = (),
) -> None:
    """Refuse an attempt beyond the limit.

    Args:
        request: of the instance; with exactly one forced host or node, only one attempt is allowed.
        attempt: its number, >= 1.
        attempts_max: >= 1; 1: no retry.
        error: of the previous attempt; None: this is the first one of the request.
        attempts: the failed ones, for the fault.

    Raises:
        BuildFailed: ``error`` itself, if no retry is allowed.
        MaxRetriesExceeded: all attempts are used up.
    """
    if attempts_max == 1 or len(request.force_hosts) == 1 or len(request.force_nodes) == 1:
        if error is not None:
            raise error
    elif attempt > attempts_max:
        raise MaxRetriesExceeded(
            f"Exceeded max scheduling attempts {attempts_max} for instance {instance_uuid}. Last exception: {error}"
            + (f". Attempts: {describe_attempts(attempts)}" if len(attempts) > 1 else "")
        )


def no_alternate_error(instance_uuid: str, attempts: Sequence[Attempt]) -> MaxRetriesExceeded:
    """Return the error of an instance without another alternate, with the problem of each host."""
    return MaxRetriesExceeded(
        f"Exhausted all hosts available for retrying build failures for instance {instance_uuid}. "
        f"{describe_attempts(attempts)}".rstrip()
    )


def describe_attempts(attempts: Sequence[Attempt]) -> str:
    """Return the problems of failed attempts, by host; the first ones are omitted if there are many.

    >>> one = Attempt(host="c1", node="c1", cell="", claim="claimed", problem="image not found")
    >>> describe_attempts([one])
    'host c1: image not found'
    >>> describe_attempts(6 * [one]).startswith('1 earlier; host c1: image not found; host c1: ')
    True
    """
    failed = [each for each in attempts if each.problem]
    parts = [f"host {each.host}: {_shorten(each.problem)}" for each in failed[-_SHOWN_MAX:]]
    earlier = len(failed) - len(parts)
    return "; ".join([f"{earlier:,} earlier", *parts] if earlier else parts)


def _shorten(problem: str) -> str:
    one_line = " ".join(problem.split())
    return one_line if len(one_line) <= _PROBLEM_MAX else f"{one_line[:_PROBLEM_MAX]}…"


def attempt_record(pick: Pick, *, problem: str = "", is_claimed: bool = True) -> Attempt:
    """Return the record of an attempt.

    Args:
        problem: why the build or the claim failed; empty: the instance was built.
    """
    return Attempt(
        host=pick.host, node=pick.node, cell=pick.cell, claim="claimed" if is_claimed else "refused", problem=problem
    )
