"""ram: free memory."""

from typing import Annotated, ClassVar

import msgspec

from roost.engine.columns.types import Scores
from roost.scheduler.framework.host_view import HostView
from roost.scheduler.framework.spec import Spec


class RamOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of ``ram``."""

    ram_weight_multiplier: Annotated[float, msgspec.Meta(description="Weight of free memory; negative packs.")] = 1.0


class Ram:
    """Weigh hosts by free memory, in MiB: most free first, which spreads instances.

    Source:
        nova/scheduler/weights/ram.py.
    """

    name: ClassVar = "ram"
    nova_name: ClassVar = "RAMWeigher"
    section: ClassVar = "filter_scheduler"
    options: ClassVar = RamOptions
    aggregate_key: ClassVar = "ram_weight_multiplier"
    minval: ClassVar[float | None] = 0.0
    maxval: ClassVar[float | None] = None
    sign: ClassVar = 1.0

    def __init__(self, options: RamOptions) -> None:
        self._options = options

    @property
    def multiplier(self) -> float:
        """The multiplier of the settings."""
        return self._options.ram_weight_multiplier

    def concerns(self, spec: Spec) -> bool:
        """Return True: the weigher applies to every request."""
        return True

    def raw(self, hosts: HostView, spec: Spec) -> Scores:
        """Return free memory, MiB."""
        return hosts.column("free_ram_mb")
