"""Keep a request in its availability zone."""

from roost.errors import BadRequest
from roost.scheduler.query.prefilter import NOTHING, Asked, Effect
from roost.scheduler.rule_support.scopes import ZONE, parts


def map_az_to_placement_aggregate(asked: Asked) -> Effect:
    """Require one of the aggregates that make up the request's zones; of several, any zone will do.

    The default zone, where no aggregate makes it up, is all hosts that no aggregate puts into another.

    Raises:
        BadRequest: none of the zones exists.

    Source:
        nova/scheduler/request_filter.py, map_az_to_placement_aggregate, which takes the zone whole, and a zone that
        no aggregate makes up for any host.
    """
    zones = parts(asked.request.availability_zone or "")
    if not zones:
        return NOTHING
    aggregates: dict[str, set[str]] = {}
    for uuid, metadata in asked.aggregates.items():
        for zone in parts(metadata.get(ZONE, "")):
            aggregates.setdefault(zone, set()).add(uuid)
    known = [zone for zone in zones if zone in aggregates]
    if known:
        others = ", ".join(zone for zone in zones if zone not in aggregates)
        told = f"no aggregate makes up availability zone {others}; only the others are searched"
        wanted: frozenset[str] = frozenset().union(*(aggregates[zone] for zone in known))
        return Effect(member_of=(wanted,), warnings=(told,) if others else ())
    unknown = [zone for zone in zones if zone != asked.default_zone]
    if unknown:
        raise BadRequest(f"there is no availability zone {', '.join(unknown)}")
    return Effect(forbidden_aggregates=frozenset().union(*aggregates.values()))
