"""PCI devices for instances: the matching devices of a node, and their providers in Placement."""

from collections.abc import Iterable, Sequence

import msgspec

from roost.errors import BadSettings, quote_value
from roost.model.devices.device_names import class_of_device, traits_of_device
from roost.model.names import is_resource_class, is_trait
from roost.model.work.agent_terms import PciDevice
from roost.model.work.device_spec import DeviceSpec

SETTING = "agent.device_spec"
DEVICE_TRAIT = "COMPUTE_MANAGED_PCI_DEVICE"  # marks the providers of devices
_FUNCTIONS = frozenset({"type-VF", "vdpa"})
_ANY_DEVICE = (DeviceSpec(),)


class Slot(msgspec.Struct, frozen=True, kw_only=True):
    """The devices of one provider: one device, or the virtual functions of one device."""

    address: str  # of the device, or of the functions' parent
    resource_class: str
    traits: frozenset[str]
    devices: tuple[str, ...]  # addresses of the devices for instances


class OfferedDevices(msgspec.Struct, frozen=True, kw_only=True):
    """Devices offered to instances by one node."""

    devices: tuple[PciDevice, ...] = ()  # with the tags of their spec
    slots: tuple[Slot, ...] = ()  # in the order of the devices; a device of a physical network has no slot


def match_devices(devices: Iterable[PciDevice], specs: Sequence[DeviceSpec]) -> OfferedDevices:
    """Return the devices of a node that match a spec, with the tags of the first matching spec.

    Devices of a physical network belong to ports, and are not requested from Placement.

    Args:
        devices: from the driver.
        specs: empty: all devices match, and vendor and product name their resource classes.

    Raises:
        BadSettings: one provider would have unequal devices, a device is offered beside its own functions, or a name
            is invalid in Placement.

    Source:
        nova/compute/pci_placement_translator.py, PlacementView.
    """
    offered, slots = [], dict[str, Slot]()
    for device in devices:
        spec = next((each for each in specs or _ANY_DEVICE if each.fits(device)), None)
        if spec is None:
            continue
        offered.append(msgspec.structs.replace(device, tags=device.tags | spec.tags))
        if "physical_network" in offered[-1].tags:
            continue
        slot = _slot(device, spec)
        earlier = slots.get(slot.address)
        slots[slot.address] = slot if earlier is None else _join(earlier, slot)
    return OfferedDevices(devices=tuple(offered), slots=tuple(slots.values()))


def provider_name(node: str, address: str) -> str:
    """Return the name of a device's provider, equal to Nova's."""
    return f"{node}_{address.upper()}"


def _slot(device: PciDevice, spec: DeviceSpec) -> Slot:
    name = class_of_device(spec.resource_class, vendor_id=device.vendor_id, product_id=device.product_id)
    traits = traits_of_device(spec.traits)
    for wrong in [each for each in (name,) if not is_resource_class(each)]:
        raise BadSettings(
            SETTING, f"device {device.address} would have {quote_value(wrong)}, which is not a resource class"
        )
    for wrong in [each for each in traits if not is_trait(each)]:
        raise BadSettings(SETTING, f"device {device.address} would have {quote_value(wrong)}, which is not a trait")
    parent = device.parent_address if device.dev_type in _FUNCTIONS else ""
    return Slot(
        address=parent or device.address, resource_class=name, traits=frozenset(traits), devices=(device.address,)
    )


def _join(one: Slot, other: Slot) -> Slot:
    """Return the union of two slots with the same address."""
    (new,) = other.devices
    if one.address in (new, *one.devices):
        function = next(each for each in (new, *one.devices) if each != one.address)
        problem = f"offers device {one.address} and its function {function}: only one of the two can be assigned"
        raise BadSettings(SETTING, problem)
    for field, is_same in (
        ("resource classes", one.resource_class == other.resource_class),
        ("traits", one.traits == other.traits),
    ):
        if not is_same:
            problem = f"gives functions {one.devices[0]} and {new} of device {one.address} different {field}"
            raise BadSettings(SETTING, problem)
    return msgspec.structs.replace(one, devices=(*one.devices, new))
