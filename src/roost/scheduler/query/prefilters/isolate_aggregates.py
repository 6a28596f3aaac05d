"""Avoid aggregates reserved for traits that the request does not require."""

from roost.scheduler.query.prefilter import NOTHING, Effect, PrefilterContext

_SCOPE = "trait:"


def isolate_aggregates(context: PrefilterContext) -> Effect:
    """Forbid every aggregate with metadata ``trait:X=required`` unless flavor or image requires X.

    Source:
        nova/scheduler/request_filter.py, isolate_aggregates.
    """
    if not context.settings.enable_isolated_aggregate_filtering:
        return NOTHING
    return Effect(
        forbidden_aggregates=frozenset(
            uuid
            for uuid, metadata in context.aggregates.items()
            if any(
                key.startswith(_SCOPE) and value == "required" and key.removeprefix(_SCOPE) not in context.required
                for key, value in metadata.items()
            )
        )
    )
