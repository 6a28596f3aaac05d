"""The needs of a guest in addition to its allocations, and its use of a host."""

import msgspec

from roost.model.devices.pci import PciRequest
from roost.model.devices.topology import InstanceTopology, PlacedCell
from roost.model.evidence.decision import Limits
from roost.model.host import PciPool


class GuestNeeds(msgspec.Struct, frozen=True, kw_only=True):
    """The needs of a guest that allocations of Placement do not express."""

    topology: InstanceTopology | None = None  # None: it may be anywhere on the host
    pci: tuple[PciRequest, ...] = ()
    limits: Limits = {}  # from the scheduler; empty for a forced host
    mappings: dict[str, tuple[str, ...]] = {}  # suffix of a resource group -> uuids of the providers that serve it


class GuestAmounts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The amounts of a guest, under the names of Nova's limits."""

    vcpu: int = 0  # shared and dedicated processors
    memory_mb: int = 0  # MiB
    disk_gb: float = 0  # GiB


class GuestUse(msgspec.Struct, frozen=True, kw_only=True):
    """The NUMA cells, devices and amounts of one guest on its host."""

    cells: tuple[PlacedCell, ...] = ()  # in order, each on a host cell
    devices: tuple[PciPool, ...] = ()  # as pools, with counts
    amounts: GuestAmounts = GuestAmounts()  # on the host's own providers
    pieces: tuple[str, ...] = ()  # names of its pieces (single resources)
    addresses: tuple[str, ...] = ()  # addresses of the devices; empty: the driver chose them

    @property
    def page_sizes(self) -> tuple[int | None, ...]:
        """The page size of each NUMA cell, KiB; None: any size."""
        return tuple(cell.page_size for cell in self.cells)
