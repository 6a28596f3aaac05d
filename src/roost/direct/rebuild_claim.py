"""The claim that an instance would have if the scheduler had chosen the host where it is."""

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
from roost.scheduler.pipeline.shape import Shape


class PlannedClaim(NamedTuple):
    """What lets an instance hold something where it is."""

    item: Item  # one commit, of an instance that is as it was read
    allocations: Allocations
    outside: str = ""  # why it is in its server group no more; empty: it is, or it has none


class ClaimPlanner:
    """Plans claims of instances that are on hosts.

    Args:
        roost: on the database that nobody else changes.
        documents: gives what is stored of instances.
    """

    def __init__(self, roost: Roost, documents: Documents) -> None:
        self._roost, self._documents = roost, documents
        self._placement = roost.placement

    @property
    def state(self) -> State:
        """The columns."""
        return self._placement.state

    def read_request(self, status: StatusRow) -> Request:
        """Return what is asked for an instance where it is, and nowhere else.

        Raises:
            StoreBroken: what is stored of it cannot be understood.
        """
        asked = renew_request(request_of(self._documents, status), status)
        return mark_rebuild(msgspec.structs.replace(asked, destination=None, move=None))

    def find_row(self, status: StatusRow) -> int | None:
        """Return the row of the host that an instance is on; None: there is none such."""
        hosts = self.state.hosts
        found = (row for row in hosts.rows_of_name.get(status.host.lower(), ()) if hosts.alive.each[row])
        return next((row for row in found if hosts.nodes[row] == status.node), None)

    def read_allocations(self, holder: Holder) -> Allocations:
        """Return what a consumer holds, by uuids and names."""
        providers, name_of = self.state.providers, self.state.class_ids.name_of
        found: Allocations = {}
        for inventory_id, amount in holder.takes:
            uuid = providers.uuids[providers.row_of_id[inventory_id >> CLASS_BITS]]
            found.setdefault(uuid, {})[name_of(inventory_id & CLASS_MASK)] = amount
        return found

    def find_allocations(self, shape: Shape, status: StatusRow, row: int) -> Allocations | str:
        """Return what an instance is to hold on a host in place of what it holds, or why it cannot be told.

        Where the host has no candidate, a request without groups of their own is that of its root, which says what
        it lacks.
        """
        state, placement = self.state, self._placement
        left = placement.leave(status.uuid) if status.uuid in state.holders else None
        try:
            found = find_allocation(state, shape, row)
        finally:
            if left is not None:
                placement.withdraw([], left)
        if found is not None:
            return found.allocations
        groups = () if shape.query is None else shape.query.groups
        if [group.suffix for group in groups] == [""]:
            return {state.providers.uuids[state.hosts.provider_row.each[row]]: dict(groups[0].resources)}
        first = shape.fit.judge_host(state, row)
        reason = shape.fit.reasons[first] if first < len(shape.fit) else "have no way that all filters accept"
        return f"{status.node} is among the hosts that {reason}"

    def plan(self, shape: Shape, status: StatusRow, row: int, *, allocations: Allocations) -> PlannedClaim | str:
        """Plan that an instance holds something, or say why it does not fit."""
        state, hosts = self.state, self.state.hosts
        holder = state.holders.get(status.uuid)
        pick = Pick(hosts.names[row], hosts.nodes[row], hosts.facts[row].cell, uuid_text(status.uuid), allocations, {})
        found = takes_of(state, holder, pick)
        if isinstance(found, str):
            return found
        number = self._placement.new_id("consumer")
        instance, places, outside = self._build_instance(shape, status, row, number=number)
        image_id, documents = store_image(state, shape.spec.request.image)
        if holder is None or holder.instance is None:
            instance = msgspec.structs.replace(instance, flavor_id=status.flavor_id, image_id=image_id)
        freed: tuple[Release, ...] = () if holder is None else (release_of(state, [holder]),)
        taken = [(number, inventory_id, amount) for inventory_id, amount in found[1]]
        claim = Claim([_consumer(holder, status, number)], taken, [instance], places)
        return PlannedClaim(Item((*documents, *freed, claim), work=(require_unchanged(status),)), allocations, outside)

    def _build_instance(
        self, shape: Shape, status: StatusRow, row: int, *, number: int
    ) -> tuple[InstanceRow, list[Place], str]:
        """Return an instance on its host, its place in its server group, and why it has none there, if so."""
        state = self.state
        holder = state.holders.get(status.uuid)
        if holder is not None and holder.instance is not None:
            return msgspec.structs.replace(holder.instance, consumer_id=number), places_of(state, holder.instance), ""
        alone, group = InstanceRow(number, state.hosts.ids[row], 0), shape.spec.group
        if group is None:
            return alone, [], ""
        place = self._find_place(shape, status, row, number=number)
        if place is None:
            return msgspec.structs.replace(alone, group_id=group.id), [], ""
        holds, members = group.places.get(place.scope, (place.holder, 0))
        if members and (holds != place.holder or members >= place.limit):
            node = state.hosts.nodes[row]
            return alone, [], f"the policy {group.policy} of its server group has no place for it on {node}"
        member = msgspec.structs.replace(alone, group_id=group.id, scope=place.scope, holder=place.holder)
        return member, [place], ""

    def _find_place(self, shape: Shape, status: StatusRow, row: int, *, number: int) -> Place | None:
        """Return the place that an instance has in its server group on its host; None: it needs none."""
        state, hosts, group = self.state, self.state.hosts, shape.spec.group
        assert group is not None, "it was asked for"
        place = place_of(
            group, host_id=hosts.ids[row], rack=hosts.facts[row].rack, domain=shape.spec.hint("fault_domain") or ""
        )
        kept = None if status.migration_uuid is None else state.holders.get(status.migration_uuid)
        if place is None or kept is None or group.policy != "affinity":
            return place
        providers, root = state.providers, hosts.provider_row.each[row]
        rows = (providers.row_of_id[inventory_id >> CLASS_BITS] for inventory_id, _ in kept.takes)
        return (
            place
            if any(providers.root.each[each] == root for each in rows)
            else place_during_move(place, number=number)
        )


def _consumer(holder: Holder | None, status: StatusRow, number: int) -> ConsumerRow:
    """Return the consumer that an instance is from then on, under its own project and user."""
    if holder is None:
        return ConsumerRow(number, status.uuid, status.project_id, status.user_id)
    return msgspec.structs.replace(next_consumer(holder, number), project_id=status.project_id, user_id=status.user_id)
