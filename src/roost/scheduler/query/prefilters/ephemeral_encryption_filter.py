"""Go to hosts that can encrypt ephemeral disks."""

from roost.scheduler.framework.hw_settings import agreed, is_agreed
from roost.scheduler.query.prefilter import NOTHING, Asked, Effect, root_traits, words

_FORMATS = ("plain", "luks", "luksv2")


def ephemeral_encryption_filter(asked: Asked) -> Effect:
    """Require ``COMPUTE_EPHEMERAL_ENCRYPTION``, and that of the format if one is named, where it is wanted.

    Raises:
        BadRequest: flavor and image contradict each other, or there is no such format.

    Source:
        nova/scheduler/request_filter.py, ephemeral_encryption_filter.
    """
    if not is_agreed(asked.request, "ephemeral_encryption"):
        return NOTHING
    trait = "COMPUTE_EPHEMERAL_ENCRYPTION"
    form = agreed(asked.request, "ephemeral_encryption_format", among=_FORMATS)
    return root_traits(trait) if form is None else root_traits(trait, f"{trait}_{words(form)}")
