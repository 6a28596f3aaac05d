"""Claims of moves: an instance leaves its host for another one in one commit."""

from collections.abc import Callable

import msgspec

from roost.engine.columns.state import State
from roost.errors import BadRequest, Conflict, NotFound
from roost.model.names import uuid_bytes
from roost.model.request import Move, Request
from roost.model.writes import CLASS_BITS, Claim, ConsumerRow
from roost.ports import DepartedInstance, IdKind
from roost.scheduler.framework.group_slots import is_outside, place_during_move, return_place


def complete_request(request: Request, state: State) -> Request:
    """Add a move's instance, server group and owner to its request.

    Raises:
        BadRequest: a uuid is invalid.
        Conflict: the migration's uuid already belongs to another consumer.
        NotFound: the instance does not exist.
    """
    move = request.move
    assert move is not None
    uuid = uuid_bytes(move.instance_uuid)
    holder = None if uuid is None else state.holders.get(uuid)
    if uuid is None:
        raise BadRequest(f"the instance {move.instance_uuid!r} is not a valid UUID")
    if holder is None or (holder.instance is None and not move.holds_both):
        raise NotFound("instance", move.instance_uuid)
    if move.migration_uuid is not None and not move.holds_both:
        migration = uuid_bytes(move.migration_uuid)
        if migration is None:
            raise BadRequest(f"the migration {move.migration_uuid!r} is not a valid UUID")
        if migration in state.holders:
            raise Conflict(f"the consumer {move.migration_uuid} exists already", problem_type="already-exists")
    group = None if holder.instance is None else state.groups.get(holder.instance.group_id)
    return msgspec.structs.replace(
        request,
        instance_uuids=(move.instance_uuid,),
        group=group.uuid if request.group_joined is None and group is not None else request.group,
        project_id=request.project_id or holder.project_id,
        user_id=request.user_id or holder.user_id,
    )


def build_successor(departed: DepartedInstance, number: int) -> ConsumerRow:
    """Return the instance's consumer on its new host, with another number."""
    (before,) = departed.held.consumers
    return msgspec.structs.replace(before, id=number, generation=before.generation + 1)


def build_move_claims(
    move: Move,
    departed: DepartedInstance,
    claim: Claim,
    *,
    new_id: Callable[[IdKind], int],
    state: State,
    host_id: int,
) -> list[Claim]:
    """Return the claims of a move: that of the migration, if it has one, and that of the instance.

    Args:
        move: the move.
        departed: the instance on its previous host.
        claim: the claim of an equal instance that does not move.
        new_id: allocates numbers.
        state: the columns.
        host_id: the new host.
    """
    if move.holds_both:
        return [_add_previous(departed, claim)]
    migration = build_migration_claim(move, departed, new_id, state=state, host_id=host_id)
    return [*migration, build_instance_claim(move, departed, claim, state=state)]


def _add_previous(departed: DepartedInstance, claim: Claim) -> Claim:
    """Return the claim of an instance that keeps its previous allocations.

    On a provider of both hosts, such as shared storage, the previous amounts stay, as in Nova.
    """
    number = claim.consumers[0].id
    previous = [(number, inventory_id, amount) for _, inventory_id, amount in departed.held.takes]
    providers = {inventory_id >> CLASS_BITS for _, inventory_id, _ in previous}
    added = [take for take in claim.takes if take[1] >> CLASS_BITS not in providers]
    return Claim(claim.consumers, [*previous, *added], claim.instances, claim.places)


def build_migration_claim(
    move: Move, departed: DepartedInstance, new_id: Callable[[IdKind], int], *, state: State, host_id: int
) -> list[Claim]:
    """Return the migration's claim on the instance's previous allocations, if the move has a migration.

    Args:
        move: the move.
        departed: the instance on its previous host.
        new_id: allocates numbers.
        state: the columns.
        host_id: the new host.
    """
    uuid = None if move.migration_uuid is None else uuid_bytes(move.migration_uuid)
    if uuid is None:
        return []
    (before,), (instance,) = departed.held.consumers, departed.held.instances
    number = new_id("consumer")
    consumer = ConsumerRow(number, uuid, before.project_id, before.user_id)
    takes = [(number, inventory_id, amount) for _, inventory_id, amount in departed.held.takes]
    slot = return_place(state.groups.get(instance.group_id), instance, number=number, host_id=host_id)
    return [Claim([consumer], takes, *(([], []) if slot is None else ([slot[0]], [slot[1]])))]


def build_instance_claim(move: Move, departed: DepartedInstance, claim: Claim, *, state: State) -> Claim:
    """Return the instance's claim on its new host, with its server group slot during the move.

    Args:
        move: the move.
        departed: the instance on its previous host.
        claim: the claim of an equal instance that does not move.
        state: the columns.
    """
    (instance,), (before,) = claim.instances, departed.held.instances
    group = state.groups.get(instance.group_id)
    may_return = move.may_return and instance.host_id != before.host_id
    if (
        not may_return
        or group is None
        or group.policy != "affinity"
        or is_outside(group, before, host_id=before.host_id)
    ):
        return claim
    place = place_during_move(claim.places[0], number=instance.consumer_id)
    row = msgspec.structs.replace(instance, holder=place.holder)
    return Claim(claim.consumers, claim.takes, [row], [place])
