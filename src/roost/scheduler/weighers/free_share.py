"""free_share: free share of the scarcest resource."""

from typing import Annotated

import msgspec
import numpy as np

from roost.engine.columns.types import Mask, Scores
from roost.scheduler.framework.base_rule import BaseWeigher
from roost.scheduler.framework.host_view import HostView
from roost.scheduler.framework.spec import Spec


class FreeShareOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of ``free_share``."""

    free_share_weight_multiplier: Annotated[
        float,
        msgspec.Meta(
            description="Weight of the free share of the scarcest resource; a negative value packs instances."
        ),
    ] = 0.0


class FreeShare(BaseWeigher[FreeShareOptions]):
    """Weigh hosts by the free share of their scarcest resource: emptiest first, whatever their size.

    The scale is fixed, so the score of a host does not depend on other hosts.
    """

    options = FreeShareOptions
    multiplier_option = "free_share_weight_multiplier"
    minval = 0.0
    maxval = 1.0

    def raw(self, hosts: HostView, spec: Spec) -> Scores:
        """Return the lowest free share of virtual CPUs, memory and disk: 0 to 1 of the capacity with overcommit.

        A resource without capacity does not count. A host without any capacity has the share 0.
        """
        ram_mb = hosts.column("total_usable_ram_mb") - hosts.column("reserved_ram_mb")
        disk_gb = hosts.column("total_usable_disk_gb") - hosts.column("reserved_disk_gb")
        amounts = (
            ("vcpus_used", hosts.column("vcpus_total"), hosts.column("cpu_allocation_ratio")),
            ("used_ram_mb", ram_mb, hosts.allocation_ratio("MEMORY_MB")),
            ("used_disk_gb", disk_gb, hosts.allocation_ratio("DISK_GB")),
        )
        lowest: Scores = np.full(len(hosts), np.inf)
        for used, total, ratio in amounts:
            capacity = total * ratio
            offers: Mask = capacity > 0
            share = np.divide(capacity - hosts.column(used), capacity, out=np.full(len(hosts), np.inf), where=offers)
            lowest = np.minimum(lowest, share)
        lowest[np.isinf(lowest)] = 0.0
        return lowest
