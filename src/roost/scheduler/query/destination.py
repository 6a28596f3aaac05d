"""The named destination of a request: aggregates, tree and hosts."""

from roost.engine.columns.state import State
from roost.model.request import Request
from roost.model.settings.roost_settings import Scheduler as SchedulerSettings
from roost.scheduler.query.draft import Draft

# Hints that need hosts beyond the limit of candidates.
_UNLIMITED = frozenset({"group", "same_host", "different_host"})


def add_destination(draft: Draft, request: Request) -> None:
    """Add the required and forbidden aggregates of a request's destination."""
    if request.destination is not None:
        draft.main.member_of.extend(request.destination.aggregates)
        draft.main.avoided |= request.destination.forbidden_aggregates


def add_target(draft: Draft, request: Request, state: State, *, settings: SchedulerSettings) -> str:
    """Require the tree of a named host, and limit the number of candidates.

    The query requires the tree of a single host if the unsuffixed group has resources: a group with only a tree is
    invalid. Otherwise the hosts are filtered by name after the search. Such a request, and some hints, need all
    candidates, so the limit does not apply to them.

    Returns:
        The reason if the host does not exist, else "".

    Source:
        nova/scheduler/utils.py, resources_from_request_spec.
    """
    if _UNLIMITED.isdisjoint(request.hints):
        draft.limit = settings.max_placement_results
    alive_rows = find_target_rows(request, state)
    if alive_rows is None:
        return ""
    if not alive_rows:
        hosts, nodes = _target_names(request)
        host, node = (names[0] if names else None for names in (hosts, nodes))
        return f"No such host - host: {host} node: {node}"
    if len(alive_rows) == 1 and any(draft.main.resources.values()):
        draft.main.require_tree(state.providers.uuids[state.hosts.provider_row.view[alive_rows[0]]])
    else:
        draft.limit = None  # The query finds other hosts too; a limit could cut off the named ones.
    return ""


def find_target_rows(request: Request, state: State) -> list[int] | None:
    """Return the rows of the live hosts of a request; None: it names no host."""
    hosts, nodes = _target_names(request)
    if not hosts and not nodes:
        return None
    table = state.hosts
    rows = table.find_rows(hosts).tolist() if hosts else range(len(table))
    return [row for row in rows if table.alive.view[row] and (not nodes or table.nodes[row] in nodes)]


def _target_names(request: Request) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the services and nodes of a restricted request; a destination overrides forced hosts."""
    destination = request.destination
    if destination is None or not (destination.host or destination.node):
        return request.force_hosts, request.force_nodes
    return tuple(filter(None, (destination.host,))), tuple(filter(None, (destination.node,)))
