"""soft_anti_affinity: few members of the server group."""

from typing import Annotated

import msgspec
import numpy as np

from roost.engine.columns.types import Scores
from roost.scheduler.framework.base_rule import BaseWeigher
from roost.scheduler.framework.host_view import HostView
from roost.scheduler.framework.spec import Spec


class SoftAntiAffinityOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of ``soft_anti_affinity``."""

    soft_anti_affinity_weight_multiplier: Annotated[
        float, msgspec.Meta(ge=0.0, description="Weight of members of a soft-anti-affinity group.")
    ] = 1.0


class SoftAntiAffinity(BaseWeigher[SoftAntiAffinityOptions]):
    """Weigh hosts by members of the server group: fewest members first.

    Source:
        nova/scheduler/weights/affinity.py.
    """

    nova_name = "ServerGroupSoftAntiAffinityWeigher"
    options = SoftAntiAffinityOptions
    multiplier_option = "soft_anti_affinity_weight_multiplier"

    def concerns(self, spec: Spec) -> bool:
        """Return whether the request has a server group of policy ``soft-anti-affinity``."""
        return spec.policy == "soft-anti-affinity"

    def raw(self, hosts: HostView, spec: Spec) -> Scores:
        """Return the negated number of members."""
        assert spec.group is not None
        negated: Scores = 0.0 - hosts.members(spec.group).astype(np.float64)  # never -0
        return negated
