"""Avoid hosts with a disabled service."""

from roost.model.names import DISABLED_TRAIT
from roost.scheduler.query.prefilter import Effect, PrefilterContext

_NOT_DISABLED = Effect(root_forbidden=frozenset({DISABLED_TRAIT}))


def compute_status_filter(_: PrefilterContext) -> Effect:
    """Forbid ``COMPUTE_STATUS_DISABLED``.

    Source:
        nova/scheduler/request_filter.py, compute_status_filter.
    """
    return _NOT_DISABLED
