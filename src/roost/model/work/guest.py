"""Guests: instances as the driver of a host runs them."""

from typing import Literal

import msgspec

from roost.model.devices.pci import PciRequest
from roost.model.devices.topology import InstanceTopology, PlacedCell
from roost.model.evidence.decision import Limits
from roost.model.flavor import Flavor
from roost.model.image import Image

# building: begun and not complete. prepared: room is kept for a guest that is to come from another host.
GuestState = Literal["building", "prepared", "running", "stopped"]


class GuestSpec(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All that a driver is told of an instance that it is to run."""

    uuid: str
    node: str  # it runs on
    name: str = ""
    flavor: Flavor
    image: Image = Image()
    allocations: dict[str, dict[str, int]] = {}  # provider uuid -> resource class -> amount
    mappings: dict[str, tuple[str, ...]] = {}  # suffix of a resource group -> uuids of its providers
    topology: InstanceTopology | None = None  # the memory nodes it asks for; None: it does not care
    cells: tuple[PlacedCell, ...] = ()  # where on the node these go
    pci: tuple[PciRequest, ...] = ()  # the devices it asks for
    devices: tuple[str, ...] = ()  # addresses of those that it gets; none: the driver chooses
    limits: Limits = {}  # what the node may have in use with it
    pieces: tuple[str, ...] = ()  # names of the single resources that it gets there
    is_on: bool = True  # whether it is to run when it is complete


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """What a driver has of an instance."""

    uuid: str
    node: str
    operation: str  # the mark: by which operation it came to be what it is
    state: GuestState


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """Where a guest that leaves its host is to arrive."""

    uuid: str  # of the instance
    node: str
    address: str  # of the host, as drivers of this kind know each other
    disk: str = ""  # where its disk goes
    page_sizes: tuple[int | None, ...] | None = None  # of its cells there, as ``GuestUse`` has them; None: not known
