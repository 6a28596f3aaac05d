"""Lets instances occupy their chosen hosts in the columns, and adds picks and claims to the choice."""

from roost.model.allocation import Mappings
from roost.model.names import uuid_text
from roost.model.request import Move, Request
from roost.model.writes import Claim, ConsumerRow
from roost.ports import Placement
from roost.scheduler.pipeline import move_claims
from roost.scheduler.pipeline.choice import Choice
from roost.scheduler.pipeline.host_picks import (
    HostAllocation,
    Takes,
    build_claim,
    build_pick,
    find_allocation,
    merge_claims,
)
from roost.scheduler.shape.shape import Shape

_CHECK_INTERVAL = 64  # instances per check of the budget


def occupy_hosts(
    placement: Placement, shape: Shape, request: Request, *, choice: Choice, rows: list[int], uuids: list[bytes]
) -> list[Mappings]:
    """Let the next instances of a request occupy hosts, one per row.

    Args:
        placement: the columns.
        shape, request: the request.
        choice: gets the picks and the claim.
        rows: the hosts.
        uuids: of all instances of the request.

    Returns:
        Each instance's providers by request group.
    """
    state, new_id = placement.state, placement.new_id
    allocations: dict[int, HostAllocation] = {}
    claims = []
    for at, row in enumerate(rows):
        if at % _CHECK_INTERVAL == 0:
            state.check()
        allocation = allocations.get(row)
        if allocation is None:
            allocation = find_allocation(state, shape, row)
            assert allocation is not None, "a host that passes has a candidate"
            allocations[row] = allocation
        uuid = uuids[len(choice.rows)]
        consumer = ConsumerRow(new_id("consumer"), uuid, request.project_id, request.user_id)
        if request.move is None:
            claims.append(build_claim(state, shape, row, consumer=consumer, takes=allocation.takes))
        else:
            claims += _claim_move(
                placement, shape, request.move, row=row, consumer=consumer, takes=allocation.takes, choice=choice
            )
        choice.rows.append(row)
        choice.picks.append(build_pick(state, shape, row, instance_uuid=uuid_text(uuid), allocation=allocation))
    claim = merge_claims(claims)
    placement.occupy(claim)
    choice.claims.append(claim)
    return [allocations[row].mappings for row in rows]


def _claim_move(
    placement: Placement, shape: Shape, move: Move, *, row: int, consumer: ConsumerRow, takes: Takes, choice: Choice
) -> list[Claim]:
    """Remove a moving instance from its host; return the claims of the migration and of the instance."""
    state = placement.state
    choice.departed = departed = placement.leave(consumer.uuid)
    own = build_claim(state, shape, row, consumer=move_claims.build_successor(departed, consumer.id), takes=takes)
    return move_claims.build_move_claims(
        move, departed, own, new_id=placement.new_id, state=state, host_id=state.hosts.ids[row]
    )
