"""Loading of a fleet document into a temporary Roost."""

from collections.abc import Container, Iterable, Mapping

import msgspec

from roost.app import open_ephemeral
from roost.engine.columns.apply import apply, occupy, override_host
from roost.engine.columns.state import Group
from roost.errors import BadFile, RoostError
from roost.model.documents.fleet_document import (
    AggregateEntry,
    FleetDocument,
    HostEntry,
    ProviderEntry,
    ServerGroupEntry,
)
from roost.model.fleet import Fleet
from roost.model.group import ServerGroup
from roost.model.host import Aggregate, HostFacts, HostSpec
from roost.model.image import Image
from roost.model.names import is_resource_class, is_trait
from roost.model.provider import Inventory, ProviderSpec
from roost.model.settings.roost_settings import Settings
from roost.model.writes import CLASS_BITS, Claim, ConsumerRow, InstanceRow, Place, PutDocument
from roost.ports import Clock, Random
from roost.scheduler.explain.document_names import PartIndex, uuid_for
from roost.scheduler.framework.group_slots import place_number, place_of
from roost.scheduler.rule_support.scopes import ZONE


class DocumentFleet:
    """A Roost on the fleet of a document.

    Args:
        document: the fleet.
        file: name of the document in errors.
        settings, clock, random: for the Roost.

    Raises:
        BadFile: a part is duplicate, or a name is unknown.
    """

    def __init__(self, document: FleetDocument, *, file: str, settings: Settings, clock: Clock, random: Random) -> None:
        self._document = document
        self._file = file
        self.hosts: PartIndex[int] = PartIndex("host", file=file)  # positions in the document, equal to host rows
        self.aggregates: PartIndex[str] = PartIndex("aggregate", file=file)  # uuids
        self.groups: PartIndex[str] = PartIndex("server group", file=file)  # uuids
        self._providers: PartIndex[int] = PartIndex("provider", file=file)  # positions
        self.is_searched = document.providers is not None
        self.roost = open_ephemeral(settings, clock=clock, random=random)
        self._uuids = self._name_hosts()
        fleet = self._fleet()
        self._check_names(document.resource_classes, document.traits, at="$")
        try:
            ensure_names = self.roost.placement.ensure_names
            for name in document.resource_classes:  # one by one, so that their numbers rise in this order
                ensure_names(resource_classes=(name,))
            ensure_names(traits=document.traits)
            self.roost.install(fleet)
        except RoostError as error:
            raise BadFile(file, str(error)) from None
        self._use_providers()
        self._put_instances()
        self._override_hosts()

    def _error(self, at: str, problem: str) -> BadFile:
        return BadFile(self._file, f"{at}: {problem}")

    # --- names -------------------------------------------------------------------------------------------------------

    def _name_hosts(self) -> list[str]:
        """Register the names of providers and hosts; return the uuid of each host's root provider."""
        for row, provider in enumerate(self._document.providers or ()):
            uuid = str(provider.uuid or uuid_for("provider", provider.name))
            self._providers.add(row, uuid, [provider.name], at=f"$.providers[{row}]")
        uuids = []
        seen: dict[tuple[str, str], int] = {}
        for row, entry in enumerate(self._document.hosts):
            at, node = f"$.hosts[{row}]", node_of(entry)
            if entry.nodename and entry.hypervisor_hostname and entry.nodename != entry.hypervisor_hostname:
                raise self._error(at, "nodename and hypervisor_hostname differ")
            first = seen.setdefault((entry.host, node), row)
            if first != row:
                raise self._error(
                    at, f"the host {entry.host!r} with the node {node!r} is a duplicate of $.hosts[{first}]"
                )
            uuid = self._provider_of(entry, at) if self.is_searched else str(entry.uuid or uuid_for(entry.host, node))
            self.hosts.add(row, uuid, [node, entry.host], at=at)
            uuids.append(uuid)
        return uuids

    def _provider_of(self, entry: HostEntry, at: str) -> str:
        name = str(entry.uuid) if entry.uuid else node_of(entry)
        provider = (self._document.providers or ())[self._providers.find(name, at=at)]
        if provider.parent is not None:
            raise self._error(at, f"its provider {provider.name!r} is not the root of a tree")
        return str(provider.uuid or uuid_for("provider", provider.name))

    # --- fleet -------------------------------------------------------------------------------------------------------

    def _fleet(self) -> Fleet:
        aggregates, memberships = self._aggregates()
        groups = []
        for at, entry in enumerate(self._document.server_groups):
            if not entry.name and entry.uuid is None:
                raise self._error(f"$.server_groups[{at}]", "it has neither a name nor a uuid")
            uuid = str(entry.uuid or uuid_for("group", entry.name))
            self.groups.add(uuid, uuid, [entry.name], at=f"$.server_groups[{at}]")
            limit = entry.rules.max_server_per_host
            groups.append(ServerGroup(uuid=uuid, name=entry.name, policy=entry.policy, max_server_per_host=limit))
        hosts = [
            HostSpec(provider_uuid=uuid, host=entry.host, node=node_of(entry), facts=self._facts(entry, row))
            for row, (entry, uuid) in enumerate(zip(self._document.hosts, self._uuids, strict=True))
        ]
        if self.is_searched:
            providers = self._trees(memberships)
        else:
            providers = [
                # Names of providers must be unique; these are never shown.
                ProviderSpec(uuid=uuid, name=uuid, aggregates=frozenset(memberships.get(uuid, ())))
                for uuid in self._uuids
            ]
        return Fleet(providers=providers, hosts=hosts, aggregates=aggregates, groups=groups)

    def _aggregates(self) -> tuple[list[Aggregate], dict[str, set[str]]]:
        """Return the aggregates, and the memberships of hosts: uuid of the root provider -> uuids of its aggregates."""
        entries: list[tuple[str, AggregateEntry, str]] = [
            (f"$.aggregates[{at}]", each, "aggregate") for at, each in enumerate(self._document.aggregates)
        ]
        for zone, hosts in self._document.zones.items():
            entry = AggregateEntry(name=zone, metadata={ZONE: zone}, hosts=hosts)
            entries.append((f"$.zones.{zone}", entry, "zone"))
        aggregates = []
        memberships: dict[str, set[str]] = {}
        for at, entry, kind in entries:
            if not entry.name and entry.uuid is None:
                raise self._error(at, "it has neither a name nor a uuid")
            uuid = str(entry.uuid or uuid_for(kind, entry.name))
            self.aggregates.add(uuid, uuid, [entry.name], at=at)
            aggregates.append(Aggregate(uuid=uuid, name=entry.name, metadata=entry.metadata))
            path = f"{at}.hosts" if kind == "aggregate" else at
            for index, name in enumerate(entry.hosts):
                row = self.hosts.find(name, at=f"{path}[{index}]")
                memberships.setdefault(self._uuids[row], set()).add(uuid)
        return aggregates, memberships

    def _facts(self, entry: HostEntry, row: int) -> HostFacts:
        service = entry.service
        return HostFacts(
            hypervisor_type=entry.hypervisor_type or "",
            hypervisor_version=entry.hypervisor_version or 0,
            supported_instances=entry.supported_instances,
            cpu_info=self._cpu_info(entry.cpu_info, f"$.hosts[{row}].cpu_info"),
            stats=entry.stats,
            metrics=entry.metrics,
            pci_pools=entry.pci_pools,
            numa=entry.numa_topology,
            num_io_ops=entry.num_io_ops,
            failed_builds=entry.failed_builds,
            host_ip=entry.host_ip or "",
            rack=entry.rack,
            cell=entry.cell_uuid or "",
            is_disabled=service.disabled,
            disabled_reason=service.disabled_reason,
            is_forced_down=service.forced_down,
            reported_at_s=service.last_seen_up,
        )

    def _cpu_info(self, info: Mapping[str, object] | str | None, at: str) -> dict[str, object]:
        if not isinstance(info, str):
            return dict(info or {})
        try:
            return msgspec.json.decode(info, type=dict[str, object])
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            raise self._error(at, "is not a JSON object") from None

    def _trees(self, memberships: Mapping[str, set[str]]) -> list[ProviderSpec]:
        """Return the providers, each after its parent."""
        entries = self._document.providers or ()
        parents = [
            None if entry.parent is None else self._providers.find(entry.parent, at=f"$.providers[{row}].parent")
            for row, entry in enumerate(entries)
        ]
        specs: dict[int, ProviderSpec] = {}
        for start in range(len(entries)):
            path: list[int] = []
            at: int | None = start
            while at is not None and at not in specs:
                if at in path:
                    raise self._error(
                        f"$.providers[{at}].parent", f"the provider {entries[at].name!r} is its own ancestor"
                    )
                path.append(at)
                at = parents[at]
            for row in reversed(path):
                parent = parents[row]
                specs[row] = self._spec(
                    entries[row],
                    row,
                    parent_uuid=None if parent is None else specs[parent].uuid,
                    memberships=memberships,
                )
        return list(specs.values())

    def _spec(
        self, entry: ProviderEntry, row: int, *, parent_uuid: str | None, memberships: Mapping[str, set[str]]
    ) -> ProviderSpec:
        uuid, at = str(entry.uuid or uuid_for("provider", entry.name)), f"$.providers[{row}]"
        self._check_names(entry.inventories, entry.traits, at=at)
        aggregates = [self.aggregates.find(name, at=f"{at}.aggregates[{n}]") for n, name in enumerate(entry.aggregates)]
        inventories = {
            name: Inventory(
                total=each.total,
                reserved=each.reserved,
                min_unit=each.min_unit,
                max_unit=each.max_unit,
                step_size=each.step_size,
                allocation_ratio=each.allocation_ratio,
            )
            for name, each in entry.inventories.items()
        }
        return ProviderSpec(
            uuid=uuid,
            name=entry.name,
            parent_uuid=parent_uuid,
            inventories=inventories,
            traits=frozenset(entry.traits),
            aggregates=frozenset(aggregates) | memberships.get(uuid, set()),
        )

    def _check_names(self, resource_classes: Iterable[str], traits: Iterable[str], *, at: str) -> None:
        where = f"{at}.inventories" if at != "$" else "$.resource_classes"
        for name in resource_classes:
            if not is_resource_class(name):
                raise self._error(where, f"{name[:70]!r} is neither a standard resource class nor CUSTOM_[A-Z0-9_]+")
        for name in traits:
            if not is_trait(name):
                raise self._error(f"{at}.traits", f"{name[:70]!r} is neither a standard trait nor CUSTOM_[A-Z0-9_]+")

    # --- use ---------------------------------------------------------------------------------------------------------

    def _use_providers(self) -> None:
        """Claim all used amounts for a single consumer; decisions do not depend on the actual consumers."""
        state, takes = self.roost.state, []
        consumer = ConsumerRow(self.roost.placement.new_id("consumer"), uuid_for("use").bytes, "", "")
        for entry in self._document.providers or ():
            uuid = str(entry.uuid or uuid_for("provider", entry.name))
            first = state.providers.ids[state.providers.row_of_uuid[uuid]] << CLASS_BITS
            for name, inventory in entry.inventories.items():
                class_id = state.class_ids.id_of(name)
                assert class_id is not None, name
                if inventory.used:
                    takes.append((consumer.id, first | class_id, inventory.used))
        if takes:
            occupy(state, Claim([consumer], takes))

    def _put_instances(self) -> None:
        """Place the instances that hosts and server groups list."""
        locations: dict[bytes, tuple[int, str]] = {}  # uuid -> host row, path in the document
        for row, host in enumerate(self._document.hosts):
            for number, uuid in enumerate(host.instances):
                at = f"$.hosts[{row}].instances[{number}]"
                if uuid.bytes in locations:
                    raise self._error(at, f"the instance {uuid} is a duplicate of {locations[uuid.bytes][1]}")
                locations[uuid.bytes] = (row, at)
        members: dict[bytes, tuple[int, Group | None]] = {}
        for number, entry in enumerate(self._document.server_groups):
            self._put_members(entry, f"$.server_groups[{number}]", locations=locations, placed_members=members)
        instance_homes = {body: (row, None) for body, (row, _) in locations.items()} | members
        images = self._images(instance_homes)
        state, consumers, instances = self.roost.state, [], []
        for body, (row, group) in instance_homes.items():
            consumer_id = self.roost.placement.new_id("consumer")
            consumers.append(ConsumerRow(consumer_id, body, "", ""))
            instances.append(
                InstanceRow(consumer_id, state.hosts.ids[row], 0, images.get(body, 0), group.id if group else 0)
            )
        if consumers:
            occupy(state, Claim(consumers, [], instances))

    def _images(self, instances: Container[bytes]) -> dict[bytes, int]:
        """Store the images; return the image of each instance: uuid -> number."""
        images: dict[bytes, int] = {}
        for number, entry in enumerate(self._document.images, start=1):
            image = Image(id=entry.id, disk_format=entry.disk_format, properties=entry.properties)
            # No lookup uses the fingerprint, so any unique value will do.
            fingerprint = number.to_bytes(16, "big")
            apply(self.roost.state, PutDocument(number, "image", fingerprint, msgspec.json.encode(image)))
            for index, uuid in enumerate(entry.instances):
                at = f"$.images[{number - 1}].instances[{index}]"
                if uuid.bytes not in instances:
                    raise self._error(at, f"the instance {uuid} is on no host")
                if uuid.bytes in images:
                    raise self._error(at, f"the instance {uuid} already has an image")
                images[uuid.bytes] = number
        return images

    def _put_members(
        self,
        entry: ServerGroupEntry,
        at: str,
        *,
        locations: dict[bytes, tuple[int, str]],
        placed_members: dict[bytes, tuple[int, Group | None]],
    ) -> None:
        state = self.roost.state
        group = state.groups_by_uuid[str(entry.uuid or uuid_for("group", entry.name))]
        if entry.fault_domains and entry.policy != "fault-domain":
            raise self._error(f"{at}.fault_domains", f"they require policy fault-domain, not {entry.policy}")
        places = [
            Place(group.id, _number(each.rack), _number(each.domain), each.members, 0) for each in entry.fault_domains
        ]
        known_scopes = {place.scope for place in places}
        for name, members in entry.members.items():
            where = f"{at}.members.{name}"
            row = self.hosts.find(name, at=where)
            host = self._uuids[row]
            uuids = (
                [uuid_for(group.uuid, host, str(number)).bytes for number in range(members)]
                if isinstance(members, int)
                else [uuid.bytes for uuid in members]
            )
            for number, uuid in enumerate(uuids):
                if uuid in placed_members:
                    raise self._error(f"{where}[{number}]", "the instance is already a member")
                if uuid in locations and locations[uuid][0] != row:
                    raise self._error(f"{where}[{number}]", f"the instance is on another host, at {locations[uuid][1]}")
                placed_members[uuid] = (row, group)
            rack = state.hosts.facts[row].rack
            place = place_of(group, host_id=state.hosts.ids[row], rack=rack, domain="")
            if uuids and place is not None and not (entry.policy == "fault-domain" and place.scope in known_scopes):
                places.append(Place(place.group_id, place.scope, place.holder, len(uuids), 0))
        occupy(state, Claim([], [], [], places))

    # --- host columns ------------------------------------------------------------------------------------------------

    def _override_hosts(self) -> None:
        state = self.roost.state
        state.hosts.are_self_reported = not self.is_searched
        for row, entry in enumerate(self._document.hosts):
            current = {name: float(column.view[row]) for name, column in state.hosts.columns.items()}
            columns = _host_columns(entry, current)
            ratios = {"MEMORY_MB": entry.ram_allocation_ratio, "DISK_GB": entry.disk_allocation_ratio}
            overrides = {name: ratio for name, ratio in ratios.items() if ratio is not None}
            if columns != current or overrides:
                override_host(state, row, columns, ratios=overrides)


