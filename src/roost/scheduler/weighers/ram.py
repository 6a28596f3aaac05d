"""ram: free memory."""

from typing import Annotated

import msgspec

from roost.engine.columns.types import Scores
from roost.scheduler.framework.base_rule import BaseWeigher
from roost.scheduler.framework.host_view import HostView
from roost.scheduler.framework.spec import Spec


class RamOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of ``ram``."""

    ram_weight_multiplier: Annotated[
        float, msgspec.Meta(description="Weight of free memory; a negative value packs instances.")
    ] = 1.0


class Ram(BaseWeigher[RamOptions]):
    """Weigh hosts by free memory, in MiB: most free first, which spreads instances.

    Source:
        nova/scheduler/weights/ram.py.
    """

    nova_name = "RAMWeigher"
    options = RamOptions
    multiplier_option = "ram_weight_multiplier"
    minval = 0.0

    def raw(self, hosts: HostView, spec: Spec) -> Scores:
        """Return free memory, MiB."""
        return hosts.column("free_ram_mb")
