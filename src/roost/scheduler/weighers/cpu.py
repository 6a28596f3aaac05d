"""cpu: free virtual CPUs."""

from typing import Annotated

import msgspec

from roost.engine.columns.types import Scores
from roost.scheduler.framework.base_rule import BaseWeigher
from roost.scheduler.framework.host_view import HostView
from roost.scheduler.framework.spec import Spec


class CpuOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of ``cpu``."""

    cpu_weight_multiplier: Annotated[
        float, msgspec.Meta(description="Weight of free virtual CPUs; a negative value packs instances.")
    ] = 1.0


class Cpu(BaseWeigher[CpuOptions]):
    """Weigh hosts by free virtual CPUs, including overcommit: most free first.

    Source:
        nova/scheduler/weights/cpu.py.
    """

    nova_name = "CPUWeigher"
    options = CpuOptions
    multiplier_option = "cpu_weight_multiplier"
    minval = 0.0

    def raw(self, hosts: HostView, spec: Spec) -> Scores:
        """Return free virtual CPUs."""
        return hosts.column("free_vcpus")
