"""Where a request must go by name: the aggregates, the tree and the hosts that it asks for itself."""

from roost.engine.columns.state import State
from roost.model.request import Request
from roost.model.settings.roost_settings import Scheduler as SchedulerSettings
from roost.scheduler.query.draft import Draft

# With any of these, hosts beyond the first so many candidates may be the ones that are wanted.
_UNLIMITED = frozenset({"group", "same_host", "different_host"})


def add_destination(draft: Draft, request: Request) -> None:
    """Add the aggregates that a request's destination wants and avoids."""
    if request.destination is not None:
        draft.main.member_of.extend(request.destination.aggregates)
        draft.main.avoided |= request.destination.forbidden_aggregates


def add_target(draft: Draft, request: Request, state: State, *, settings: SchedulerSettings) -> str:
    """Ask for the tree of the host that a request names, and bound the number of candidates.

    One tree can be searched alone. Several are told apart by name when hosts are judged; so are requests whose
    groups all have a suffix, since a tree wanted of nothing cannot be served. Where a hint or several hosts of one
    name need all candidates, there is no bound.

    Returns:
        Why there is no such host; empty: there is.

    Source:
        nova/scheduler/utils.py, resources_from_request_spec.
    """
    if _UNLIMITED.isdisjoint(request.hints):
        draft.limit = settings.max_placement_results
    hosts, nodes = _target_names(request)
    if not hosts and not nodes:
        return ""
    table = state.hosts
    rows = table.rows_named(hosts).tolist() if hosts else range(len(table))
    alive_rows = [row for row in rows if table.alive.view[row] and (not nodes or table.nodes[row] in nodes)]
    if not alive_rows:
        host, node = (names[0] if names else None for names in (hosts, nodes))
        return f"No such host - host: {host} node: {node}"
    if len(alive_rows) > 1:
        draft.limit = None
    elif any(draft.main.resources.values()):
        draft.main.require_tree(state.providers.uuids[table.provider_row.view[alive_rows[0]]])
    return ""


def _target_names(request: Request) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the services and the nodes that a request may go to alone; a destination goes before forced hosts."""
    destination = request.destination
    if destination is None or not (destination.host or destination.node):
        return request.force_hosts, request.force_nodes
    return tuple(filter(None, (destination.host,))), tuple(filter(None, (destination.node,)))