def node_of(entry: HostEntry) -> str:
    """Return the node name of a host."""
    return entry.nodename or entry.hypervisor_hostname or entry.host


def _number(name: str | int) -> int:
    return name if isinstance(name, int) else place_number(name)


def _host_columns(entry: HostEntry, current: Mapping[str, float]) -> dict[str, float]:
    """Return the columns of a host from the document; a missing value stays, and a missing free amount is computed."""
    columns = dict(current)
    values = {
        "vcpus_total": entry.vcpus_total,
        "vcpus_used": entry.vcpus_used,
        "num_instances": entry.num_instances,
        "cpu_allocation_ratio": entry.cpu_allocation_ratio,
        "total_usable_ram_mb": entry.total_usable_ram_mb,
        "total_usable_disk_gb": entry.total_usable_disk_gb,
        "used_disk_gb": None if entry.disk_mb_used is None else entry.disk_mb_used / 1024,
    }
    columns.update({name: float(value) for name, value in values.items() if value is not None})
    usable_ram_mb = columns["total_usable_ram_mb"] - columns["reserved_ram_mb"]
    if entry.free_ram_mb is not None:
        columns["used_ram_mb"] = usable_ram_mb - entry.free_ram_mb
    columns["free_ram_mb"] = usable_ram_mb - columns["used_ram_mb"]
    usable_disk_gb = columns["total_usable_disk_gb"] - columns["reserved_disk_gb"]
    free_disk_mb = 1024 * (usable_disk_gb - columns["used_disk_gb"])
    columns["free_disk_mb"] = free_disk_mb if entry.free_disk_mb is None else float(entry.free_disk_mb)
    return columns
