"""Restrict a project to its aggregates."""

from roost.scheduler.query.prefilter import NOTHING, Effect, PrefilterContext


def require_tenant_aggregate(context: PrefilterContext) -> Effect:
    """Require an aggregate that names the project in a metadata key with the prefix ``filter_tenant_id``.

    A project without such an aggregate may use any host, unless the settings require one.

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
