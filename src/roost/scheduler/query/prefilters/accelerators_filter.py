"""Require hosts with accelerators."""

from roost.scheduler.query.prefilter import NOTHING, Effect, PrefilterContext, require_root_traits


def accelerators_filter(context: PrefilterContext) -> Effect:
    """Require ``COMPUTE_ACCELERATORS`` if the extra spec ``accel:device_profile`` names a profile.

    Source:
        nova/scheduler/request_filter.py, accelerators_filter.
    """
    has_profile = bool(context.request.flavor.extra_specs.get("accel:device_profile"))
    return require_root_traits("COMPUTE_ACCELERATORS") if has_profile else NOTHING
