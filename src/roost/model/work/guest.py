"""Guests: instances as the driver of a host runs them."""

from typing import Literal

import msgspec

from roost.model.devices.pci import PciRequest
from roost.model.devices.topology import InstanceTopology, PlacedCell
from roost.model.evidence.decision import Limits
from roost.model.flavor import Flavor
from roost.model.image import Image

# building: incomplete. prepared: the host is ready for a guest from another host.
GuestState = Literal["building", "prepared", "running", "stopped"]
COMPLETE_STATES = frozenset[GuestState]({"running", "stopped"})
# The faults of instances without a guest on their host begin with this text, followed by the host.
MISSING_GUEST = "its guest is missing on "
# The faults of instances whose only known guest is on another host: this text, that host, and the advice.
HELD_GUEST = "its guest is held on "
_HELD_ADVICE = ": reset the instance to make this its host, or delete the instance"


class GuestSpec(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The specification of a guest for its driver."""

    uuid: str
    node: str  # of the guest
    name: str = ""
    flavor: Flavor
    image: Image = Image()
    allocations: dict[str, dict[str, int]] = {}  # provider uuid -> resource class -> amount
    mappings: dict[str, tuple[str, ...]] = {}  # suffix of a request group -> uuids of its providers
    topology: InstanceTopology | None = None  # requested NUMA cells; None: any
    cells: tuple[PlacedCell, ...] = ()  # the requested cells, each on a cell of the node
    pci: tuple[PciRequest, ...] = ()  # requested devices
    devices: tuple[str, ...] = ()  # addresses of its devices; empty: the driver chooses
    limits: Limits = {}  # upper bounds of use on the node, including the guest
    pieces: tuple[str, ...] = ()  # names of its pieces (single resources) on the node
    is_on: bool = True  # whether it runs when complete


class GuestReport(msgspec.Struct, frozen=True, kw_only=True):
    """A guest as its driver reports it."""

    uuid: str
    node: str
    operation: str  # the mark: the operation that brought it into this state
    state: GuestState


class TransferTarget(msgspec.Struct, frozen=True, kw_only=True):
    """The target of a guest that leaves its host."""

    uuid: str  # of the instance
    node: str
    address: str  # of the host, in the format of its driver
    disk: str = ""  # target of its disk
    page_sizes: tuple[int | None, ...] | None = None  # of its cells there, as in ``GuestUse``; None: unknown


def fault_of_holder(holder: str) -> str:
    """Return the fault of an instance whose only known guest is on another host than its own.

    >>> holder_of(fault_of_holder("h1"))
    'h1'
    """
    return f"{HELD_GUEST}{holder}{_HELD_ADVICE}"


def holder_of(fault: str) -> str:
    """Return the holder of the guest of an instance, by its fault; empty: none."""
    is_held = fault.startswith(HELD_GUEST) and fault.endswith(_HELD_ADVICE)
    return fault[len(HELD_GUEST) : -len(_HELD_ADVICE)] if is_held else ""
