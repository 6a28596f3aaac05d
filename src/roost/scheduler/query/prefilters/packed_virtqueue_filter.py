"""Require hosts with packed virtio rings."""

from roost.scheduler.framework.hw_settings import is_enabled
from roost.scheduler.query.prefilter import NOTHING, Effect, PrefilterContext, require_root_traits


def packed_virtqueue_filter(context: PrefilterContext) -> Effect:
    """Require ``COMPUTE_NET_VIRTIO_PACKED`` if flavor or image enables packed rings.

    Raises:
        BadRequest: flavor and image contradict each other.

    Source:
        nova/scheduler/request_filter.py, packed_virtqueue_filter.
    """
    return (
        require_root_traits("COMPUTE_NET_VIRTIO_PACKED")
        if is_enabled(context.request, "virtio_packed_ring")
        else NOTHING
    )
