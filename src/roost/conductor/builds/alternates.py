"""Alternates after a failed build: the claim moves to the next alternate of the decision, without a new decision."""

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from roost.engine.candidates.walk import Take
from roost.engine.columns.state import Group, Holder, State
from roost.engine.feasibility.claim import check_claim
from roost.errors import BadRequest, Conflict, NotFound
from roost.model.evidence.decision import Decision, Pick
from roost.model.group import GUARDED_POLICIES
from roost.model.names import uuid_bytes, uuid_form
from roost.model.writes import CLASS_BITS, CLASS_MASK, Claim, ConsumerRow, InstanceRow, Place, Release
from roost.placement.writes.claims import release_of
from roost.ports import Commits
from roost.scheduler.framework.group_slots import place_of

_TOO_LITTLE = {
    "missing": "offers no {name}",
    "units": "does not allow an allocation of {amount:,} {name}",
    "capacity": "has less than {amount:,} {name} left",
}


class AlternateStep(NamedTuple):
    """The release of a host and the claim of another, in one commit."""

    release: Release
    claim: Claim
    pick: Pick
    remaining: int  # alternates after this one


def next_alternate(
    current: Commits, decision: Decision, instance_uuid: str | None, *, from_host: str | None = None
) -> AlternateStep:
    """Plan the claim of the next alternate that still fits an instance.

    The present host of the instance determines its next alternate, so no state is kept between the calls.

    Args:
        decision: of the instance.
        instance_uuid: None: the only instance of the decision.
        from_host: expected current service, so that a repeated call does not move the instance twice; None: any.

    Raises:
        BadRequest: the decision has several instances, and none is named.
        NotFound: the decision placed no such instance.
        Conflict: the instance is not where the decision put it, or no alternate is left.
    """
    state = current.state
    chosen = pick_of(decision, instance_uuid)
    location = location_of(state, chosen.instance_uuid)
    picks = [chosen, *decision.alternates.get(chosen.cell, [])]
    if from_host not in {None, location[0]}:
        raise Conflict(f"the instance {chosen.instance_uuid} is on {location[0]}, not on {from_host!r}")
    at = next((at for at, pick in enumerate(picks) if (pick.host, pick.node) == location), None)
    if at is None:
        raise Conflict(f"the instance {chosen.instance_uuid} is on {location[1]}, where its decision did not put it")
    for number, pick in enumerate(picks[at + 1 :], start=at + 2):
        step = plan_alternate(current, chosen.instance_uuid, pick, remaining=len(picks) - number)
        if isinstance(step, AlternateStep):
            return step
    raise Conflict(f"no alternate is left for the instance {chosen.instance_uuid}", problem_type="no-alternate")


def pick_of(decision: Decision, instance_uuid: str | None) -> Pick:
    """Return the pick of a decision for one of its instances.

    Args:
        instance_uuid: None: the only one.

    Raises:
        NotFound: the decision has no such instance.
        BadRequest: the decision has several instances.
        Conflict: the decision was refused.
    """
    if not decision.picks:
        raise Conflict(f"decision {decision.uuid} was refused: it placed nothing")
    if instance_uuid is None:
        if len(decision.picks) > 1:
            raise BadRequest(f"decision {decision.uuid} placed {len(decision.picks)} instances: name one of them")
        return decision.picks[0]
    uuid = uuid_form(instance_uuid)
    found = next((pick for pick in decision.picks if pick.instance_uuid == uuid), None)
    if found is None:
        raise NotFound(f"instance of decision {decision.uuid}", instance_uuid)
    return found


def location_of(state: State, instance_uuid: str) -> tuple[str, str]:
    """Return the service and node of an instance.

    Raises:
        Conflict: it does not exist any more.
    """
    _, instance = _holder_of(state, instance_uuid)
    row = state.hosts.row_of_id[instance.host_id]
    return state.hosts.names[row], state.hosts.nodes[row]


def plan_alternate(current: Commits, instance_uuid: str, pick: Pick, *, remaining: int = 0) -> AlternateStep | str:
    """Plan the claim of an alternate, or return why it cannot be claimed.

    Args:
        remaining: alternates after this one.

    Raises:
        Conflict: the instance does not exist any more.
    """
    holder, _ = _holder_of(current.state, instance_uuid)
    claim = _move(current, holder, pick)
    if isinstance(claim, str):
        return claim
    taken = msgspec.structs.replace(pick, instance_uuid=instance_uuid)
    return AlternateStep(release_of(current.state, [holder]), claim, taken, remaining)


