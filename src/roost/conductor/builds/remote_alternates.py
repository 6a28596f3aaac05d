"""Alternates after a failed build, if a remote Placement keeps the allocations."""

import msgspec

from roost.conductor.builds.alternates import AlternateStep, next_alternate
from roost.errors import Conflict, PlacementGone
from roost.model.evidence.decision import Decision, Pick
from roost.model.names import uuid_bytes
from roost.model.writes import Claim, Item, Release
from roost.placement.writes.claims import claim_of, release_of
from roost.ports import Commits, RemotePlacement


def next_remote_alternate(
    current: Commits,
    remote: RemotePlacement,
    decision: Decision,
    *,
    instance_uuid: str | None,
    from_host: str | None = None,
) -> tuple[Pick, int]:
    """Claim the next alternate of an instance, here and at the remote Placement.

    Args:
        decision, instance_uuid, from_host: as for ``next_alternate``.

    Returns:
        The new pick, and the number of alternates after it.

    Raises:
        BadRequest, NotFound, Conflict: as ``next_alternate``; the instance has not moved.
        PlacementGone: the remote Placement does not answer. The instance has not moved here; its allocations may have
            moved there.
    """
    while True:
        step = next_alternate(current, decision, instance_uuid, from_host=from_host)
        if transfer_remote_claim(current, remote, step):
            return step.pick, step.remaining
        decision = _without(decision, step.pick)


def transfer_remote_claim(current: Commits, remote: RemotePlacement, step: AlternateStep) -> bool:
    """Claim the place here, then the amounts at the remote Placement; return whether both succeeded.

    If the amounts cannot be claimed, the instance gets its old place back.
    """
    pick = step.pick
    before = current.state.holders[uuid_bytes(pick.instance_uuid) or b""]
    places = step.release.places
    if current.commit([Item(writes=(step.release, msgspec.structs.replace(step.claim, takes=[])))])[0] is not None:
        current.refresh()
        return False
    try:
        is_taken = remote.replace(
            pick.instance_uuid, pick.allocations, project_id=before.project_id, user_id=before.user_id
        )
    except PlacementGone:
        _return_place(current, pick, claim_of(before, places))
        raise
    if not is_taken:
        _return_place(current, pick, claim_of(before, places))
    return is_taken


def _return_place(current: Commits, pick: Pick, held: Claim) -> None:
    """Give an instance its old place back.

    Raises:
        Conflict: the place is taken; the instance keeps its present one.
    """
    number = current.new_id("consumer")
    holder = current.state.holders[uuid_bytes(pick.instance_uuid) or b""]
    (consumer,), (instance,) = held.consumers, held.instances
    claim = msgspec.structs.replace(
        held,
        consumers=[msgspec.structs.replace(consumer, id=number, generation=holder.generation + 1)],
        instances=[msgspec.structs.replace(instance, consumer_id=number)],
    )
    release: Release = release_of(current.state, [holder])
    if current.commit([Item(writes=(release, claim))])[0] is not None:
        raise Conflict(f"the former place of instance {pick.instance_uuid} was taken while {pick.host} was tried")


def _without(decision: Decision, pick: Pick) -> Decision:
    """Return a decision without a failed alternate."""
    alternates = {
        cell: [each for each in picks if (each.host, each.node) != (pick.host, pick.node)]
        for cell, picks in decision.alternates.items()
    }
    return msgspec.structs.replace(decision, alternates=alternates)
