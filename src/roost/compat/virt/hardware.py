"""Counterpart of ``nova.virt.hardware``."""

from roost.compat.objects.numa_topology import (
    InstanceNUMATopology,
    NUMATopologyLimits,
    numa_fit_instance_to_host,
    numa_get_constraints,
)

__all__ = ["InstanceNUMATopology", "NUMATopologyLimits", "numa_fit_instance_to_host", "numa_get_constraints"]
