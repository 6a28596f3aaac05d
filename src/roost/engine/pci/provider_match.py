"""Match requested PCI devices with the providers in the allocations of an instance."""

from collections.abc import Iterable, Mapping, Sequence

from roost.engine.pci.pools import UNMAPPED, is_match
from roost.model.allocation import Mappings
from roost.model.devices.device_names import class_of_device
from roost.model.devices.pci import PciRequest
from roost.model.host import PciPool


def match_providers(
    requests: Iterable[PciRequest], allocations: Mapping[str, Mapping[str, int]], pools: Sequence[PciPool]
) -> Mappings:
    """Map each PCI device requested by the flavor to an allocated provider; map none if an allocation is missing.

    Args:
        requests: the PCI requests of the instance.
        allocations: amounts of the instance by provider uuid and class.
        pools: the devices of its host.
    """
    pools_of = {uuid: [pool for pool in pools if uuid in pool.rp_uuids] for pool in pools for uuid in pool.rp_uuids}
    seats = [
        (uuid, name)
        for uuid, amounts in allocations.items()
        for name, amount in amounts.items()
        for _ in range(amount if uuid in pools_of else 0)
    ]
    wanted = [
        (f"{request.request_id}-{number}", request)
        for request in requests
        if request.source == "flavor" and request.request_id
        for number in range(request.count)
    ]
    fitting = [
        [at for at, (uuid, name) in enumerate(seats) if _is_fit(request, name, pools_of[uuid])] for _, request in wanted
    ]
    taken = _match_seats(fitting)
    if len(taken) < len(wanted):
        return UNMAPPED
    return {wanted[device][0]: (seats[at][0],) for at, device in sorted(taken.items(), key=lambda each: each[1])}


def _is_fit(request: PciRequest, resource_class: str, pools: Sequence[PciPool]) -> bool:
    for wanted in request.alternatives:
        name = class_of_device(
            str(wanted.get("resource_class") or ""),
            vendor_id=str(wanted.get("vendor_id")),
            product_id=str(wanted.get("product_id")),
        )
        if name == resource_class and any(is_match(pool, wanted) for pool in pools):
            return True
    return False


def _match_seats(fitting: Sequence[Sequence[int]]) -> dict[int, int]:
    """Assign as many devices as possible to seats, one device each. A seat is one allocated unit of a provider.

    Args:
        fitting: for each device, the indexes of the seats it fits.

    Returns:
        Index of a seat -> index of its device.
    """
    taken: dict[int, int] = {}

    def assign(device: int, seen: set[int]) -> bool:
        for at in fitting[device]:
            if at in seen:
                continue
            seen.add(at)
            if at not in taken or assign(taken[at], seen):
                taken[at] = device
                return True
        return False

    for device in range(len(fitting)):
        assign(device, set())
    return taken
