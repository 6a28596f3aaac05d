"""Export of a live fleet to a document that yields the same decisions."""

from collections.abc import Container
from uuid import UUID

from roost.engine.columns.image_counts import read_image
from roost.engine.columns.inventory_columns import ClassColumns
from roost.engine.columns.name_table import NameTable
from roost.engine.columns.state import Group, State
from roost.model.documents.fleet_document import (
    ONE_EACH,
    UP,
    AggregateEntry,
    FaultDomainEntry,
    FleetDocument,
    GroupRules,
    HostEntry,
    ImageEntry,
    InventoryEntry,
    ProviderEntry,
    ServerGroupEntry,
    ServiceEntry,
)
from roost.model.host import HostFacts
from roost.model.names import standard_resource_classes, standard_traits
from roost.scheduler.explain.document_names import PartIndex
from roost.scheduler.framework.group_slots import place_number
from roost.scheduler.framework.host_view import HostView


def export_fleet(state: State, *, now_s: float) -> FleetDocument:
    """Export a state to a document, with providers and their use.

    Hosts and providers keep their order, since it breaks ties. The document has no allocations of consumers: only the
    used amount of each inventory, and the instances of each host.

    Args:
        state: the fleet.
        now_s: the moment, in seconds since the epoch.
    """
    return _Export(state).build(now_s)


