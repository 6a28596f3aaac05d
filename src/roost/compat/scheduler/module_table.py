"""Nova's module names for the classes made from Roost's rules."""

import sys
from collections.abc import Callable, Mapping
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

FILTER_MODULES: Mapping[str, tuple[str, ...]] = {
    "affinity_filter": (
        "DifferentHostFilter",
        "SameHostFilter",
        "SimpleCIDRAffinityFilter",
        "ServerGroupAntiAffinityFilter",
        "ServerGroupAffinityFilter",
    ),
    "aggregate_image_properties_isolation": ("AggregateImagePropertiesIsolation",),
    "aggregate_instance_extra_specs": ("AggregateInstanceExtraSpecsFilter",),
    "aggregate_multitenancy_isolation": ("AggregateMultiTenancyIsolation",),
    "all_hosts_filter": ("AllHostsFilter",),
    "availability_zone_filter": ("AvailabilityZoneFilter",),
    "compute_capabilities_filter": ("ComputeCapabilitiesFilter",),
    "compute_filter": ("ComputeFilter",),
    "image_props_filter": ("ImagePropertiesFilter",),
    "io_ops_filter": ("IoOpsFilter", "AggregateIoOpsFilter"),
    "isolated_hosts_filter": ("IsolatedHostsFilter",),
    "json_filter": ("JsonFilter",),
    "metrics_filter": ("MetricsFilter",),
    "numa_topology_filter": ("NUMATopologyFilter",),
    "pci_passthrough_filter": ("PciPassthroughFilter",),
    "retry_filter": ("RetryFilter",),
    "type_filter": ("AggregateTypeAffinityFilter",),
}
WEIGHER_MODULES: Mapping[str, tuple[str, ...]] = {
    "affinity": ("ServerGroupSoftAffinityWeigher", "ServerGroupSoftAntiAffinityWeigher"),
    "compute": ("BuildFailureWeigher",),
    "cpu": ("CPUWeigher",),
    "cross_cell": ("CrossCellWeigher",),
    "disk": ("DiskWeigher",),
    "hypervisor_version": ("HypervisorVersionWeigher",),
    "image_props": ("ImagePropertiesWeigher",),
    "io_ops": ("IoOpsWeigher",),
    "metrics": ("MetricsWeigher",),
    "num_instances": ("NumInstancesWeigher",),
    "pci": ("PCIWeigher",),
    "ram": ("RAMWeigher",),
}


def place_modules(package: str, modules: Mapping[str, tuple[str, ...]], find_class: Callable[[str], Any]) -> None:
    """Add modules with classes to a package.

    Args:
        package: name of the package.
        modules: name of each module -> names of its classes.
        find_class: returns the class with a name.
    """
    for name, classes in modules.items():
        path = f"{package}.{name}"
        module = ModuleType(path, f"Counterpart of Nova's module ``{name}``.")
        module.__spec__ = ModuleSpec(path, None)
        module.__dict__.update({each: find_class(each) for each in classes})
        sys.modules[path] = module
        setattr(sys.modules[package], name, module)
