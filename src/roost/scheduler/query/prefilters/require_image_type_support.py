"""Require hosts that support the image's disk format."""

from roost.scheduler.query.prefilter import NOTHING, Effect, PrefilterContext, require_root_traits, trait_words


def require_image_type_support(context: PrefilterContext) -> Effect:
    """Require ``COMPUTE_IMAGE_TYPE_<FORMAT>``, unless the instance boots from a volume.

    Source:
        nova/scheduler/request_filter.py, require_image_type_support.
    """
    image = context.request.image
    if not context.settings.query_placement_for_image_type_support or context.request.is_bfv:
        return NOTHING
    if image is None or not image.disk_format:
        return NOTHING
    return require_root_traits(f"COMPUTE_IMAGE_TYPE_{trait_words(image.disk_format)}")
