"""Restrict a request to its availability zone."""

from roost.errors import BadRequest
from roost.scheduler.query.prefilter import NOTHING, Effect, PrefilterContext
from roost.scheduler.rule_support.scopes import ZONE, split_names


def map_az_to_placement_aggregate(context: PrefilterContext) -> Effect:
    """Require an aggregate of one of the request's zones.

    If no aggregate defines the default zone, it consists of all hosts without another zone.

    Raises:
        BadRequest: none of the zones exists.

    Source:
        nova/scheduler/request_filter.py, map_az_to_placement_aggregate. Nova does not split a list of zones, and
        accepts every host for a zone without aggregates.
    """
    zones = split_names(context.request.availability_zone or "")
    if not zones:
        return NOTHING
    aggregates: dict[str, set[str]] = {}
    for uuid, metadata in context.aggregates.items():
        for zone in split_names(metadata.get(ZONE, "")):
            aggregates.setdefault(zone, set()).add(uuid)
    known_zones = [zone for zone in zones if zone in aggregates]
    if known_zones:
        others = ", ".join(zone for zone in zones if zone not in aggregates)
        warning = f"no aggregate defines availability zone {others}; only the others are searched"
        uuids: frozenset[str] = frozenset().union(*(aggregates[zone] for zone in known_zones))
        return Effect(member_of=(uuids,), warnings=(warning,) if others else ())
    unknown = [zone for zone in zones if zone != context.default_zone]
    if unknown:
        raise BadRequest(f"there is no availability zone {', '.join(unknown)}")
    return Effect(forbidden_aggregates=frozenset().union(*aggregates.values()))
