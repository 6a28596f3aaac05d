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


class ComputeServiceUnavailable(errors.Unavailable):
    """The compute service of a host does not answer."""

    def __init__(self, *, host: str) -> None:
        self.host = host
        super().__init__(f"Compute service of {host} is unavailable at this time.")


class UnableToMigrateToSelf(errors.BadRequest):
    """An instance is to go to the host it is on."""

    def __init__(self, *, instance_id: str, host: str) -> None:
        self.instance_id, self.host = instance_id, host
        super().__init__(f"Unable to migrate instance ({instance_id}) to current host ({host}).")


class MigrationPreCheckError(errors.BadRequest):
    """A host cannot take a running instance."""

    def __init__(self, *, reason: str) -> None:
        self.reason = reason
        super().__init__(f"Migration pre-check error: {reason}")
