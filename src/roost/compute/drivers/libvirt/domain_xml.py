"""Guests as domains in libvirt's XML, written and read."""

from collections.abc import Sequence
from xml.etree.ElementTree import Element, SubElement, indent, register_namespace, tostring

import msgspec

from roost.compute.drivers.libvirt.devices import Vgpu, address_of
from roost.compute.drivers.libvirt.host import Encryption, read_processors, read_xml
from roost.model.devices.numa import NumaTopology
from roost.model.image import present_properties
from roost.model.work.guest import GuestSpec

NAMESPACE = "urn:roost:guest:1"
PREFIX = "roost"
MACHINE = "q35"  # of guests with encrypted memory
_POLICY = "0x0033"  # of these guests: no debugging, no shared keys, no transfer to foreign or insecure platforms
_BUSES = {"virtio": "vd", "scsi": "sd", "sata": "sd", "usb": "sd", "ide": "hd"}
register_namespace(PREFIX, NAMESPACE)


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """The metadata that identifies a domain as a guest."""

    uuid: str
    operation: str
    node: str
    is_complete: bool
    vcpus: int
    memory_mb: int  # MiB
    disk_gb: int  # GiB
    disk: str  # path
    vgpus: tuple[Vgpu, ...] = ()


class Domain(msgspec.Struct, frozen=True, kw_only=True):
    """The domain of a guest: its mark, its specification, and the host's choices for it."""

    mark: Mark
    spec: GuestSpec
    kind: str  # such as kvm
    arch: str
    console: str = ""  # path of its console output; empty: none
    topology: NumaTopology | None = None  # memory nodes of the host for the guest
    pci: tuple[str, ...] = ()  # addresses of its devices
    network: str = ""  # libvirt's network of its card; empty: no card
    encryption: Encryption | None = None  # of its memory; None: not encrypted


def mark_of(spec: GuestSpec, operation: str, *, disk: str, vgpus: Sequence[Vgpu] = ()) -> Mark:
    """Return the mark of an incomplete guest."""
    return Mark(
        uuid=spec.uuid,
        operation=operation,
        node=spec.node,
        is_complete=False,
        vcpus=spec.flavor.vcpus,
        memory_mb=spec.flavor.memory_mb,
        disk_gb=spec.flavor.root_gb,
        disk=disk,
        vgpus=tuple(vgpus),
    )


def domain_xml(domain: Domain) -> str:
    """Return the XML that defines a guest."""
    spec, mark = domain.spec, domain.mark
    properties = present_properties(spec.image.properties)
    root = Element("domain", type=domain.kind)
    SubElement(root, "name").text = f"roost-{spec.uuid}"
    SubElement(root, "uuid").text = spec.uuid
    if spec.name:
        SubElement(root, "title").text = "".join(letter if letter.isprintable() else " " for letter in spec.name)
    SubElement(root, "metadata").append(_mark_element(mark))
    SubElement(root, "memory", unit="MiB").text = str(spec.flavor.memory_mb)
    SubElement(root, "vcpu").text = str(spec.flavor.vcpus)
    _add_memory(root, domain)
    _add_pins(root, domain)
    system = SubElement(root, "os")
    kind = SubElement(system, "type", arch=domain.arch)
    kind.text = "hvm"
    if domain.encryption is not None:
        system.set("firmware", "efi")
    if machine := properties.get("hw_machine_type") or (MACHINE if domain.encryption is not None else ""):
        kind.set("machine", machine)
    SubElement(system, "boot", dev="hd")
    features = SubElement(root, "features")
    SubElement(features, "acpi")
    SubElement(features, "apic")
    _add_cpu(root, domain)
    for event, then in (("on_poweroff", "destroy"), ("on_reboot", "restart"), ("on_crash", "destroy")):
        SubElement(root, event).text = then
    _add_devices(root, domain, properties)
    if domain.encryption is not None:
        _add_encryption(root, domain.encryption)
    indent(root)
    return tostring(root, encoding="unicode") + "\n"


def mark_xml(mark: Mark) -> str:
    """Return a mark as metadata of an existing domain: without namespace, which libvirt adds."""
    return tostring(_mark_element(mark, namespace=""), encoding="unicode")


