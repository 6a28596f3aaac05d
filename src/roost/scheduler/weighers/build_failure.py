"""build_failure: consecutive failed builds."""

from typing import Annotated

import msgspec

from roost.engine.columns.types import Scores
from roost.scheduler.framework.base_rule import BaseWeigher
from roost.scheduler.framework.host_view import HostView
from roost.scheduler.framework.spec import Spec


class BuildFailureOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of ``build_failure``."""

    build_failure_weight_multiplier: Annotated[
        float,
        msgspec.Meta(description="Weight of failed builds, negated: a positive value avoids hosts with failures."),
    ] = 1000000.0


class BuildFailure(BaseWeigher[BuildFailureOptions]):
    """Weigh hosts by their consecutive failed builds; the configured multiplier counts negatively.

    Source:
        nova/scheduler/weights/compute.py.
    """

    nova_name = "BuildFailureWeigher"
    options = BuildFailureOptions
    multiplier_option = "build_failure_weight_multiplier"
    sign = -1.0

    def raw(self, hosts: HostView, spec: Spec) -> Scores:
        """Return the number of failed builds."""
        return hosts.column("failed_builds")
