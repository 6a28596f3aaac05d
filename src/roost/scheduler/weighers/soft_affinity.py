"""soft_affinity: members of the server group."""

from typing import Annotated, ClassVar

import msgspec
import numpy as np

from roost.engine.columns.types import Scores
from roost.scheduler.framework.host_view import HostView
from roost.scheduler.framework.spec import Spec


class SoftAffinityOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of ``soft_affinity``."""

    soft_affinity_weight_multiplier: Annotated[
        float, msgspec.Meta(ge=0.0, description="Weight of members of a soft-affinity group.")
    ] = 1.0


class SoftAffinity:
    """Weigh hosts by members of the server group: most members first.

    Source:
        nova/scheduler/weights/affinity.py.
    """

    name: ClassVar = "soft_affinity"
    nova_name: ClassVar = "ServerGroupSoftAffinityWeigher"
    section: ClassVar = "filter_scheduler"
    options: ClassVar = SoftAffinityOptions
    aggregate_key: ClassVar = "soft_affinity_weight_multiplier"
    minval: ClassVar[float | None] = None
    maxval: ClassVar[float | None] = None
    sign: ClassVar = 1.0

    def __init__(self, options: SoftAffinityOptions) -> None:
        self._options = options

    @property
    def multiplier(self) -> float:
        """The multiplier of the settings."""
        return self._options.soft_affinity_weight_multiplier

    def concerns(self, spec: Spec) -> bool:
        """Return whether the server group has this policy."""
        return spec.policy == "soft-affinity"

    def raw(self, hosts: HostView, spec: Spec) -> Scores:
        """Return the number of members."""
        assert spec.group is not None
        return hosts.members(spec.group).astype(np.float64)
