"""Require hosts that reach the segments of the request's networks."""

from roost.scheduler.query.prefilter import NOTHING, Effect, PrefilterContext


def routed_networks_filter(context: PrefilterContext) -> Effect:
    """Require, for each network with segments, the aggregate of one segment.

    Source:
        nova/scheduler/request_filter.py, routed_networks_filter. Nova queries the network service; here the
        request contains the segments of each network, and their aggregates.
    """
    if not context.settings.query_placement_for_routed_network_aggregates:
        return NOTHING
    member_of = []
    for network in context.request.networks:
        unmapped = sorted(segment for segment, aggregate in network.segments.items() if not aggregate)
        if unmapped:
            return Effect(refusal=f"Segment {', '.join(unmapped)} of network {network.name} has no aggregate of hosts")
        if network.segments:
            member_of.append(frozenset(network.segments.values()))
    return Effect(member_of=tuple(dict.fromkeys(member_of)))
