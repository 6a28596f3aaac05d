"""disk: free disk."""

from typing import Annotated, ClassVar

import msgspec

from roost.engine.columns.types import Scores
from roost.scheduler.framework.host_view import HostView
from roost.scheduler.framework.spec import Spec


class DiskOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of ``disk``."""

    disk_weight_multiplier: Annotated[float, msgspec.Meta(description="Weight of free disk; negative packs.")] = 1.0


class Disk:
    """Weigh hosts by free disk, in MiB: most free first.

    Source:
        nova/scheduler/weights/disk.py.
    """

    name: ClassVar = "disk"
    nova_name: ClassVar = "DiskWeigher"
    section: ClassVar = "filter_scheduler"
    options: ClassVar = DiskOptions
    aggregate_key: ClassVar = "disk_weight_multiplier"
    minval: ClassVar[float | None] = 0.0
    maxval: ClassVar[float | None] = None
    sign: ClassVar = 1.0

    def __init__(self, options: DiskOptions) -> None:
        self._options = options

    @property
    def multiplier(self) -> float:
        """The multiplier of the settings."""
        return self._options.disk_weight_multiplier

    def concerns(self, spec: Spec) -> bool:
        """Return True: the weigher applies to every request."""
        return True

    def raw(self, hosts: HostView, spec: Spec) -> Scores:
        """Return free disk, MiB."""
        return hosts.column("free_disk_mb")
