"""build_failure: consecutive failed builds."""

from typing import Annotated, ClassVar

import msgspec

from roost.engine.columns.types import Scores
from roost.scheduler.framework.host_view import HostView
from roost.scheduler.framework.spec import Spec


class BuildFailureOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of ``build_failure``."""

    build_failure_weight_multiplier: Annotated[
        float,
        msgspec.Meta(description="Weight of failed builds, negated: a positive value avoids hosts with failures."),
    ] = 1000000.0


class BuildFailure:
    """Weigh hosts by their consecutive failed builds; the configured multiplier counts negatively.

    Source:
        nova/scheduler/weights/compute.py.
    """

    name: ClassVar = "build_failure"
    nova_name: ClassVar = "BuildFailureWeigher"
    section: ClassVar = "filter_scheduler"
    options: ClassVar = BuildFailureOptions
    aggregate_key: ClassVar = "build_failure_weight_multiplier"
    minval: ClassVar[float | None] = None
    maxval: ClassVar[float | None] = None
    sign: ClassVar = -1.0

    def __init__(self, options: BuildFailureOptions) -> None:
        self._options = options

    @property
    def multiplier(self) -> float:
        """The negated multiplier of the settings."""
        return -self._options.build_failure_weight_multiplier

    def concerns(self, spec: Spec) -> bool:
        """Return True: the weigher applies to every request."""
        return True

    def raw(self, hosts: HostView, spec: Spec) -> Scores:
        """Return the number of failed builds."""
        return hosts.column("failed_builds")
