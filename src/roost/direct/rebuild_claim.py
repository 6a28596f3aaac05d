"""Rebuilds the claim of an instance on its current host, as the scheduler would make it."""

from typing import NamedTuple

import msgspec

from roost.conductor.builds.alternates import next_consumer, takes_of
from roost.conductor.operation.row_changes import require_unchanged
from roost.conductor.operation.stored_request import Documents, renew_request, request_of, store_image
from roost.engine.columns.state import Holder, State
from roost.model.evidence.decision import Pick
from roost.model.names import uuid_text
from roost.model.request import Request
from roost.model.work.work_rows import StatusRow
from roost.model.writes import CLASS_BITS, CLASS_MASK, Claim, ConsumerRow, InstanceRow, Item, Place, Release
from roost.placement.writes.claims import places_of, release_of
from roost.product import Roost
from roost.scheduler.explain.rebuild_check import mark_rebuild
from roost.scheduler.framework.group_slots import place_during_move, place_of
from roost.scheduler.pipeline.host_picks import Allocations, find_allocation
from roost.scheduler.shape.shape import Shape


class PlannedClaim(NamedTuple):
    """The planned claim of an instance on its host."""

    item: Item  # one commit, on condition that the instance is unchanged
    allocations: Allocations
    outside: str = ""  # why the instance leaves its server group; empty: it stays, or has no group


class ClaimPlanner:
    """Plans claims of instances on their current hosts.

    Args:
        roost: on a database without other writers.
        documents: reads stored documents of instances.
    """

    def __init__(self, roost: Roost, documents: Documents) -> None:
        self._roost, self._documents = roost, documents
        self._placement = roost.placement

    @property
    def state(self) -> State:
        """The columns."""
        return self._placement.state

    def read_request(self, status: StatusRow) -> Request:
        """Read the request of an instance, restricted to its current host.

        Raises:
            StoreBroken: the stored request cannot be decoded.
        """
        request = renew_request(request_of(self._documents, status), status)
        return mark_rebuild(msgspec.structs.replace(request, destination=None, move=None))

    def find_row(self, status: StatusRow) -> int | None:
        """Find the row of an instance's host; None if it does not exist."""
        hosts = self.state.hosts
        rows = (row for row in hosts.rows_of_name.get(status.host.lower(), ()) if hosts.alive.each[row])
        return next((row for row in rows if hosts.nodes[row] == status.node), None)

    def read_allocations(self, holder: Holder) -> Allocations:
        """Read the allocations of a consumer, by uuids and names."""
        providers, name_of = self.state.providers, self.state.class_ids.name_of
        allocations: Allocations = {}
        for inventory_id, amount in holder.takes:
            uuid = providers.uuids[providers.row_of_id[inventory_id >> CLASS_BITS]]
            allocations.setdefault(uuid, {})[name_of(inventory_id & CLASS_MASK)] = amount
        return allocations

    def find_allocations(self, shape: Shape, status: StatusRow, row: int) -> Allocations | str:
        """Find allocations on a host to replace an instance's current ones; return them, or the reason for a failure.

        If the host has no candidate, a request with only the unsuffixed group gets allocations on the root. ``plan``
        then refuses them with a precise reason.
        """
        state, placement = self.state, self._placement
        released = placement.leave(status.uuid) if status.uuid in state.holders else None
        try:
            candidate = find_allocation(state, shape, row)
        finally:
            if released is not None:
                placement.withdraw([], released)
        if candidate is not None:
            return candidate.allocations
        groups = () if shape.query is None else shape.query.groups
        if [group.suffix for group in groups] == [""]:
            return {state.providers.uuids[state.hosts.provider_row.each[row]]: dict(groups[0].resources)}
        first = shape.fit.judge_host(state, row)
        reason = shape.fit.reasons[first] if first < len(shape.fit) else "have no candidate that all filters accept"
        return f"{status.node} is among the hosts that {reason}"

    def plan(self, shape: Shape, status: StatusRow, row: int, *, allocations: Allocations) -> PlannedClaim | str:
        """Plan a claim of allocations, or return the reason for a refusal."""
        state, hosts = self.state, self.state.hosts
        holder = state.holders.get(status.uuid)
        pick = Pick(hosts.names[row], hosts.nodes[row], hosts.facts[row].cell, uuid_text(status.uuid), allocations, {})
        takes = takes_of(state, holder, pick)
        if isinstance(takes, str):
            return takes
        number = self._placement.new_id("consumer")
        instance, places, outside = self._build_instance(shape, status, row, number=number)
        image_id, documents = store_image(state, shape.spec.request.image)
        if holder is None or holder.instance is None:
            instance = msgspec.structs.replace(instance, flavor_id=status.flavor_id, image_id=image_id)
        releases: tuple[Release, ...] = () if holder is None else (release_of(state, [holder]),)
        consumer_takes = [(number, inventory_id, amount) for inventory_id, amount in takes[1]]
        claim = Claim([_consumer(holder, status, number)], consumer_takes, [instance], places)
        return PlannedClaim(
            Item((*documents, *releases, claim), work=(require_unchanged(status),)), allocations, outside
        )

    def _build_instance(
        self, shape: Shape, status: StatusRow, row: int, *, number: int
    ) -> tuple[InstanceRow, list[Place], str]:
        """Build the rows of an instance and of its place in a server group, with the reason if it has no place."""
        state = self.state
        holder = state.holders.get(status.uuid)
        if holder is not None and holder.instance is not None:
            return msgspec.structs.replace(holder.instance, consumer_id=number), places_of(state, holder.instance), ""
        bare, group = InstanceRow(number, state.hosts.ids[row], 0), shape.spec.group
        if group is None:
            return bare, [], ""
        place = self._find_place(shape, status, row, number=number)
        if place is None:
            return msgspec.structs.replace(bare, group_id=group.id), [], ""
        place_holder, members = group.places.get(place.scope, (place.holder, 0))
        if members and (place_holder != place.holder or members >= place.limit):
            node = state.hosts.nodes[row]
            return bare, [], f"the policy {group.policy} of its server group has no place for it on {node}"
        member = msgspec.structs.replace(bare, group_id=group.id, scope=place.scope, holder=place.holder)
        return member, [place], ""

    def _find_place(self, shape: Shape, status: StatusRow, row: int, *, number: int) -> Place | None:
        """Find the place of an instance in its server group; None if it needs none."""
        state, hosts, group = self.state, self.state.hosts, shape.spec.group
        assert group is not None, "the request names it"
        place = place_of(
            group, host_id=hosts.ids[row], rack=hosts.facts[row].rack, domain=shape.spec.hint("fault_domain") or ""
        )
        migration = None if status.migration_uuid is None else state.holders.get(status.migration_uuid)
        if place is None or migration is None or group.policy != "affinity":
            return place
        providers, root = state.providers, hosts.provider_row.each[row]
        rows = (providers.row_of_id[inventory_id >> CLASS_BITS] for inventory_id, _ in migration.takes)
        return (
            place
            if any(providers.root.each[provider_row] == root for provider_row in rows)
            else place_during_move(place, number=number)
        )


def _consumer(holder: Holder | None, status: StatusRow, number: int) -> ConsumerRow:
    """Return the next consumer of an instance, under its own project and user."""
    if holder is None:
        return ConsumerRow(number, status.uuid, status.project_id, status.user_id)
    return msgspec.structs.replace(next_consumer(holder, number), project_id=status.project_id, user_id=status.user_id)
