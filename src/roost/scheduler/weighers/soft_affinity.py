"""soft_affinity: members of the server group."""

from typing import Annotated

import msgspec
import numpy as np

from roost.engine.columns.types import Scores
from roost.scheduler.framework.base_rule import BaseWeigher
from roost.scheduler.framework.host_view import HostView
from roost.scheduler.framework.spec import Spec


class SoftAffinityOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of ``soft_affinity``."""

    soft_affinity_weight_multiplier: Annotated[
        float, msgspec.Meta(ge=0.0, description="Weight of members of a soft-affinity group.")
    ] = 1.0


class SoftAffinity(BaseWeigher[SoftAffinityOptions]):
    """Weigh hosts by members of the server group: most members first.

    Source:
        nova/scheduler/weights/affinity.py.
    """

    nova_name = "ServerGroupSoftAffinityWeigher"
    options = SoftAffinityOptions
    multiplier_option = "soft_affinity_weight_multiplier"

    def concerns(self, spec: Spec) -> bool:
        """Return whether the request has a server group of policy ``soft-affinity``."""
        return spec.policy == "soft-affinity"

    def raw(self, hosts: HostView, spec: Spec) -> Scores:
        """Return the number of members."""
        assert spec.group is not None
        return hosts.members(spec.group).astype(np.float64)
