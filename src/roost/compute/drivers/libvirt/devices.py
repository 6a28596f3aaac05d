"""The devices of a host, from libvirt's XML, and their choice for a guest: PCI devices and vGPUs."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from uuid import NAMESPACE_URL, uuid5
from xml.etree.ElementTree import Element, SubElement, indent, tostring

import msgspec

from roost.compute.drivers.libvirt.host import read_xml
from roost.errors import BuildFailed, DriverNotReady, first_line
from roost.model.work.agent_terms import PciDevice

ANY_GPU = ""
VGPU = "VGPU"


class Gpu(msgspec.Struct, frozen=True, kw_only=True):
    """A physical device that supports mediated devices."""

    name: str  # such as pci_0000_06_00_0
    available: dict[str, int]  # number of further mediated devices, by type


class Mdev(msgspec.Struct, frozen=True, kw_only=True):
    """An existing mediated device."""

    name: str  # such as mdev_4b20d080_1b54_4048_85b3_a6a62d165c01
    uuid: str
    kind: str  # its type, such as nvidia-35
    gpu: str  # name of the physical device


class NodeDevices(msgspec.Struct, frozen=True, kw_only=True):
    """The devices of a host."""

    pci: tuple[PciDevice, ...] = ()
    gpus: tuple[Gpu, ...] = ()
    mdevs: tuple[Mdev, ...] = ()


class Vgpu(msgspec.Struct, frozen=True, kw_only=True):
    """A vGPU of a guest: a mediated device."""

    uuid: str
    gpu: str
    kind: str
    is_made: bool = False  # whether it was created for this guest, and is deleted with it


def read_devices(texts: Iterable[str]) -> NodeDevices:
    """Return the PCI devices, GPUs and mediated devices among libvirt's node devices, sorted by address or name.

    Raises:
        DriverNotReady: a device is malformed.
    """
    pci, gpus, mdevs = [], [], []
    for text in texts:
        device = read_xml(text)
        name = device.findtext("name", "")
        capability = device.find("capability")
        kind = "" if capability is None else capability.get("type", "")
        try:
            if capability is not None and kind == "pci":
                pci.append(_pci(capability))
            if capability is not None and kind == "mdev":
                mdevs.append(_mdev(device, capability))
            if types := device.findall("capability/capability[@type='mdev_types']/type"):
                available = {each.get("id", ""): int(each.findtext("availableInstances", "0")) for each in types}
                gpus.append(Gpu(name=name, available=available))
        except ValueError as error:
            raise DriverNotReady(f"libvirt returned a malformed device {name}: {first_line(error)}") from None
    return NodeDevices(
        pci=tuple(sorted(pci, key=lambda each: each.address)),
        gpus=tuple(sorted(gpus, key=lambda each: each.name)),
        mdevs=tuple(sorted(mdevs, key=lambda each: each.name)),
    )


# --- PCI devices ---


def passthrough(devices: Iterable[PciDevice], kinds: Iterable[tuple[str, str]]) -> tuple[PciDevice, ...]:
    """Return the devices for instances.

    Args:
        devices: devices of the host.
        kinds: (vendor, product) of devices for instances, in lower case; product ``*`` is any.
    """
    kinds = {*kinds}
    return tuple(
        each for each in devices if not kinds.isdisjoint({(each.vendor_id, each.product_id), (each.vendor_id, "*")})
    )


# --- vGPUs ---


def vgpu_kind(gpu: Gpu, enabled: Sequence[str]) -> str | None:
    """Return the type of a GPU's mediated devices: the first enabled one; None: none is enabled."""
    return next((kind for kind in enabled if kind in gpu.available), None)


def vgpu_totals(devices: NodeDevices, enabled: Sequence[str]) -> dict[str, int]:
    """Return the number of vGPUs of each GPU, used or free; GPUs without any are left out."""
    totals = {}
    for gpu in devices.gpus:
        kind = vgpu_kind(gpu, enabled)
        if kind is not None:
            there = sum((each.gpu, each.kind) == (gpu.name, kind) for each in devices.mdevs)
            totals[gpu.name] = gpu.available[kind] + there
    return {name: total for name, total in totals.items() if total}


