"""Require hosts that can encrypt ephemeral disks."""

from roost.scheduler.framework.hw_settings import is_enabled, resolve_value
from roost.scheduler.query.prefilter import NOTHING, Effect, PrefilterContext, require_root_traits, trait_words

_FORMATS = ("plain", "luks", "luksv2")


def ephemeral_encryption_filter(context: PrefilterContext) -> Effect:
    """Require ``COMPUTE_EPHEMERAL_ENCRYPTION``, and the trait of its format, if flavor or image enables encryption.

    Raises:
        BadRequest: flavor and image contradict each other, or the format is unknown.

    Source:
        nova/scheduler/request_filter.py, ephemeral_encryption_filter.
    """
    if not is_enabled(context.request, "ephemeral_encryption"):
        return NOTHING
    trait = "COMPUTE_EPHEMERAL_ENCRYPTION"
    disk_format = resolve_value(context.request, "ephemeral_encryption_format", allowed=_FORMATS)
    if disk_format is None:
        return require_root_traits(trait)
    return require_root_traits(trait, f"{trait}_{trait_words(disk_format)}")