def _holder_of(state: State, instance_uuid: str) -> tuple[Holder, InstanceRow]:
    body = uuid_bytes(instance_uuid)
    holder = None if body is None else state.holders.get(body)
    if holder is None or holder.instance is None:
        raise Conflict(f"the instance {instance_uuid} no longer exists")
    return holder, holder.instance


def _move(current: Commits, holder: Holder, pick: Pick) -> Claim | str:
    """Return the claim of an instance on a host, or why it does not fit there now."""
    state, instance = current.state, holder.instance
    assert instance is not None, "only instances move"
    found = takes_of(state, holder, pick)
    if isinstance(found, str):
        return found
    row, takes = found
    number, host_id = current.new_id("consumer"), state.hosts.ids[row]
    place = _place(state, instance, host_id=host_id, rack=state.hosts.facts[row].rack)
    group = state.groups.get(instance.group_id)
    if place is not None and group is not None and not _is_free(group, place, instance):
        return f"the policy {group.policy} of its server group keeps it away from {pick.node}"
    scope, held_by = (0, 0) if place is None else (place.scope, place.holder)
    moved = msgspec.structs.replace(instance, consumer_id=number, host_id=host_id, scope=scope, holder=held_by)
    taken = [(number, inventory_id, amount) for inventory_id, amount in takes]
    return Claim([next_consumer(holder, number)], taken, [moved], [] if place is None else [place])


def takes_of(state: State, holder: Holder | None, pick: Pick) -> tuple[int, list[tuple[int, int]]] | str:
    """Return the row of a host and an instance's amounts there, or the reason why they do not fit.

    Args:
        holder: the instance; the check counts its present allocations as free. None: it has no allocations.

    Returns:
        Pairs of an inventory's id and an amount.
    """
    row = _row_of(state, pick)
    if row is None:
        return f"{pick.node} no longer exists"
    takes = _takes(state, pick)
    if takes is None:
        return f"a provider or resource class of {pick.node} no longer exists"
    refusal = check_claim(state, takes, frees=() if holder is None else _amounts_of(state, holder))
    if refusal is not None:
        text = _TOO_LITTLE[refusal.reason].format(name=state.class_ids.name_of(refusal.class_id), amount=refusal.amount)
        return f"provider {state.providers.uuids[refusal.row]} {text}"
    ids = state.providers.ids
    return row, [(ids[provider] << CLASS_BITS | class_id, amount) for provider, class_id, amount in takes]


def next_consumer(holder: Holder, number: int) -> ConsumerRow:
    """Return a consumer under a new id, for its new allocations."""
    return ConsumerRow(number, holder.uuid, holder.project_id, holder.user_id, holder.type_id, holder.generation + 1)


def _row_of(state: State, pick: Pick) -> int | None:
    hosts = state.hosts
    found = (row for row in hosts.rows_of_name.get(pick.host.lower(), ()) if hosts.nodes[row] == pick.node)
    return next((row for row in found if hosts.alive.each[row]), None)


def _takes(state: State, pick: Pick) -> list[Take] | None:
    """Return the amounts of a pick; None: a provider or a class does not exist any more."""
    takes: list[Take] = []
    for uuid, amounts in pick.allocations.items():
        row = state.providers.row_of_uuid.get(uuid)
        for name, amount in amounts.items():
            class_id = state.class_ids.id_of(name)
            if row is None or class_id is None:
                return None
            takes.append((row, class_id, amount))
    return takes


def _amounts_of(state: State, holder: Holder) -> Iterator[Take]:
    row_of_id = state.providers.row_of_id
    return ((row_of_id[each >> CLASS_BITS], each & CLASS_MASK, amount) for each, amount in holder.takes)


def _place(state: State, instance: InstanceRow, *, host_id: int, rack: str) -> Place | None:
    """Return an instance's place in its server group on a host."""
    group = state.groups.get(instance.group_id)
    if group is None or group.policy not in GUARDED_POLICIES:
        return None
    place = place_of(group, host_id=host_id, rack=rack, domain="")
    if place is None or group.policy != "fault-domain":
        return place
    return msgspec.structs.replace(place, holder=instance.holder)  # The domain stays.


def _is_free(group: Group, place: Place, instance: InstanceRow) -> bool:
    """Return whether a place is free once the instance has left its present one."""
    holder, members = group.places.get(place.scope, (place.holder, 0))
    members -= instance.scope == place.scope and instance.holder == holder
    return members == 0 or (holder == place.holder and members < place.limit)
