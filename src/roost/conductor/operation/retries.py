"""Whether building may be tried once more, and what is said when it may not."""

from roost.errors import BuildFailed, MaxRetriesExceeded
from roost.model.evidence.decision import Pick
from roost.model.request import Request
from roost.model.work.builds import Attempt


def first_attempt(request: Request) -> int:
    """Return the number of the first attempt: 1, or the one that an earlier request for the same came to."""
    return 1 if request.retry is None else max(1, request.retry.attempts)


def check_attempt(
    request: Request, *, instance_uuid: str, attempt: int, attempts_max: int, error: BuildFailed | None
) -> None:
    """Refuse an attempt that is not allowed.

    Args:
        request: that asked for the instance; exactly one forced host, or node, allows one attempt.
        attempt: its number, >= 1.
        attempts_max: as the settings say, >= 1; 1: never try again.
        error: by which the one before it failed; None: there was none for this request.

    Raises:
        BuildFailed: the same error, where nothing is to be tried again at all.
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
    """Return the error of an instance that no alternate is left for."""
    return MaxRetriesExceeded(
        f"Exhausted all hosts available for retrying build failures for instance {instance_uuid}."
    )


def attempt_record(pick: Pick, *, problem: str = "", is_claimed: bool = True) -> Attempt:
    """Return a host that an instance was to be built on, as its story tells it.

    Args:
        problem: what went wrong there, or why it was not claimed; empty: the instance was built.
    """
    return Attempt(
        host=pick.host, node=pick.node, cell=pick.cell, claim="claimed" if is_claimed else "refused", problem=problem
    )