def choose_vgpus(
    counts: Mapping[str, int], devices: NodeDevices, *, enabled: Sequence[str], used: Collection[str], owner: str
) -> tuple[Vgpu, ...]:
    """Return vGPUs for a guest: existing free ones first, then new ones.

    Args:
        counts: number of vGPUs by name of the GPU; ``ANY_GPU``: on any GPU.
        devices: devices of the host.
        enabled: types of mediated devices, the preferred one first.
        used: uuids of mediated devices in use by guests.
        owner: identifies guest and operation; new vGPUs for the same owner have the same uuids.

    Raises:
        BuildFailed: there are not enough free vGPUs.
    """
    chosen: list[Vgpu] = []
    # Requests for a particular GPU come first, so that no other takes it.
    for name in sorted(counts, key=lambda each: each == ANY_GPU):
        for _ in range(counts[name]):
            new_uuid = str(uuid5(NAMESPACE_URL, f"roost:{owner}:{len(chosen)}"))
            gpus = [gpu for gpu in devices.gpus if name in (ANY_GPU, gpu.name)]
            parts = (
                _free_part(gpu, devices, enabled=enabled, used=used, chosen=chosen, new_uuid=new_uuid) for gpu in gpus
            )
            found = next((each for each in parts if each is not None), None)
            if found is None:
                raise BuildFailed(f"{name or 'the host'} lacks {counts[name]} free {VGPU}")
            chosen.append(found)
    return tuple(chosen)


def mdev_xml(vgpu: Vgpu) -> str:
    """Return the XML that creates a mediated device."""
    device = Element("device")
    SubElement(device, "parent").text = vgpu.gpu
    capability = SubElement(device, "capability", type="mdev")
    SubElement(capability, "type", id=vgpu.kind)
    SubElement(capability, "uuid").text = vgpu.uuid
    indent(device)
    return tostring(device, encoding="unicode")


def address_of(element: Element) -> str:
    """Return the address of a PCI device, such as 0000:06:00.0, from an element with its parts as attributes."""
    domain, bus, slot, function = (int(element.get(part, "0"), 16) for part in ("domain", "bus", "slot", "function"))
    return f"{domain:04x}:{bus:02x}:{slot:02x}.{function:x}"


def _free_part(
    gpu: Gpu,
    devices: NodeDevices,
    *,
    enabled: Sequence[str],
    used: Collection[str],
    chosen: Sequence[Vgpu],
    new_uuid: str,
) -> Vgpu | None:
    """Return a free vGPU of a GPU, else a new one with the uuid ``new_uuid``."""
    kind = vgpu_kind(gpu, enabled)
    if kind is None:
        return None
    busy = {*used, *(each.uuid for each in chosen)}
    for each in devices.mdevs:
        if (each.gpu, each.kind) == (gpu.name, kind) and each.uuid not in busy:
            return Vgpu(uuid=each.uuid, gpu=gpu.name, kind=kind)
    if sum(each.is_made and each.gpu == gpu.name for each in chosen) >= gpu.available[kind]:
        return None
    return Vgpu(uuid=new_uuid, gpu=gpu.name, kind=kind, is_made=True)


def _pci(capability: Element) -> PciDevice:
    # These parts are decimal here, but hexadecimal in an address element.
    domain, bus, slot, function = (
        int(capability.findtext(part, "0")) for part in ("domain", "bus", "slot", "function")
    )
    parent = capability.find("capability[@type='phys_function']/address")
    functions = capability.find("capability[@type='virt_functions']")
    numa = capability.find("numa")
    return PciDevice(
        address=f"{domain:04x}:{bus:02x}:{slot:02x}.{function:x}",
        vendor_id=_hex(capability.find("vendor")),
        product_id=_hex(capability.find("product")),
        dev_type="type-VF" if parent is not None else "type-PF" if functions is not None else "type-PCI",
        numa_node=None if numa is None else int(numa.get("node", "0")),
        parent_address="" if parent is None else address_of(parent),
    )


def _mdev(device: Element, capability: Element) -> Mdev:
    kind = capability.find("type")
    name = device.findtext("name", "")
    uuid = capability.findtext("uuid") or name.removeprefix("mdev_")[:36].replace("_", "-")
    return Mdev(
        name=name, uuid=uuid, kind="" if kind is None else kind.get("id", ""), gpu=device.findtext("parent", "")
    )


def _hex(element: Element | None) -> str:
    return "" if element is None else element.get("id", "").removeprefix("0x").lower()
