"""Keep requests off aggregates that are for traits they do not ask for."""

from roost.scheduler.query.prefilter import NOTHING, Effect, PrefilterContext

_SCOPE = "trait:"


def isolate_aggregates(context: PrefilterContext) -> Effect:
    """Forbid every aggregate with a metadata ``trait:X=required`` whose X neither flavor nor image requires.

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