def read_mark(text: str) -> Mark | None:
    """Return the mark in the XML of a domain; None: it is not a guest of ours.

    Raises:
        DriverNotReady: the XML is malformed.
        ValueError: an amount is not a number.
    """
    found = read_xml(text).find(f"metadata/{{{NAMESPACE}}}guest")
    if found is None:
        return None
    vgpus = [
        Vgpu(
            uuid=each.get("uuid", ""),
            gpu=each.get("gpu", ""),
            kind=each.get("type", ""),
            is_made=each.get("made") == "yes",
        )
        for each in found.iterfind(f"{{{NAMESPACE}}}vgpu")
    ]
    numbers = {name: int(found.get(name, 0)) for name in ("vcpus", "memory_mb", "disk_gb")}
    return Mark(
        uuid=found.get("uuid", ""),
        operation=found.get("operation", ""),
        node=found.get("node", ""),
        is_complete=found.get("complete") == "yes",
        disk=found.get("disk", ""),
        vgpus=tuple(vgpus),
        **numbers,
    )


def devices_of(text: str) -> tuple[set[str], set[str]]:
    """Return the addresses of PCI devices and the uuids of mediated devices of a domain."""
    pci, mdevs = set(), set()
    for device in read_xml(text).iterfind("devices/hostdev"):
        address = device.find("source/address")
        if address is not None and device.get("type") == "pci":
            pci.add(address_of(address))
        if address is not None and device.get("type") == "mdev":
            mdevs.add(address.get("uuid", ""))
    return pci, mdevs


def count_dedicated(text: str, dedicated: frozenset[int]) -> int:
    """Return the number of a domain's dedicated processors, including those of emulator threads.

    Args:
        text: XML of the domain.
        dedicated: numbers of the processors that may be dedicated.
    """
    tune = read_xml(text).find("cputune")
    if tune is None:
        return 0
    pins = [read_processors(each.get("cpuset", "")) for each in tune.iterfind("vcpupin")]
    pinned = frozenset().union(*(each for each in pins if len(each) == 1)) & dedicated
    if not pinned:
        return 0
    emulator = tune.find("emulatorpin")
    emulator_cpus = frozenset() if emulator is None else read_processors(emulator.get("cpuset", ""))
    return len(pinned | (emulator_cpus & dedicated))


def _mark_element(mark: Mark, *, namespace: str = f"{{{NAMESPACE}}}") -> Element:
    element = Element(
        f"{namespace}guest",
        uuid=mark.uuid,
        operation=mark.operation,
        node=mark.node,
        complete="yes" if mark.is_complete else "no",
        vcpus=str(mark.vcpus),
        memory_mb=str(mark.memory_mb),
        disk_gb=str(mark.disk_gb),
        disk=mark.disk,
    )
    for vgpu in mark.vgpus:
        attributes = {"uuid": vgpu.uuid, "gpu": vgpu.gpu, "type": vgpu.kind, "made": "yes" if vgpu.is_made else "no"}
        SubElement(element, f"{namespace}vgpu", attributes)
    return element


def _add_memory(root: Element, domain: Domain) -> None:
    """Add locked memory if the guest is encrypted, and the huge pages of its memory nodes."""
    cells = domain.spec.cells
    # Small pages, 4 KiB, are the default.
    sized = [(number, cell.page_size) for number, cell in enumerate(cells) if cell.page_size and cell.page_size > 4]
    if not sized and domain.encryption is None:
        return
    backing = SubElement(root, "memoryBacking")
    if domain.encryption is not None:
        SubElement(backing, "locked")
    if sized:
        pages = SubElement(backing, "hugepages")
        for number, size in sized:
            SubElement(pages, "page", size=str(size), unit="KiB", nodeset=str(number))


