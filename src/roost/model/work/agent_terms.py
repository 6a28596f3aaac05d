"""What the agent of a host learns of it: what a node has, what its driver can, on which terms it is offered."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from roost.model.devices.numa import NumaTopology
from roost.model.host import PciDeviceType
from roost.model.names import AMOUNT_MAX, RATIO_MAX

_Amount = Annotated[int, Meta(ge=0, le=AMOUNT_MAX)]
_Ratio = Annotated[float, Meta(ge=0, le=RATIO_MAX)]

# Traits that say what a driver can. One of them that a driver has not is taken from the node.
CAPABILITY_TRAITS = frozenset(
    {
        "COMPUTE_ACCELERATORS",
        "COMPUTE_ADDRESS_SPACE_EMULATED",
        "COMPUTE_ADDRESS_SPACE_PASSTHROUGH",
        "COMPUTE_DEVICE_TAGGING",
        "COMPUTE_EPHEMERAL_ENCRYPTION",
        "COMPUTE_EPHEMERAL_ENCRYPTION_LUKS",
        "COMPUTE_EPHEMERAL_ENCRYPTION_PLAIN",
        "COMPUTE_IMAGE_TYPE_AKI",
        "COMPUTE_IMAGE_TYPE_AMI",
        "COMPUTE_IMAGE_TYPE_ARI",
        "COMPUTE_IMAGE_TYPE_ISO",
        "COMPUTE_IMAGE_TYPE_PLOOP",
        "COMPUTE_IMAGE_TYPE_QCOW2",
        "COMPUTE_IMAGE_TYPE_RAW",
        "COMPUTE_IMAGE_TYPE_VDI",
        "COMPUTE_IMAGE_TYPE_VHD",
        "COMPUTE_IMAGE_TYPE_VHDX",
        "COMPUTE_IMAGE_TYPE_VMDK",
        "COMPUTE_MEM_BACKING_FILE",
        "COMPUTE_NET_ATTACH_INTERFACE",
        "COMPUTE_NET_ATTACH_INTERFACE_WITH_TAG",
        "COMPUTE_REMOTE_MANAGED_PORTS",
        "COMPUTE_RESCUE_BFV",
        "COMPUTE_SAME_HOST_COLD_MIGRATE",
        "COMPUTE_SECURITY_STATELESS_FIRMWARE",
        "COMPUTE_SECURITY_UEFI_SECURE_BOOT",
        "COMPUTE_SHARE_LOCAL_FS",
        "COMPUTE_SOCKET_PCI_NUMA_AFFINITY",
        "COMPUTE_TRUSTED_CERTS",
        "COMPUTE_VOLUME_ATTACH",
        "COMPUTE_VOLUME_ATTACH_WITH_TAG",
        "COMPUTE_VOLUME_EXTEND",
        "COMPUTE_VOLUME_MULTI_ATTACH",
    }
)


class Capabilities(msgspec.Struct, frozen=True, kw_only=True):
    """What a driver can."""

    traits: frozenset[str] = frozenset()  # of CAPABILITY_TRAITS
    can_live_migrate: bool = False
    can_save: bool = False  # the disk of a guest, as an image
    has_console: bool = False
    wants_allocations: bool = False  # each time that it updates providers, not only where something must move

    def __post_init__(self) -> None:
        unknown = sorted(self.traits - CAPABILITY_TRAITS)
        if unknown:
            raise ValueError(f"{', '.join(unknown)} says nothing of what a driver can")

    def as_traits(self) -> dict[str, bool]:
        """Return all traits that say what drivers can, and whether this one can it."""
        return {name: name in self.traits for name in sorted(CAPABILITY_TRAITS)}


class PciDevice(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A PCI device of a host."""

    address: str  # such as 0000:06:00.0
    vendor_id: str
    product_id: str
    dev_type: PciDeviceType = "type-PCI"
    numa_node: _Amount | None = None  # the cell it is near to; None: none
    parent_address: str = ""  # of a virtual function: its physical one
    tags: dict[str, str] = {}


class NodeResources(msgspec.Struct, frozen=True, kw_only=True):
    """What a node has and has in use, as its driver sees it."""

    vcpus: _Amount
    memory_mb: _Amount  # MiB
    local_gb: _Amount  # GiB
    vcpus_used: _Amount
    memory_mb_used: _Amount  # MiB
    local_gb_used: _Amount  # GiB
    cpu_info: dict[str, Any]  # what its processor says of itself
    numa_topology: NumaTopology | None  # None: it has no cells, or does not say
    uuid: str | None = None  # of the node; None: the driver knows none
    hypervisor_type: str = ""
    hypervisor_version: int = 0  # 1002003 is 1.2.3
    supported_instances: tuple[tuple[str, str, str], ...] = ()  # (architecture, hypervisor type, vm mode)
    stats: dict[str, str] = {}
    pci_devices: tuple[PciDevice, ...] = ()
    pci_in_use: dict[str, tuple[str, ...]] = {}  # by uuid of the guest: addresses of the devices that it has


class HostTerms(msgspec.Struct, frozen=True, kw_only=True):
    """On which terms a host offers what it has: what it keeps for itself, and overcommit."""

    reserved_host_cpus: Annotated[_Amount, Meta(description="Processors that no instance may have.")] = 0
    reserved_host_memory_mb: Annotated[_Amount, Meta(description="MiB that no instance may have.")] = 512
    reserved_host_disk_mb: Annotated[_Amount, Meta(description="MiB of disk that no instance may have.")] = 0
    cpu_allocation_ratio: Annotated[
        _Ratio | None, Meta(description="Overcommit of VCPU; 0 or left out: as it is, or the initial one.")
    ] = None
    ram_allocation_ratio: Annotated[
        _Ratio | None, Meta(description="Overcommit of MEMORY_MB; 0 or left out: as it is, or the initial one.")
    ] = None
    disk_allocation_ratio: Annotated[
        _Ratio | None, Meta(description="Overcommit of DISK_GB; 0 or left out: as it is, or the initial one.")
    ] = None
    initial_cpu_allocation_ratio: Annotated[_Ratio, Meta(description="Overcommit of VCPU on a new host.")] = 4.0
    initial_ram_allocation_ratio: Annotated[_Ratio, Meta(description="Overcommit of MEMORY_MB on a new host.")] = 1.0
    initial_disk_allocation_ratio: Annotated[_Ratio, Meta(description="Overcommit of DISK_GB on a new host.")] = 1.0


class ReshapeTerms(msgspec.Struct, frozen=True, kw_only=True):
    """How an agent brings to Placement what moves from provider to provider."""

    reshape_tries: Annotated[
        Annotated[int, Meta(ge=1, le=1000)],
        Meta(description="How often an update is tried that others come before; then a start gives up."),
    ] = 4
    reshape_pause_s: Annotated[
        Annotated[float, Meta(ge=0)],
        Meta(description="Seconds by which the longest pause grows from try to try; each is a random part of it."),
    ] = 2.0
    periodic_reshape: Annotated[
        Literal["die", "log"],
        Meta(description="What an agent does that finds out only while it runs: die, so that it starts anew; or log."),
    ] = "die"
