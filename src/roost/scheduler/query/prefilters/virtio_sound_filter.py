"""Require hosts with a virtio sound device."""

from roost.scheduler.framework.hw_settings import resolve_value
from roost.scheduler.query.prefilter import NOTHING, Effect, PrefilterContext, require_root_traits


def virtio_sound_filter(context: PrefilterContext) -> Effect:
    """Require ``COMPUTE_SOUND_MODEL_VIRTIO`` if flavor or image sets the model virtio; other models need no trait.

    Raises:
        BadRequest: flavor and image contradict each other.

    Source:
        nova/scheduler/request_filter.py, virtio_sound_filter.
    """
    model = resolve_value(context.request, "sound_model")
    return require_root_traits("COMPUTE_SOUND_MODEL_VIRTIO") if model == "virtio" else NOTHING
