"""num_instances: number of instances."""

from typing import Annotated

import msgspec

from roost.engine.columns.types import Scores
from roost.scheduler.framework.base_rule import BaseWeigher
from roost.scheduler.framework.host_view import HostView
from roost.scheduler.framework.spec import Spec


class NumInstancesOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of ``num_instances``."""

    num_instances_weight_multiplier: Annotated[
        float, msgspec.Meta(description="Weight of the number of instances; a negative value spreads instances.")
    ] = 0.0


class NumInstances(BaseWeigher[NumInstancesOptions]):
    """Weigh hosts by their instances: positive packs, negative spreads, 0 is off.

    Source:
        nova/scheduler/weights/num_instances.py.
    """

    nova_name = "NumInstancesWeigher"
    options = NumInstancesOptions
    multiplier_option = "num_instances_weight_multiplier"

    def raw(self, hosts: HostView, spec: Spec) -> Scores:
        """Return the number of instances."""
        return hosts.column("num_instances")
