"""Texts of errors, and outcomes of failed builds."""

from collections.abc import Sequence

from roost.errors import RoostError
from roost.model.work.builds import Attempt, Outcome
from roost.observe import log


def describe_error(error: Exception) -> str:
    """Return the text of an error, with its class if it is unexpected."""
    if isinstance(error, RoostError) and str(error):
        return str(error)
    return f"{type(error).__name__}: {error}".removesuffix(": ")


def log_error(error: Exception, *, decision_uuid: str) -> str:
    """Return the text of an error; log an unexpected one with its traceback.

    Args:
        decision_uuid: identifies the error in the log.
    """
    if not isinstance(error, RoostError):
        log.fault(decision_uuid, error)
    return describe_error(error)


def error_outcome(
    instance_uuid: str, decision_uuid: str, *, fault: str, attempts: Sequence[Attempt] = (), unreleased: str = ""
) -> Outcome:
    """Return the outcome of a failed build; see ``Outcome``."""
    return Outcome(
        instance_uuid=instance_uuid,
        status="ERROR",
        decision_uuid=decision_uuid,
        fault=fault,
        attempts=list(attempts),
        unreleased=unreleased,
    )
