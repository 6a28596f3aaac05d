"""The fleet of a Nova as its databases describe it: cells, compute nodes, aggregates, instances."""

import msgspec

from roost.model.host import HostFacts


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """A cell with hosts. This excludes cell0, which has none."""

    uuid: str
    name: str
    is_disabled: bool = False


class ComputeNode(msgspec.Struct, frozen=True, kw_only=True):
    """A compute node and the state of its service."""

    uuid: str  # also that of its root provider
    host: str  # name of the service
    node: str  # name of the node
    cell: str  # uuid of the cell's mapping
    facts: HostFacts  # without totals of vcpus, memory and disk: these come from inventories
    is_mapped: bool  # the API database maps the host to this cell
    # Whether the node has reported its use (``free_disk_gb``), has a valid row and a service, and is mapped.
    # Choose only such nodes.
    is_ready: bool


class NovaAggregate(msgspec.Struct, frozen=True, kw_only=True):
    """An aggregate of hosts."""

    id: int
    uuid: str
    name: str
    hosts: tuple[str, ...] = ()  # sorted
    metadata: dict[str, str] = {}


class NovaInstance(msgspec.Struct, frozen=True, kw_only=True):
    """An instance on a host."""

    uuid: str
    host: str
    node: str
    cell: str  # uuid of the cell's mapping
    project_id: str
    user_id: str


class FleetChanges(msgspec.Struct, frozen=True, kw_only=True):
    """The changes between two reads; after the first read: everything."""

    computes: tuple[ComputeNode, ...] = ()  # new or changed
    gone: tuple[str, ...] = ()  # uuids of compute nodes
    aggregates: tuple[NovaAggregate, ...] | None = None  # all, sorted by id; None: unchanged
    instances: tuple[NovaInstance, ...] = ()  # new or moved
    unchanged: tuple[NovaInstance, ...] = ()  # read again, on the same host
    gone_instances: tuple[str, ...] = ()  # uuids: deleted, or on no host
    cells: tuple[Cell, ...] = ()  # all, also disabled ones
    silent_cells: dict[str, str] = {}  # uuid -> reason; their part of the fleet is that of their last answer
    # Lowest version of all services nova-compute in cells that have answered; 0: none is known.
    service_version_min: int = 0
