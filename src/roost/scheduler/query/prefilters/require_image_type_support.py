"""Go to hosts that can read the image's disk format."""

from roost.scheduler.query.prefilter import NOTHING, Asked, Effect, root_traits, words


def require_image_type_support(asked: Asked) -> Effect:
    """Require ``COMPUTE_IMAGE_TYPE_<FORMAT>``, unless the instance boots from a volume.

    Source:
        nova/scheduler/request_filter.py, require_image_type_support.
    """
    image = asked.request.image
    if not asked.settings.query_placement_for_image_type_support or asked.request.is_bfv:
        return NOTHING
    if image is None or not image.disk_format:
        return NOTHING
    return root_traits(f"COMPUTE_IMAGE_TYPE_{words(image.disk_format)}")
