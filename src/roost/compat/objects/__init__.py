"""What Nova has in ``nova.objects``: the records that filters and weighers read."""

from roost.compat.objects.devices import InstancePCIRequest, InstancePCIRequests
from roost.compat.objects.flavor_view import Flavor
from roost.compat.objects.host_records import Aggregate, Instance, MonitorMetric
from roost.compat.objects.image_meta import ImageMeta, ImageMetaProps
from roost.compat.objects.placement_target import CellMapping, Destination
from roost.compat.objects.request_spec import RequestSpec, as_request_spec
from roost.compat.objects.selection import Selection
from roost.compat.objects.server_group import InstanceGroup

__all__ = [
    "Aggregate",
    "CellMapping",
    "Destination",
    "Flavor",
    "ImageMeta",
    "ImageMetaProps",
    "Instance",
    "InstanceGroup",
    "InstancePCIRequest",
    "InstancePCIRequests",
    "MonitorMetric",
    "RequestSpec",
    "Selection",
    "as_request_spec",
]
