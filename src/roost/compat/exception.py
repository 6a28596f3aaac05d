"""Nova's scheduling errors, with their names and texts, as subclasses of Roost's."""

from typing import Any

from roost import errors

NoValidHost = errors.NoValidHost
ComputeHostMetricNotFound = errors.ComputeHostMetricNotFound
MaxRetriesExceeded = errors.MaxRetriesExceeded


class SchedulerHostFilterNotFound(errors.BadSettings):
    """An enabled filter does not exist."""

    def __init__(self, *, filter_name: str) -> None:
        super().__init__("filter_scheduler.enabled_filters", f"Scheduler Host Filter {filter_name} could not be found.")


class UnsupportedPolicyException(errors.BadRequest):
    """The rule for the policy of a server group is not enabled."""

    def __init__(self, *, reason: str) -> None:
        super().__init__(f"ServerGroup policy is not supported: {reason}")


class ValidationError(errors.BadRequest):
    """An extra spec is unknown, or its value is invalid."""


class ComputeServiceUnavailable(errors.Unavailable):
    """The compute service of a host does not answer."""

    def __init__(self, *, host: str) -> None:
        self.host = host
        super().__init__(f"Compute service of {host} is unavailable at this time.")


class UnableToMigrateToSelf(errors.BadRequest):
    """The target of a migration is the current host."""

    def __init__(self, *, instance_id: str, host: str) -> None:
        self.instance_id, self.host = instance_id, host
        super().__init__(f"Unable to migrate instance ({instance_id}) to current host ({host}).")


class MigrationPreCheckError(errors.BadRequest):
    """A host cannot receive a running instance."""

    def __init__(self, *, reason: str) -> None:
        self.reason = reason
        super().__init__(f"Migration pre-check error: {reason}")


class NovaException(Exception):
    """Base of errors of plug-ins; ``msg_fmt`` is formatted with the keywords."""

    msg_fmt = "An unknown exception occurred."
    code = 500

    def __init__(self, message: object = None, **kwargs: Any) -> None:
        self.kwargs = kwargs
        super().__init__(self.msg_fmt % kwargs if message is None else message)

    def format_message(self) -> str:
        """Return the message."""
        return str(self)


class NotFound(NovaException):
    """A resource does not exist."""

    msg_fmt = "Resource could not be found."
    code = 404


class Invalid(NovaException):
    """A parameter is invalid."""

    msg_fmt = "Bad Request - Invalid Parameters"
    code = 400


class AggregateNotFound(NotFound):
    """The aggregate does not exist."""

    msg_fmt = "Aggregate %(aggregate_id)s could not be found."


class CellMappingNotFound(NotFound):
    """The cell does not exist."""

    msg_fmt = "Cell %(uuid)s has no mapping."


class ComputeHostNotFound(NotFound):
    """The host does not exist."""

    msg_fmt = "Compute host %(host)s could not be found."


class InstanceNotFound(NotFound):
    """The instance does not exist."""

    msg_fmt = "Instance %(instance_id)s could not be found."


class InstanceGroupNotFound(NotFound):
    """The server group does not exist."""

    msg_fmt = "Instance group %(group_uuid)s could not be found."


class ServiceNotFound(NotFound):
    """The service does not exist."""

    msg_fmt = "Service %(service_id)s could not be found."


class InvalidName(Invalid):
    """The name of an architecture, a hypervisor or a virtual machine mode is unknown."""

    msg_fmt = "%(what)s '%(name)s' is not recognised"


class ReshapeNeeded(errors.ReshapeNeeded):
    """A driver requests a reshape; the inventories to move are optional."""

    def __init__(self, node: str = "", moved: str = "inventories") -> None:
        super().__init__(node, moved)


class ReshapeFailed(errors.ReshapeFailed):
    """A reshape failed."""

    def __init__(self, *, error: object, node: str = "") -> None:
        super().__init__(node, str(error))
