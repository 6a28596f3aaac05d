"""Nova's errors of scheduling, by their names and texts, in our tree."""

from roost import errors

NoValidHost = errors.NoValidHost
ComputeHostMetricNotFound = errors.ComputeHostMetricNotFound
MaxRetriesExceeded = errors.MaxRetriesExceeded


class SchedulerHostFilterNotFound(errors.BadSettings):
    """Filters are enabled that do not exist."""

    def __init__(self, *, filter_name: str) -> None:
        super().__init__("filter_scheduler.enabled_filters", f"Scheduler Host Filter {filter_name} could not be found.")


class UnsupportedPolicyException(errors.BadRequest):
    """The rule for the policy of a server group is not enabled."""

    def __init__(self, *, reason: str) -> None:
        super().__init__(f"ServerGroup policy is not supported: {reason}")


class ValidationError(errors.BadRequest):
    """An extra spec does not exist, or cannot have its value."""
