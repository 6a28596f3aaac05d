"""hypervisor_version: version of the hypervisor."""

from typing import Annotated, ClassVar

import msgspec

from roost.engine.columns.types import Scores
from roost.scheduler.framework.host_view import HostView
from roost.scheduler.framework.spec import Spec


class HypervisorVersionOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of ``hypervisor_version``."""

    hypervisor_version_weight_multiplier: Annotated[
        float, msgspec.Meta(description="Weight of the hypervisor's version; negative prefers old ones.")
    ] = 1.0


class HypervisorVersion:
    """Weigh hosts by hypervisor version: newest first.

    Source:
        nova/scheduler/weights/hypervisor_version.py.
    """

    name: ClassVar = "hypervisor_version"
    nova_name: ClassVar = "HypervisorVersionWeigher"
    section: ClassVar = "filter_scheduler"
    options: ClassVar = HypervisorVersionOptions
    aggregate_key: ClassVar = "hypervisor_version_weight_multiplier"
    minval: ClassVar[float | None] = None
    maxval: ClassVar[float | None] = None
    sign: ClassVar = 1.0

    def __init__(self, options: HypervisorVersionOptions) -> None:
        self._options = options

    @property
    def multiplier(self) -> float:
        """The multiplier of the settings."""
        return self._options.hypervisor_version_weight_multiplier

    def concerns(self, spec: Spec) -> bool:
        """Return True: the weigher applies to every request."""
        return True

    def raw(self, hosts: HostView, spec: Spec) -> Scores:
        """Return versions: 1002003 for 1.2.3, 0 if unknown."""
        return hosts.column("hypervisor_version")