def _add_pins(root: Element, domain: Domain) -> None:
    """Add the guest's processors and memory nodes on the host."""
    cells = domain.spec.cells
    hosts = {} if domain.topology is None else {cell.id: cell for cell in domain.topology.cells}
    if not cells:
        shared = sorted(number for cell in hosts.values() for number in cell.cpus)
        if shared and any(cell.pcpus for cell in hosts.values()):
            root.find("vcpu").set("cpuset", _join(shared))  # type: ignore[union-attr]  # It was just added.
        return
    tune = SubElement(root, "cputune")
    # Processors of the emulator threads: reserved ones, else those of the guest.
    dedicated, near = set[int](), set[int]()
    for cell in cells:
        pinned = dict(cell.pins.pairs)
        host = hosts.get(cell.host_cell)
        shared = sorted(host.cpus) if host is not None else []
        for number in sorted(cell.cell.cpus | cell.cell.pcpus):
            on = [pinned[number]] if number in pinned else shared
            if on:
                SubElement(tune, "vcpupin", vcpu=str(number), cpuset=_join(on))
        dedicated |= {*cell.pins.reserved}
        near |= {*pinned.values()} or {*shared}
    if dedicated or near:
        SubElement(tune, "emulatorpin", cpuset=_join(sorted(dedicated or near)))
    numa = SubElement(root, "numatune")
    nodes = sorted({cell.host_cell for cell in cells})
    SubElement(numa, "memory", mode="strict", nodeset=_join(nodes))
    for number, cell in enumerate(cells):
        SubElement(numa, "memnode", cellid=str(number), mode="strict", nodeset=str(cell.host_cell))


def _add_cpu(root: Element, domain: Domain) -> None:
    cells = domain.spec.cells
    if domain.kind != "kvm" and not cells:
        return
    cpu = SubElement(root, "cpu")
    if domain.kind == "kvm":
        cpu.set("mode", "host-model")
    if cells:
        numa = SubElement(cpu, "numa")
        for number, cell in enumerate(cells):
            processors = _join(sorted(cell.cell.cpus | cell.cell.pcpus))
            SubElement(numa, "cell", id=str(number), cpus=processors, memory=str(cell.cell.memory_mb), unit="MiB")


def _add_devices(root: Element, domain: Domain, properties: dict[str, str]) -> None:
    devices = SubElement(root, "devices")
    bus = properties.get("hw_disk_bus", "virtio")
    disk = SubElement(devices, "disk", type="file", device="disk")
    SubElement(disk, "driver", name="qemu", type="raw", discard="unmap")
    SubElement(disk, "source", file=domain.mark.disk)
    SubElement(disk, "target", dev=f"{_BUSES.get(bus, 'vd')}a", bus=bus)
    if domain.network:
        card = SubElement(devices, "interface", type="network")
        SubElement(card, "source", network=domain.network)
        SubElement(card, "model", type=properties.get("hw_vif_model", "virtio"))
    if domain.console:
        serial = SubElement(devices, "serial", type="file")
        SubElement(serial, "source", path=domain.console)
        SubElement(serial, "target", port="0")
    for address in domain.pci:
        device = SubElement(devices, "hostdev", mode="subsystem", type="pci", managed="yes")
        number, bus_number, rest = address.split(":")
        slot, function = rest.split(".")
        SubElement(
            SubElement(device, "source"),
            "address",
            domain=f"0x{number}",
            bus=f"0x{bus_number}",
            slot=f"0x{slot}",
            function=f"0x{function}",
        )
    for vgpu in domain.mark.vgpus:
        device = SubElement(devices, "hostdev", mode="subsystem", type="mdev", model="vfio-pci", managed="no")
        SubElement(SubElement(device, "source"), "address", uuid=vgpu.uuid)


def _add_encryption(root: Element, encryption: Encryption) -> None:
    """Encrypt the memory, and let virtio devices use translated addresses."""
    devices = root.find("devices")
    assert devices is not None, "they are added before"
    for disk in devices.iterfind("disk"):
        if disk.find("target[@bus='virtio']") is not None:
            disk.find("driver").set("iommu", "on")  # type: ignore[union-attr]  # Each disk has one.
    for card in devices.iterfind("interface"):
        if card.find("model[@type='virtio']") is not None:
            SubElement(card, "driver", iommu="on")
    SubElement(devices, "memballoon", model="none")
    launch = SubElement(root, "launchSecurity", type="sev")
    SubElement(launch, "cbitpos").text = str(encryption.bit)
    SubElement(launch, "reducedPhysBits").text = str(encryption.reduced_bits)
    SubElement(launch, "policy").text = _POLICY


def _join(numbers: Sequence[int]) -> str:
    return ",".join(map(str, numbers))
