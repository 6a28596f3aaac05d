"""Writes of the nodes' facts from agents' reports; facts set by operators and conductors stay."""

from collections.abc import Callable

import msgspec

from roost.engine.columns.state import State
from roost.errors import Conflict
from roost.fleet.host_writes import facts_body, writes_of_facts
from roost.model.host import HostFacts
from roost.model.names import uuid_form
from roost.model.writes import PutHost, Write

# Facts that agents cannot change.
_DISABLED = ("is_disabled", "disabled_reason", "disabled_at_s", "disabled_by")
_OPERATOR_FACTS = ("cell", *_DISABLED, "is_forced_down", "failed_builds", "reported_at_s")


def check_node(state: State, *, host: str, node: str, uuid: str | None = None) -> int | None:
    """Return the row of a node's root provider; None: it does not exist yet.

    Args:
        host: the service that reports the node as its own.
        uuid: reported uuid of the provider; None: not reported.

    Raises:
        Conflict: the node belongs to another service, or its provider has another uuid or a parent.
    """
    providers, hosts = state.providers, state.hosts
    row = providers.row_of_name.get(node)
    if row is None:
        return None
    if uuid is not None and providers.uuids[row] != uuid_form(uuid):
        raise Conflict(
            f"the provider of the node {node} is {providers.uuids[row]}, and not {uuid} as {host} reports; start the "
            f"agent with its old journal; if this is lost, run `roost agent adopt {host}` first; if {host} is a "
            "different machine, rename it"
        )
    if providers.parent.each[row] >= 0:
        raise Conflict(f"the provider {node} has a parent, so it cannot be a node of {host}")
    host_row = hosts.row_of_root.get(row)
    if host_row is not None and hosts.names[host_row].lower() != host.lower():
        raise Conflict(f"the node {node} belongs to the host {hosts.names[host_row]}, not to {host}")
    return row


def facts_of_node(state: State, provider_row: int, reported: HostFacts) -> tuple[Write, ...]:
    """Plan the reported facts of a node; if they are unchanged, write nothing.

    Raises:
        BadRequest: the facts cannot be stored.
    """
    host_row = state.hosts.row_of_root[provider_row]
    return writes_of_facts(state, [host_row], [_merge(state.hosts.facts[host_row], reported)])


def registration_of_node(
    state: State, provider_row: int, *, host: str, reported: HostFacts, initial: HostFacts
) -> Callable[[int], tuple[Write, ...]]:
    """Plan a new host on a root provider; return a function from the id of the host to its writes.

    Args:
        initial: facts that agents cannot change.

    Raises:
        BadRequest: the facts cannot be stored.
    """
    number, node = state.providers.ids[provider_row], state.providers.names[provider_row]
    body = facts_body(node, _merge(initial, reported))
    return lambda host_id: (PutHost(host_id, number, host, node, body, 0),)


def _merge(stored: HostFacts, reported: HostFacts) -> HostFacts:
    return msgspec.structs.replace(reported, **{name: getattr(stored, name) for name in _OPERATOR_FACTS})
