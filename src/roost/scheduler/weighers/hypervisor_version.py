"""hypervisor_version: version of the hypervisor."""

from typing import Annotated

import msgspec

from roost.engine.columns.types import Scores
from roost.scheduler.framework.base_rule import BaseWeigher
from roost.scheduler.framework.host_view import HostView
from roost.scheduler.framework.spec import Spec


class HypervisorVersionOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of ``hypervisor_version``."""

    hypervisor_version_weight_multiplier: Annotated[
        float, msgspec.Meta(description="Weight of the hypervisor's version; negative prefers old ones.")
    ] = 1.0


class HypervisorVersion(BaseWeigher[HypervisorVersionOptions]):
    """Weigh hosts by hypervisor version: newest first.

    Source:
        nova/scheduler/weights/hypervisor_version.py.
    """

    nova_name = "HypervisorVersionWeigher"
    options = HypervisorVersionOptions
    multiplier_option = "hypervisor_version_weight_multiplier"

    def raw(self, hosts: HostView, spec: Spec) -> Scores:
        """Return versions: 1002003 for 1.2.3, 0 if unknown."""
        return hosts.column("hypervisor_version")
