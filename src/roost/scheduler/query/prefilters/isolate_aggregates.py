"""Keep requests off aggregates that are for traits they do not ask for."""

from roost.scheduler.query.prefilter import NOTHING, Asked, Effect

_SCOPE = "trait:"


def isolate_aggregates(asked: Asked) -> Effect:
    """Forbid every aggregate with a metadata ``trait:X=required`` whose X neither flavor nor image requires.

    Source:
        nova/scheduler/request_filter.py, isolate_aggregates.
    """
    if not asked.settings.enable_isolated_aggregate_filtering:
        return NOTHING
    return Effect(
        forbidden_aggregates=frozenset(
            uuid
            for uuid, metadata in asked.aggregates.items()
            if any(
                key.startswith(_SCOPE) and value == "required" and key.removeprefix(_SCOPE) not in asked.required
                for key, value in metadata.items()
            )
        )
    )
