"""Counterpart of ``nova.objects``: the records for filters and weighers.

``request_spec``: requests.
``filter_properties``: requests as dicts, for filters of Icehouse.
``flavor_view``: flavors.
``image_meta``: images.
``numa_topology``: requested NUMA cells, and their fit.
``devices``: requests for PCI devices.
``placement_target``: destinations and cells.
``server_group``: server groups.
``host_records``: instances, aggregates, metrics and devices of a host.
``current_fleet``: the fleet of the current decision.
``lookups``: look-ups in this fleet, under Nova's names.
``selection``: chosen hosts, for Nova's conductor.
``fields``: names of architectures and policies.
``record``: the base of these objects.
"""

from roost.compat.objects.devices import InstancePCIRequest, InstancePCIRequests
from roost.compat.objects.flavor_view import Flavor
from roost.compat.objects.host_records import Aggregate, Instance, MonitorMetric
from roost.compat.objects.image_meta import ImageMeta, ImageMetaProps
from roost.compat.objects.lookups import (
    AggregateList,
    ComputeNode,
    ComputeNodeList,
    InstanceGroupList,
    InstanceList,
    Service,
    ServiceList,
)
from roost.compat.objects.numa_topology import InstanceNUMATopology, NUMATopologyLimits
from roost.compat.objects.placement_target import CellMapping, Destination
from roost.compat.objects.request_spec import RequestSpec, as_request_spec
from roost.compat.objects.selection import Selection
from roost.compat.objects.server_group import InstanceGroup

__all__ = [
    "Aggregate",
    "AggregateList",
    "CellMapping",
    "ComputeNode",
    "ComputeNodeList",
    "Destination",
    "Flavor",
    "ImageMeta",
    "ImageMetaProps",
    "Instance",
    "InstanceGroup",
    "InstanceGroupList",
    "InstanceList",
    "InstanceNUMATopology",
    "InstancePCIRequest",
    "InstancePCIRequests",
    "MonitorMetric",
    "NUMATopologyLimits",
    "RequestSpec",
    "Selection",
    "Service",
    "ServiceList",
    "as_request_spec",
]


def register_all() -> None:
    """Do nothing: all objects are registered on import."""
