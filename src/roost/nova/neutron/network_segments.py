"""Adds the aggregates of network segments to a request."""

from collections.abc import Collection, Iterable

from msgspec.structs import replace

from roost.engine.columns.state import State
from roost.model.names import uuid_form
from roost.model.request import Network, Request
from roost.nova.neutron.network_lookup import FoundNetwork, no_aggregates
from roost.nova.rpc.rpc_failure import Failure, build_failure
from roost.placement.writes import labels
from roost.ports import RemotePlacement


def add_segments(
    request: Request, found: Iterable[FoundNetwork], *, state: State, remote: RemotePlacement | None
) -> Request | Failure:
    """Return the request with its networks, or the failure if a segment has no aggregate.

    Neutron creates a provider for each segment, with the uuid of the segment, and adds it to an aggregate.

    Args:
        remote: the Placement with the providers; None: Roost's own. It is read for segments that are not in the
            columns yet.

    Raises:
        PlacementGone: the remote Placement does not answer.

    Source:
        nova/scheduler/utils.py, get_aggregates_for_routed_network and get_aggregates_for_routed_subnet.
    """
    networks = []
    for network in found:
        segments: dict[str, str] = {}
        for segment in network.segments:
            aggregates = _aggregates_of(segment, state, remote)
            if aggregates is None:
                return _unknown_provider(segment)
            if not aggregates:
                return no_aggregates(network.name)
            segments |= _name_aggregates(segment, aggregates)
        if segments or network.is_remote_managed:
            networks.append(Network(name=network.name, segments=segments, is_remote_managed=network.is_remote_managed))
    return replace(request, networks=(*request.networks, *networks)) if networks else request


def _aggregates_of(segment: str, state: State, remote: RemotePlacement | None) -> Collection[str] | None:
    """Return the aggregates of a segment; None: it has no provider."""
    row = state.providers.row_of_uuid.get(uuid_form(segment))
    aggregates = None if row is None else labels.aggregates_of(state, row)
    return aggregates if aggregates or remote is None else remote.aggregates_of(segment)


def _name_aggregates(segment: str, aggregates: Collection[str]) -> dict[str, str]:
    """Return the aggregates of a segment by names; Neutron itself adds a segment to only one aggregate."""
    if len(aggregates) == 1:
        return {segment: next(iter(aggregates))}
    return {f"{segment} in {each}": each for each in sorted(aggregates)}


def _unknown_provider(segment: str) -> Failure:
    text = f"Failed to get aggregates for resource provider with UUID {segment}"
    name = "ResourceProviderAggregateRetrievalFailed"
    return build_failure(name, "nova.exception", text, uuid=segment, code=500)
