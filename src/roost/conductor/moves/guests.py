"""The guests of instances, as described in orders."""

from roost.conductor.operation.step import Desk, View
from roost.engine.columns.state import State
from roost.model.image import Image
from roost.model.names import uuid_text
from roost.model.request import Request
from roost.model.work.guest import GuestSpec
from roost.model.work.operation import InstanceBuild, InstanceMove
from roost.model.writes import CLASS_BITS, CLASS_MASK
from roost.scheduler.numa.constraints import topology_of


def allocations_of(state: State, uuid: bytes) -> dict[str, dict[str, int]]:
    """Return the allocations of a consumer: provider uuid -> class -> amount."""
    holder, allocations = state.holders.get(uuid), dict[str, dict[str, int]]()
    for inventory_id, amount in () if holder is None else holder.takes:
        provider = state.providers.uuids[state.providers.row_of_id[inventory_id >> CLASS_BITS]]
        allocations.setdefault(provider, {})[state.class_ids.name_of(inventory_id & CLASS_MASK)] = amount
    return allocations


def guest_here(view: View, desk: Desk, request: Request, *, is_on: bool) -> GuestSpec:
    """Return the guest of the instance in view on its present host.

    Args:
        request: to build the instance now.
        is_on: whether it runs afterwards.

    Raises:
        BadRequest: the request is no longer valid.
    """
    status = view.status
    return GuestSpec(
        uuid=uuid_text(status.uuid),
        node=status.node,
        name=status.name,
        flavor=request.flavor,
        image=request.image or Image(),
        allocations=allocations_of(desk.current.state, status.uuid),
        topology=topology_of(request),
        pci=desk.devices(request),
        is_on=is_on,
    )


def guest_of_pick(body: InstanceMove | InstanceBuild, uuid: bytes, *, is_on: bool = True) -> GuestSpec:
    """Return the guest of an instance on the first of its picks.

    Args:
        is_on: whether it runs once it is complete.
    """
    pick, request = body.picks[0], body.request
    return GuestSpec(
        uuid=uuid_text(uuid),
        node=pick.node,
        name=body.name,
        flavor=request.flavor,
        image=request.image or Image(),
        allocations=pick.allocations,
        mappings=pick.mappings,
        topology=body.needs.topology,
        pci=body.needs.pci,
        limits=pick.limits,
        is_on=is_on,
    )
