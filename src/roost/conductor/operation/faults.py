"""What went wrong, and the end of an instance that it went wrong with."""

from collections.abc import Sequence

from roost.errors import RoostError
from roost.model.work.builds import Attempt, Outcome
from roost.observe import log


def describe_error(error: Exception) -> str:
    """Say what went wrong; of an error that nobody raised on purpose its kind, too."""
    if isinstance(error, RoostError) and str(error):
        return str(error)
    return f"{type(error).__name__}: {error}".removesuffix(": ")


def log_error(error: Exception, *, decision_uuid: str) -> str:
    """Say the same, and let the log have where an error came from that nobody raised on purpose.

    Args:
        decision_uuid: what the log knows it by.
    """
    if not isinstance(error, RoostError):
        log.fault(decision_uuid, error)
    return describe_error(error)


def failed_outcome(
    instance_uuid: str, decision_uuid: str, *, fault: str, attempts: Sequence[Attempt] = (), unreleased: str = ""
) -> Outcome:
    """Return the end of an instance that could not be built; see ``Outcome``."""
    return Outcome(
        instance_uuid=instance_uuid,
        status="ERROR",
        decision_uuid=decision_uuid,
        fault=fault,
        attempts=list(attempts),
        unreleased=unreleased,
    )
