"""soft_anti_affinity: members of the server group, avoided."""

from typing import Annotated, ClassVar

import msgspec
import numpy as np

from roost.engine.columns.types import Scores
from roost.scheduler.framework.host_view import HostView
from roost.scheduler.framework.spec import Spec


class SoftAntiAffinityOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of ``soft_anti_affinity``."""

    soft_anti_affinity_weight_multiplier: Annotated[
        float, msgspec.Meta(ge=0.0, description="Weight of members of a soft-anti-affinity group.")
    ] = 1.0


class SoftAntiAffinity:
    """Weigh hosts by members of the server group: fewest members first.

    Source:
        nova/scheduler/weights/affinity.py.
    """

    name: ClassVar = "soft_anti_affinity"
    nova_name: ClassVar = "ServerGroupSoftAntiAffinityWeigher"
    section: ClassVar = "filter_scheduler"
    options: ClassVar = SoftAntiAffinityOptions
    aggregate_key: ClassVar = "soft_anti_affinity_weight_multiplier"
    minval: ClassVar[float | None] = None
    maxval: ClassVar[float | None] = None
    sign: ClassVar = 1.0

    def __init__(self, options: SoftAntiAffinityOptions) -> None:
        self._options = options

    @property
    def multiplier(self) -> float:
        """The multiplier of the settings."""
        return self._options.soft_anti_affinity_weight_multiplier

    def concerns(self, spec: Spec) -> bool:
        """Return whether the server group has this policy."""
        return spec.policy == "soft-anti-affinity"

    def raw(self, hosts: HostView, spec: Spec) -> Scores:
        """Return the negated number of members."""
        assert spec.group is not None
        negated: Scores = 0.0 - hosts.members(spec.group).astype(np.float64)  # never -0
        return negated
