"""disk: free disk."""

from typing import Annotated

import msgspec

from roost.engine.columns.types import Scores
from roost.scheduler.framework.base_rule import BaseWeigher
from roost.scheduler.framework.host_view import HostView
from roost.scheduler.framework.spec import Spec


class DiskOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of ``disk``."""

    disk_weight_multiplier: Annotated[
        float, msgspec.Meta(description="Weight of free disk; a negative value packs instances.")
    ] = 1.0


class Disk(BaseWeigher[DiskOptions]):
    """Weigh hosts by free disk, in MiB: most free first.

    Source:
        nova/scheduler/weights/disk.py.
    """

    nova_name = "DiskWeigher"
    options = DiskOptions
    multiplier_option = "disk_weight_multiplier"
    minval = 0.0

    def raw(self, hosts: HostView, spec: Spec) -> Scores:
        """Return free disk, MiB."""
        return hosts.column("free_disk_mb")
