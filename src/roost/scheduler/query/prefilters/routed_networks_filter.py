"""Go to hosts that reach the segments of the request's networks."""

from roost.scheduler.query.prefilter import NOTHING, Asked, Effect


def routed_networks_filter(asked: Asked) -> Effect:
    """Require, for each network with segments, the aggregate of one of them.

    Source:
        nova/scheduler/request_filter.py, routed_networks_filter, which asks the network service; here the request
        says which segments each network has and which aggregates they are.
    """
    if not asked.settings.query_placement_for_routed_network_aggregates:
        return NOTHING
    found = []
    for network in asked.request.networks:
        lost = sorted(segment for segment, aggregate in network.segments.items() if not aggregate)
        if lost:
            return Effect(refusal=f"Segment {', '.join(lost)} of network {network.name} has no aggregate of hosts")
        if network.segments:
            found.append(frozenset(network.segments.values()))
    return Effect(member_of=tuple(dict.fromkeys(found)))
