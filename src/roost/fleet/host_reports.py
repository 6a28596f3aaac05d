"""What an agent says of a node of its host: what is written of it, and what stays as operators and conductors said."""

from collections.abc import Callable

import msgspec

from roost.engine.columns.state import State
from roost.errors import Conflict
from roost.fleet.host_writes import facts_body, writes_of_facts
from roost.model.host import HostFacts
from roost.model.names import uuid_form
from roost.model.writes import PutHost, Write

# Facts that are not an agent's to tell.
_NOT_ITS_OWN = ("cell", "is_disabled", "disabled_reason", "is_forced_down", "failed_builds", "reported_at_s")


def check_node(state: State, *, host: str, node: str, uuid: str | None = None) -> int | None:
    """Return the row of the root provider of a node; None: there is none yet.

    Args:
        host: the service that says that the node is its own.
        uuid: of the provider, as the service says; None: it does not say.

    Raises:
        Conflict: it is a node of another service, or the provider is another one, or has a parent.
    """
    providers, hosts = state.providers, state.hosts
    row = providers.row_of_name.get(node)
    if row is None:
        return None
    if uuid is not None and providers.uuids[row] != uuid_form(uuid):
        raise Conflict(
            f"the provider of the node {node} is {providers.uuids[row]}, and not {uuid} as {host} says; start its "
            f"agent with the folder of its journal, or, if that is lost, after `roost agent adopt {host}`; give "
            "another machine another name"
        )
    if providers.parent.each[row] >= 0:
        raise Conflict(f"the provider {node} has a parent, so it is no node of {host}")
    host_row = hosts.row_of_root.get(row)
    if host_row is not None and hosts.names[host_row].lower() != host.lower():
        raise Conflict(f"the node {node} is of the host {hosts.names[host_row]}, not of {host}")
    return row


def facts_of_node(state: State, provider_row: int, told: HostFacts) -> tuple[Write, ...]:
    """Plan that a known node has the facts that its agent tells; where they are as they were, nothing is written.

    Raises:
        BadRequest: facts cannot be kept.
    """
    host_row = state.hosts.row_of_root[provider_row]
    return writes_of_facts(state, [host_row], [_merge(state.hosts.facts[host_row], told)])


def registration_of_node(
    state: State, provider_row: int, *, host: str, told: HostFacts, initial: HostFacts
) -> Callable[[int], tuple[Write, ...]]:
    """Plan that a root becomes a node of a service; return what writes it of the identity of the new host.

    Args:
        initial: facts that are not the agent's to tell.

    Raises:
        BadRequest: facts cannot be kept.
    """
    number, node = state.providers.ids[provider_row], state.providers.names[provider_row]
    body = facts_body(node, _merge(initial, told))
    return lambda host_id: (PutHost(host_id, number, host, node, body, 0),)


def _merge(known: HostFacts, told: HostFacts) -> HostFacts:
    return msgspec.structs.replace(told, **{name: getattr(known, name) for name in _NOT_ITS_OWN})
