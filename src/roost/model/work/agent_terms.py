"""Resources of a node, capabilities of its driver, and the terms of its inventory."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from roost.model.devices.numa import NumaTopology
from roost.model.host import PciDeviceType
from roost.model.names import AMOUNT_MAX, RATIO_MAX

_Amount = Annotated[int, Meta(ge=0, le=AMOUNT_MAX)]
_Ratio = Annotated[float, Meta(ge=0, le=RATIO_MAX)]

# Traits of driver capabilities. Those that a driver lacks are removed from the node.
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
    """The capabilities of a driver."""

    traits: frozenset[str] = frozenset()  # of CAPABILITY_TRAITS
    can_live_migrate: bool = False
    can_save: bool = False  # whether it can save the disk of a guest as an image
    has_console: bool = False
    wants_allocations: bool = False  # whether each update of providers needs them, not only a reshape

    def __post_init__(self) -> None:
        unknown = sorted(self.traits - CAPABILITY_TRAITS)
        if unknown:
            raise ValueError(f"{', '.join(unknown)} is not a trait of a driver capability")

    def as_traits(self) -> dict[str, bool]:
        """Return all capability traits, and whether this driver has each."""
        return {name: name in self.traits for name in sorted(CAPABILITY_TRAITS)}


class PciDevice(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A PCI device of a host."""

    address: str  # such as 0000:06:00.0
    vendor_id: str
    product_id: str
    dev_type: PciDeviceType = "type-PCI"
    numa_node: _Amount | None = None  # number of the nearest NUMA cell; None: none
    parent_address: str = ""  # of a virtual function: address of its physical function
    tags: dict[str, str] = {}


class NodeResources(msgspec.Struct, frozen=True, kw_only=True):
    """Resources of a node and their use, from its driver."""

    vcpus: _Amount
    memory_mb: _Amount  # MiB
    local_gb: _Amount  # GiB
    vcpus_used: _Amount
    memory_mb_used: _Amount  # MiB
    local_gb_used: _Amount  # GiB
    cpu_info: dict[str, Any]  # properties of its processor
    numa_topology: NumaTopology | None  # None: no cells, or unknown
    uuid: str | None = None  # of the node; None: unknown to the driver
    hypervisor_type: str = ""
    hypervisor_version: int = 0  # 1002003 is 1.2.3
    supported_instances: tuple[tuple[str, str, str], ...] = ()  # (architecture, hypervisor type, vm mode)
    stats: dict[str, str] = {}
    pci_devices: tuple[PciDevice, ...] = ()
    pci_in_use: dict[str, tuple[str, ...]] = {}  # uuid of the guest -> addresses of its devices


class HostTerms(msgspec.Struct, frozen=True, kw_only=True):
    """Terms of a host's inventory: reserved amounts and overcommit."""

    reserved_host_cpus: Annotated[_Amount, Meta(description="Processors reserved for the host.")] = 0
    reserved_host_memory_mb: Annotated[_Amount, Meta(description="Memory reserved for the host, in MiB.")] = 512
    reserved_host_disk_mb: Annotated[_Amount, Meta(description="Disk reserved for the host, in MiB.")] = 0
    cpu_allocation_ratio: Annotated[
        _Ratio | None, Meta(description="Overcommit of VCPU; 0 or missing: the current ratio, or the initial one.")
    ] = None
    ram_allocation_ratio: Annotated[
        _Ratio | None, Meta(description="Overcommit of MEMORY_MB; 0 or missing: the current ratio, or the initial one.")
    ] = None
    disk_allocation_ratio: Annotated[
        _Ratio | None, Meta(description="Overcommit of DISK_GB; 0 or missing: the current ratio, or the initial one.")
    ] = None
    initial_cpu_allocation_ratio: Annotated[_Ratio, Meta(description="Overcommit of VCPU on a new host.")] = 4.0
    initial_ram_allocation_ratio: Annotated[_Ratio, Meta(description="Overcommit of MEMORY_MB on a new host.")] = 1.0
    initial_disk_allocation_ratio: Annotated[_Ratio, Meta(description="Overcommit of DISK_GB on a new host.")] = 1.0


class ReshapeTerms(msgspec.Struct, frozen=True, kw_only=True):
    """Retry terms of an agent's reshapes."""

    reshape_tries: Annotated[
        Annotated[int, Meta(ge=1, le=1000)],
        Meta(
            description="Upper bound of attempts at a reshape. Each concurrent change makes an attempt fail; after the "
            "last attempt, the start of the agent fails."
        ),
    ] = 4
    reshape_pause_s: Annotated[
        Annotated[float, Meta(ge=0)],
        Meta(
            description="Pauses between attempts are random; "
            "their upper bound grows by this number of seconds each time."
        ),
    ] = 2.0
    periodic_reshape: Annotated[
        Literal["die", "log"],
        Meta(description="Reaction of a running agent to a necessary reshape: die (exit, for a restart) or log."),
    ] = "die"
