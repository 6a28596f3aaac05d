"""Nova's errors of scheduling, by their names and texts, in our tree."""

from roost import errors

NoValidHost = errors.NoValidHost


class MaxRetriesExceeded(NoValidHost):
    """Every attempt that was allowed has failed."""


class SchedulerHostFilterNotFound(errors.BadSettings):
    """Filters are enabled that do not exist."""

    def __init__(self, *, filter_name: str) -> None:
        super().__init__("filter_scheduler.enabled_filters", f"Scheduler Host Filter {filter_name} could not be found.")


class ComputeHostMetricNotFound(errors.RoostError):
    """A host lacks a metric that a weigher requires."""

    def __init__(self, *, host: str, node: str, name: str) -> None:
        self.host, self.node, self.name = host, node, name
        super().__init__(f"Metric {name} could not be found on the compute host node {host}.{node}.")


class UnsupportedPolicyException(errors.BadRequest):
    """The rule for the policy of a server group is not enabled."""

    def __init__(self, *, reason: str) -> None:
        super().__init__(f"ServerGroup policy is not supported: {reason}")
