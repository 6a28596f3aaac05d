"""The writes that change the facts of hosts."""

from collections.abc import Sequence

import msgspec

from roost.engine.columns.state import State
from roost.errors import BadRequest, NotFound
from roost.model.host import HostFacts
from roost.model.names import DISABLED_TRAIT, RATIO_MAX
from roost.model.writes import PutHost, PutTraits, Write

_FACTS = msgspec.msgpack.Decoder(HostFacts)
_REASON_MAX = 255


class ServiceChange(msgspec.Struct, frozen=True, kw_only=True):
    """An operator's change to a service; None leaves a field unchanged."""

    is_disabled: bool | None = None
    disabled_reason: str | None = None
    is_forced_down: bool | None = None
    user_id: str = ""  # of the operator; empty: the server itself


def rows_of_service(state: State, name: str) -> list[int]:
    """Return the rows of a service's nodes, ignoring letter case.

    Raises:
        NotFound: there is no such service.
    """
    alive = state.hosts.alive.each
    rows = [row for row in state.hosts.rows_of_name.get(name.lower(), ()) if alive[row]]
    if not rows:
        raise NotFound("host", name)
    return rows


def apply_service_change(state: State, rows: Sequence[int], change: ServiceChange) -> list[HostFacts]:
    """Return the facts of a service's nodes after a change.

    Raises:
        BadRequest: the reason is too long, or given for a service that is not disabled.
    """
    return [
        _apply_to_host(state.hosts.facts[row], change, host=state.hosts.names[row], now_s=state.now_s) for row in rows
    ]


def writes_of_facts(state: State, rows: Sequence[int], facts: Sequence[HostFacts]) -> tuple[Write, ...]:
    """Return the writes that store the facts of hosts; skip hosts whose facts are unchanged.

    Raises:
        BadRequest: the facts cannot be stored.
    """
    pairs = zip(rows, facts, strict=True)
    return tuple(_put(state, row, each) for row, each in pairs if each != state.hosts.facts[row])


def writes_of_service(state: State, rows: Sequence[int], facts: Sequence[HostFacts]) -> tuple[Write, ...]:
    """Return the writes that store the facts of hosts, and ``COMPUTE_STATUS_DISABLED`` where ``is_disabled`` changes.

    The agent writes the trait too. But it learns of the change at its next poll only, and a host may have no agent.

    Raises:
        BadRequest: the facts cannot be stored.
    """
    pairs = zip(rows, facts, strict=True)
    changes = [(row, each) for row, each in pairs if each.is_disabled != state.hosts.facts[row].is_disabled]
    traits = (_put_trait(state, row, is_disabled=each.is_disabled) for row, each in changes)
    return (*writes_of_facts(state, rows, facts), *(write for write in traits if write is not None))


def write_of_host(state: State, row: int, *, host: str, node: str, facts: HostFacts) -> tuple[Write, ...]:
    """Return the write that stores the names and facts of a host; none if they are unchanged.

    Args:
        host: the service; a node can move to another one.
        node: the name of the node.

    Raises:
        BadRequest: the facts cannot be stored.
    """
    hosts = state.hosts
    if (hosts.names[row], hosts.nodes[row], hosts.facts[row]) == (host, node, facts):
        return ()
    return (msgspec.structs.replace(_put(state, row, facts), host=host, node=node),)


def facts_body(node: str, facts: HostFacts) -> msgspec.Raw:
    """Return facts in their stored form.

    Raises:
        BadRequest: the facts cannot be encoded, or could not be read back (no process could then open the
            database); or a number exceeds the range of its column.
    """
    ratio = 0.0 if facts.cpu_allocation_ratio is None else facts.cpu_allocation_ratio
    for name, number in (("cpu_allocation_ratio", ratio), *facts.metrics.items()):
        if not abs(number) <= RATIO_MAX:
            raise BadRequest(f"host {node}: {name[:70]} must be a number up to {RATIO_MAX:g}, got {number:g}")
    try:
        body = msgspec.msgpack.encode(facts)
        _FACTS.decode(body)
    except (msgspec.ValidationError, OverflowError, UnicodeEncodeError) as error:
        raise BadRequest(f"host {node}: its facts cannot be stored: {error}") from None
    return msgspec.Raw(body)


def _apply_to_host(facts: HostFacts, change: ServiceChange, *, host: str, now_s: float) -> HostFacts:
    is_disabled = facts.is_disabled if change.is_disabled is None else change.is_disabled
    if change.disabled_reason and not is_disabled:
        raise BadRequest(f"host {host}: only a disabled service can have a reason")
    reason = facts.disabled_reason if change.disabled_reason is None else change.disabled_reason
    if len(reason) > _REASON_MAX:
        raise BadRequest(f"host {host}: the reason must be {_REASON_MAX} characters at most")
    at_s, by = (facts.disabled_at_s, facts.disabled_by) if facts.is_disabled else (now_s, change.user_id)
    return msgspec.structs.replace(
        facts,
        is_disabled=is_disabled,
        disabled_at_s=at_s if is_disabled else None,
        disabled_by=by if is_disabled else "",
        disabled_reason=reason if is_disabled else "",
        is_forced_down=facts.is_forced_down if change.is_forced_down is None else change.is_forced_down,
    )


def _put(state: State, row: int, facts: HostFacts) -> PutHost:
    hosts = state.hosts
    provider_id = state.providers.ids[int(hosts.provider_row.each[row])]
    body = facts_body(hosts.nodes[row], facts)
    return PutHost(hosts.ids[row], provider_id, hosts.names[row], hosts.nodes[row], body, hosts.versions[row] + 1)


def _put_trait(state: State, row: int, *, is_disabled: bool) -> PutTraits | None:
    """Return the write that gives or takes the trait; None: the root provider is as it should be."""
    provider_row, trait_id = int(state.hosts.provider_row.each[row]), state.trait_ids.id_of(DISABLED_TRAIT)
    held = state.traits.labels_of(provider_row)
    if trait_id is None or is_disabled == (trait_id in held):
        return None
    trait_ids = held | {trait_id} if is_disabled else held - {trait_id}
    providers = state.providers
    return PutTraits(providers.ids[provider_row], providers.generation.each[provider_row], sorted(trait_ids))
