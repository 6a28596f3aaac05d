"""Keep a project on the hosts that aggregates set aside for it."""

from roost.scheduler.query.prefilter import NOTHING, Effect, PrefilterContext


def require_tenant_aggregate(context: PrefilterContext) -> Effect:
    """Require an aggregate whose metadata names the project under a key that begins with ``filter_tenant_id``.

    Without one the project goes anywhere, or nowhere where the settings say that it needs one.

    Source:
        nova/scheduler/request_filter.py, require_tenant_aggregate.
    """
    if not context.settings.limit_tenants_to_placement_aggregate:
        return NOTHING
    project_id = context.request.project_id
    uuids = frozenset(
        uuid
        for uuid, metadata in context.aggregates.items()
        if any(key.startswith("filter_tenant_id") and value == project_id for key, value in metadata.items())
    )
    if uuids:
        return Effect(member_of=(uuids,))
    if context.settings.placement_aggregate_required_for_tenants:
        return Effect(refusal="No hosts available for tenant")
    return NOTHING
