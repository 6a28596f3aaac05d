"""Make the holder of a guest the home of its instance: the claim moves there."""

from roost.conductor.builds.alternates import AlternateStep, plan_alternate
from roost.conductor.moves.guests import allocations_of
from roost.engine.columns.state import State
from roost.errors import Conflict
from roost.model.evidence.decision import Pick
from roost.model.names import uuid_text
from roost.model.work.work_rows import StatusRow
from roost.ports import Commits


def plan_adoption(current: Commits, status: StatusRow, *, host: str, node: str) -> AlternateStep | str:
    """Plan the claim of an instance on the host of its guest, in place of its present one.

    Returns:
        The release and the claim, or why the instance cannot be claimed there.
    """
    pick = _pick_on(current.state, status, host=host, node=node)
    if isinstance(pick, str):
        return pick
    try:
        return plan_alternate(current, uuid_text(status.uuid), pick)
    except Conflict as error:
        return str(error)


def _pick_on(state: State, status: StatusRow, *, host: str, node: str) -> Pick | str:
    """Return the pick of a host with the present amounts of an instance, or why there is none."""
    allocations = allocations_of(state, status.uuid)
    if not allocations:
        return "it has no allocations"
    if len(allocations) > 1:
        return "it has allocations of several providers, and these cannot be moved to another host"
    hosts = state.hosts
    rows = (row for row in hosts.rows_of_name.get(host.lower(), ()) if hosts.alive.each[row])
    row = next((row for row in rows if hosts.nodes[row] == node), None)
    if row is None:
        return f"the host {host} has no node {node}"
    (amounts,) = allocations.values()
    provider = state.providers.uuids[int(hosts.provider_row.each[row])]
    return Pick(
        host=hosts.names[row],
        node=node,
        cell=hosts.facts[row].cell,
        instance_uuid=uuid_text(status.uuid),
        allocations={provider: amounts},
    )