class _Export:
    """Converts a state, with unique names for its parts."""

    def __init__(self, state: State) -> None:
        self._state = state
        hosts = state.hosts
        self._rows = [row for row in range(len(hosts)) if hosts.alive.view[row]]
        self._uuids = HostView(state).uuids()
        self._host_names: PartIndex[int] = PartIndex("host", file="")
        for row in self._rows:
            self._host_names.add(row, self._uuids[row], [hosts.nodes[row], hosts.names[row]], at="$")
        self._instances_by_host: dict[int, list[UUID]] = {}  # by host row
        self._members_by_group: dict[int, dict[int, list[UUID]]] = {}  # by group id and host row
        self._instances_by_image: dict[int, list[UUID]] = {}  # by number of the image
        for holder in state.holders.values():
            if holder.instance is not None:
                row, uuid = hosts.row_of_id[holder.instance.host_id], UUID(bytes=holder.uuid)
                self._instances_by_host.setdefault(row, []).append(uuid)
                if holder.instance.image_id in state.images:
                    self._instances_by_image.setdefault(holder.instance.image_id, []).append(uuid)
                if holder.instance.group_id:
                    self._members_by_group.setdefault(holder.instance.group_id, {}).setdefault(row, []).append(uuid)

    def build(self, now_s: float) -> FleetDocument:
        state = self._state
        return FleetDocument(
            now=now_s,
            hosts=tuple(self._host(row) for row in self._rows),
            aggregates=tuple(self._aggregate(label) for label in sorted(state.metadata)),
            server_groups=tuple(self._group(group) for group in state.groups.values()),
            images=tuple(self._image(number) for number in sorted(self._instances_by_image)),
            providers=tuple(self._provider(row) for row in sorted(state.providers.row_of_id.values())),
            resource_classes=_custom(state.class_ids, standard_resource_classes()),
            traits=_custom(state.trait_ids, standard_traits()),
        )

    def _name(self, row: int) -> str:
        hosts = self._state.hosts
        return self._host_names.name_of(self._uuids[row], [hosts.nodes[row], hosts.names[row]])

    def _host(self, row: int) -> HostEntry:
        hosts = self._state.hosts
        facts, name, node = hosts.facts[row], hosts.names[row], hosts.nodes[row]
        columns = {column: float(values.view[row]) for column, values in hosts.columns.items()}
        return HostEntry(
            host=name,
            nodename=None if node == name else node,
            uuid=UUID(self._uuids[row]),
            cell_uuid=facts.cell or None,
            rack=facts.rack,
            host_ip=facts.host_ip or None,
            service=_service(facts),
            hypervisor_type=facts.hypervisor_type or None,
            hypervisor_version=facts.hypervisor_version or None,
            supported_instances=facts.supported_instances,
            cpu_info=facts.cpu_info or None,
            stats=facts.stats,
            metrics=facts.metrics,
            pci_pools=facts.pci_pools,
            numa_topology=facts.numa,
            vcpus_total=int(columns["vcpus_total"]),
            vcpus_used=int(columns["vcpus_used"]),
            total_usable_ram_mb=int(columns["total_usable_ram_mb"]),
            free_ram_mb=int(columns["free_ram_mb"]),
            total_usable_disk_gb=int(columns["total_usable_disk_gb"]),
            free_disk_mb=int(columns["free_disk_mb"]),
            disk_mb_used=int(columns["used_disk_gb"] * 1024),
            cpu_allocation_ratio=columns["cpu_allocation_ratio"],
            instances=tuple(self._instances_by_host.get(row, ())),
            num_instances=int(columns["num_instances"]),
            num_io_ops=int(columns["num_io_ops"]),
            failed_builds=facts.failed_builds,
        )

    def _aggregate(self, label: int) -> AggregateEntry:
        state = self._state
        is_member = state.membership.mask_of(label)
        roots = state.hosts.provider_row.view
        return AggregateEntry(
            name=state.aggregate_names[label],
            uuid=UUID(state.aggregates.name_of(label)),
            metadata=state.metadata[label],
            hosts=tuple(self._name(row) for row in self._rows if is_member[roots[row]]),
        )

    def _group(self, group: Group) -> ServerGroupEntry:
        racks = {place_number(name): name for name in self._state.hosts.racks}
        no_domain = place_number("")
        return ServerGroupEntry(
            name=group.name,
            uuid=UUID(group.uuid),
            policy=group.policy,  # type: ignore[arg-type]  # checked when stored
            rules=ONE_EACH if group.limit == 1 else GroupRules(max_server_per_host=group.limit),
            members={self._name(row): tuple(uuids) for row, uuids in self._members_by_group.get(group.id, {}).items()},
            fault_domains=tuple(
                FaultDomainEntry(
                    rack=racks.get(scope, scope), domain="" if holder == no_domain else holder, members=members
                )
                for scope, (holder, members) in group.places.items()
                if group.policy == "fault-domain"
            ),
        )

    def _image(self, number: int) -> ImageEntry:
        image = read_image(self._state.images, number)
        assert image is not None, number
        return ImageEntry(
            id=image.id,
            disk_format=image.disk_format,
            properties=image.properties,
            instances=tuple(self._instances_by_image[number]),
        )

    def _provider(self, row: int) -> ProviderEntry:
        state = self._state
        providers = state.providers
        parent = int(providers.parent.view[row])
        # For the root provider of a host, the aggregates list the host instead.
        labels = () if row in state.hosts.row_of_root else sorted(state.membership.labels_of(row))
        return ProviderEntry(
            name=providers.names[row],
            uuid=UUID(providers.uuids[row]),
            parent=None if parent < 0 else providers.uuids[parent],
            inventories={
                state.class_ids.name_of(class_id): _inventory(columns, row)
                for class_id, columns in sorted(state.classes.items())
                if row in columns.holders
            },
            traits=tuple(sorted(state.trait_ids.name_of(trait) for trait in state.traits.labels_of(row))),
            aggregates=tuple(state.aggregates.name_of(label) for label in labels),
        )


def _custom(symbols: NameTable, standard: Container[str]) -> tuple[str, ...]:
    """Return the custom names, in the order of their numbers."""
    return tuple(sorted((name for name in symbols if name not in standard), key=lambda name: symbols.id_of(name) or 0))


def _service(facts: HostFacts) -> ServiceEntry:
    service = ServiceEntry(
        disabled=facts.is_disabled,
        disabled_reason=facts.disabled_reason,
        forced_down=facts.is_forced_down,
        last_seen_up=facts.reported_at_s,
    )
    return UP if service == UP else service


def _inventory(columns: ClassColumns, row: int) -> InventoryEntry:
    return InventoryEntry(
        total=int(columns.total.view[row]),
        reserved=int(columns.reserved.view[row]),
        min_unit=int(columns.min_unit.view[row]),
        max_unit=int(columns.max_unit.view[row]),
        step_size=int(columns.step_size.view[row]),
        allocation_ratio=float(columns.ratio.view[row]),
        used=int(columns.used.view[row]),
    )
