"""Go to hosts that can pack the rings of virtio."""

from roost.scheduler.framework.hw_settings import is_agreed
from roost.scheduler.query.prefilter import NOTHING, Asked, Effect, root_traits


def packed_virtqueue_filter(asked: Asked) -> Effect:
    """Require ``COMPUTE_NET_VIRTIO_PACKED`` where flavor or image want packed rings.

    Raises:
        BadRequest: flavor and image contradict each other.

    Source:
        nova/scheduler/request_filter.py, packed_virtqueue_filter.
    """
    return root_traits("COMPUTE_NET_VIRTIO_PACKED") if is_agreed(asked.request, "virtio_packed_ring") else NOTHING
