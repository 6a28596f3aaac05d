"""What a guest needs of a host beside amounts, and what of it the guest has there."""

import msgspec

from roost.model.devices.pci import PciRequest
from roost.model.devices.topology import InstanceTopology, PlacedCell
from roost.model.evidence.decision import Limits
from roost.model.host import PciPool


class GuestNeeds(msgspec.Struct, frozen=True, kw_only=True):
    """What a guest needs of a host that no allocation of Placement holds."""

    topology: InstanceTopology | None = None  # None: it may be anywhere on the host
    pci: tuple[PciRequest, ...] = ()
    limits: Limits = {}  # what the scheduler told the host; empty where it was forced
    mappings: dict[str, tuple[str, ...]] = {}  # suffix of a resource group -> uuids of the providers that serve it


class GuestAmounts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How much of a host a guest takes, by Nova's names of limits."""

    vcpu: int = 0  # shared processors and those of its own
    memory_mb: int = 0  # MiB
    disk_gb: float = 0  # GiB


class GuestUse(msgspec.Struct, frozen=True, kw_only=True):
    """What of a host's memory nodes and devices one guest has for itself, and how much of the rest."""

    cells: tuple[PlacedCell, ...] = ()  # its own memory nodes in order, each on one of the host
    devices: tuple[PciPool, ...] = ()  # of each pool so many
    amounts: GuestAmounts = GuestAmounts()  # of the host's own providers
    pieces: tuple[str, ...] = ()  # names of single resources
    addresses: tuple[str, ...] = ()  # of these devices; none: the driver chose them

    @property
    def page_sizes(self) -> tuple[int | None, ...]:
        """The size of the pages of each of its memory nodes, KiB; None: of no size in particular."""
        return tuple(cell.page_size for cell in self.cells)
