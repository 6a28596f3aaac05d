"""cpu: free virtual CPUs."""

from typing import Annotated, ClassVar

import msgspec

from roost.engine.columns.types import Scores
from roost.scheduler.framework.host_view import HostView
from roost.scheduler.framework.spec import Spec


class CpuOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of ``cpu``."""

    cpu_weight_multiplier: Annotated[
        float, msgspec.Meta(description="Weight of free virtual CPUs; negative packs.")
    ] = 1.0


class Cpu:
    """Weigh hosts by free virtual CPUs, including overcommit: most free first.

    Source:
        nova/scheduler/weights/cpu.py.
    """

    name: ClassVar = "cpu"
    nova_name: ClassVar = "CPUWeigher"
    section: ClassVar = "filter_scheduler"
    options: ClassVar = CpuOptions
    aggregate_key: ClassVar = "cpu_weight_multiplier"
    minval: ClassVar[float | None] = 0.0
    maxval: ClassVar[float | None] = None
    sign: ClassVar = 1.0

    def __init__(self, options: CpuOptions) -> None:
        self._options = options

    @property
    def multiplier(self) -> float:
        """The multiplier of the settings."""
        return self._options.cpu_weight_multiplier

    def concerns(self, spec: Spec) -> bool:
        """Return True: the weigher applies to every request."""
        return True

    def raw(self, hosts: HostView, spec: Spec) -> Scores:
        """Return free virtual CPUs."""
        return hosts.column("free_vcpus")
