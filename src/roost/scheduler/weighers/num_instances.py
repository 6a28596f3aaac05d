"""num_instances: number of instances."""

from typing import Annotated, ClassVar

import msgspec

from roost.engine.columns.types import Scores
from roost.scheduler.framework.host_view import HostView
from roost.scheduler.framework.spec import Spec


class NumInstancesOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of ``num_instances``."""

    num_instances_weight_multiplier: Annotated[
        float, msgspec.Meta(description="Weight of the number of instances; negative spreads.")
    ] = 0.0


class NumInstances:
    """Weigh hosts by their instances: positive packs, negative spreads, 0 is off.

    Source:
        nova/scheduler/weights/num_instances.py.
    """

    name: ClassVar = "num_instances"
    nova_name: ClassVar = "NumInstancesWeigher"
    section: ClassVar = "filter_scheduler"
    options: ClassVar = NumInstancesOptions
    aggregate_key: ClassVar = "num_instances_weight_multiplier"
    minval: ClassVar[float | None] = None
    maxval: ClassVar[float | None] = None
    sign: ClassVar = 1.0

    def __init__(self, options: NumInstancesOptions) -> None:
        self._options = options

    @property
    def multiplier(self) -> float:
        """The multiplier of the settings."""
        return self._options.num_instances_weight_multiplier

    def concerns(self, spec: Spec) -> bool:
        """Return True: the weigher applies to every request."""
        return True

    def raw(self, hosts: HostView, spec: Spec) -> Scores:
        """Return the number of instances."""
        return hosts.column("num_instances")
