"""Limits of build attempts, and their errors."""

from roost.errors import BuildFailed, MaxRetriesExceeded
from roost.model.evidence.decision import Pick
from roost.model.request import Request
from roost.model.work.builds import Attempt


def first_attempt(request: Request) -> int:
    """Return the number of the first attempt: the number in a repeated request, otherwise 1."""
    return 1 if request.retry is None else max(1, request.retry.attempts)


def check_attempt(
    request: Request, *, instance_uuid: str, attempt: int, attempts_max: int, error: BuildFailed | None
) -> None:
    """Refuse an attempt beyond the limit.

    Args:
        request: of the instance; with exactly one forced host or node, only one attempt is allowed.
        attempt: its number, >= 1.
        attempts_max: >= 1; 1: no retry.
        error: of the previous attempt; None: this is the first one of the request.

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
        )


def no_alternate_error(instance_uuid: str) -> MaxRetriesExceeded:
    """Return the error of an instance without another alternate."""
    return MaxRetriesExceeded(
        f"Exhausted all hosts available for retrying build failures for instance {instance_uuid}."
    )


def attempt_record(pick: Pick, *, problem: str = "", is_claimed: bool = True) -> Attempt:
    """Return the record of an attempt.

    Args:
        problem: why the build or the claim failed; empty: the instance was built.
    """
    return Attempt(
        host=pick.host, node=pick.node, cell=pick.cell, claim="claimed" if is_claimed else "refused", problem=problem
    )
