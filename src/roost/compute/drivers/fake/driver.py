"""A driver that only records guests; its script defines nodes, delays and failures."""

import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec
from msgspec.structs import replace

from roost.compute.driver import read_options
from roost.compute.drivers.fake.faults import Faults
from roost.compute.drivers.fake.guests import (
    Arrival,
    FakeGuest,
    FolderShelf,
    MemoryShelf,
    Shelf,
    Uses,
    pieces_text,
    read_arrival,
    read_disk,
    read_record,
    state_of,
)
from roost.compute.drivers.fake.layouts import ROOT, Shaping, parts_of
from roost.compute.drivers.fake.options import FakeOptions
from roost.compute.drivers.fake.parts import place, place_guest, room_of
from roost.compute.drivers.fake.script import FakeNode, Script, read_script
from roost.compute.drivers.pci_choice import check_assigned, choose_pci
from roost.compute.providers.held_allocations import Allocations
from roost.compute.providers.provider_tree import ProviderTree
from roost.errors import BadSettings, BuildAborted, BuildFailed, Conflict, DriverNotReady, NotFound
from roost.model.names import is_uuid_form
from roost.model.work.agent_terms import Capabilities, HostTerms, NodeResources
from roost.model.work.guest import GuestReport, GuestSpec, GuestState, TransferTarget

_TRAITS = frozenset({"COMPUTE_IMAGE_TYPE_QCOW2", "COMPUTE_IMAGE_TYPE_RAW", "COMPUTE_SAME_HOST_COLD_MIGRATE"})
_SAVED = "saved-"  # prefix of the ids of saved images
_EXPECTED = b""  # data of an expected guest before its arrival
_PROCESS_SHELF = MemoryShelf()  # of all hosts in this process without a folder


def make(options: Mapping[str, str], terms: HostTerms) -> "Fake":
    """Create the driver for an agent.

    Raises:
        BadSettings: an option is invalid.
        BadFile: the script is invalid.
    """
    parsed = read_options("fake", FakeOptions, options)
    shelf = FolderShelf(Path(parsed.state).absolute()) if parsed.state else _PROCESS_SHELF
    script = read_script(parsed.script) if parsed.script else Script()
    return Fake(script, terms=terms, chance=random.Random(parsed.seed), shelf=shelf)


class Fake:
    """The fake driver of one host.

    Args:
        script: the simulated nodes and faults.
        terms: overcommit and reserves of the host.
        chance: draws the failing calls.
        shelf: stores its guests; hosts with the same shelf can reach each other.
        wait: sleeps a number of seconds.
    """

    def __init__(
        self,
        script: Script,
        *,
        terms: HostTerms,
        chance: random.Random,
        shelf: Shelf,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        self._script, self._terms, self._shelf = script, terms, shelf
        self._chance, self._wait = chance, wait
        self._lock = threading.RLock()
        self._reset("")
        self._aborted: set[str] = set()

    @property
    def capabilities(self) -> Capabilities:
        """Its capabilities."""
        return Capabilities(
            traits=_TRAITS, can_live_migrate=self._script.can_live_migrate, can_save=True, has_console=True
        )

    # --- nodes ---

    def start(self, host: str) -> None:
        """Begin to work for a host, with its earlier guests."""
        if host != self._host:  # A repeated call, after DriverNotReady, continues the faults.
            self._reset(host)
        self._faults.strike("start")
        names = [*self._nodes]
        if len(names) < len(self._script.node):
            raise BadSettings("driver fake", f"two nodes of host {host} have the same name; nodes: {', '.join(names)}")
        self._record = read_record(self._shelf.load(host), host)

    def nodes(self) -> list[str]:
        """Return the names of its nodes."""
        return [*self._nodes]

    def is_node_gone(self, node: str) -> bool:
        """Return whether the script has no such node."""
        return node not in self._nodes

    def resources(self, node: str) -> NodeResources:
        """Return the resources of a node and their use."""
        self._faults.strike("resources")
        known = self._node(node)
        flavors = [guest.spec.flavor for guest in self._all() if guest.spec.node == node]
        return NodeResources(
            vcpus=known.vcpu_total + sum(len(cell.pcpus) for cell in known.cell),
            memory_mb=known.memory_total_mb,
            local_gb=known.local_gb,
            vcpus_used=sum(each.vcpus for each in flavors),
            memory_mb_used=sum(each.memory_mb for each in flavors),
            local_gb_used=sum(each.root_gb + each.ephemeral_gb for each in flavors),
            cpu_info=known.cpu_info,
            numa_topology=known.topology,
            hypervisor_type=known.hypervisor_type,
            hypervisor_version=known.hypervisor_version,
            supported_instances=known.supported_instances,
            stats=known.stats,
            pci_devices=known.pci,
            pci_in_use=self._devices_in_use(node),
        )

    def update_provider_tree(self, tree: ProviderTree, node: str, allocations: Allocations | None = None) -> None:
        """Write the inventories of a node into a provider tree."""
        self._faults.strike("update_provider_tree")
        known = self._node(node)
        with self._lock:
            guests = {each.spec.uuid: each.uses for each in self._all() if each.spec.node == node}
            promised = {**self._record.promised.get(node, {})}
            shaping = Shaping(script=self._script, node=known, terms=self._terms, guests=guests, promised=promised)
            self._part_of |= shaping.update(tree, allocations)
            if promised != self._record.promised.get(node, {}):
                self._record.promised[node] = promised
                self._save()

    def metrics(self, node: str) -> dict[str, float]:
        """Return the scripted measurements of a node."""
        self._faults.strike("metrics")
        return {**self._node(node).metrics}

    # --- guests that stay ---

    def spawn(self, spec: GuestSpec, operation: str) -> None:
        """Build and start a guest."""
        if self._was_completed_by(spec.uuid, operation):
            return
        self._drop(spec.uuid)
        begun = FakeGuest(spec=spec, operation=operation, state="building")
        self._faults.strike("spawn", on_crash=lambda: self._put(begun))
        with self._lock:
            disk = self._image(spec)
            spec, uses = self._with_devices(spec), self._choose(spec)
            disk = (*disk, f"built on {self._host}{pieces_text(spec)}")
            self._put(replace(begun, spec=spec, state=state_of(spec), disk=disk, uses=uses))

    def destroy(self, uuid: str, operation: str) -> None:
        """Remove a guest completely."""
        self._faults.strike("destroy")
        with self._lock:
            self._drop(uuid)
            for promised in self._record.promised.values():
                if promised.pop(uuid, None) is not None:
                    self._save()

    def power(self, uuid: str, *, is_on: bool) -> None:
        """Start or stop a guest."""
        guest = self._find_complete(uuid)
        state: GuestState = "running" if is_on else "stopped"
        if guest.state == state:
            return
        self._faults.strike("power")
        self._put(replace(guest, state=state, disk=(*guest.disk, f"{state} on {self._host}")))

    def rebuild(self, spec: GuestSpec, operation: str) -> None:
        """Replace the disk of a guest by a new one from an image."""
        guest = self._find_complete(spec.uuid)
        if guest.operation == operation:
            return
        self._faults.strike("rebuild")
        disk = (*self._image(spec), f"rebuilt on {self._host}{pieces_text(spec)}")
        with self._lock:
            spec = self._with_devices(spec, instead_of=guest)
            self._put(replace(guest, spec=spec, operation=operation, state=state_of(spec), disk=disk))

    def save(self, uuid: str) -> str:
        """Save the disk of a stopped guest as an image."""
        guest = self._find_stopped(uuid)
        self._faults.strike("save")
        image = f"{_SAVED}{uuid}"
        self._shelf.save_image(image, msgspec.json.encode(guest.disk))
        return image

    def saved_images(self) -> list[str]:
        """Return the uuids of guests with saved images, of any host of the shelf."""
        self._faults.strike("saved_images")
        saved = (each.removeprefix(_SAVED) for each in self._shelf.images() if each.startswith(_SAVED))
        return sorted(filter(is_uuid_form, saved))

    def drop_saved_image(self, uuid: str) -> None:
        """Delete the saved image of a guest."""
        self._faults.strike("drop_saved_image")
        self._shelf.drop_image(f"{_SAVED}{uuid}")

    # --- guests that move ---

    def prepare(self, spec: GuestSpec, operation: str) -> TransferTarget:
        """Reserve resources for an arriving guest."""
        address = self._shelf.address(self._host)
        prepared = TransferTarget(uuid=spec.uuid, node=spec.node, address=address, disk=f"{address}/{spec.uuid}")
        self._receive()  # A new preparation replaces an expected guest, but not an arrived one.
        with self._lock:
            coming = self._record.coming.get(spec.uuid)
            if self._was_completed_by(spec.uuid, operation) or (coming is not None and coming.operation == operation):
                return prepared
        self._faults.strike("prepare")
        with self._lock:
            self._record.coming.pop(spec.uuid, None)
            self._shelf.forget(address, spec.uuid)
            spec = self._with_devices(spec)
            self._record.coming[spec.uuid] = FakeGuest(
                spec=spec, operation=operation, state="prepared", uses=self._choose(spec)
            )
            self._shelf.send(address, spec.uuid, _EXPECTED)
            self._save()
        return prepared

    def send_disk(self, uuid: str, to: TransferTarget) -> None:
        """Send the disk of a stopped guest."""
        guest = self._find_stopped(uuid)
        self._faults.strike("send_disk")
        self._check_expected(to)
        self._shelf.send(to.address, uuid, msgspec.json.encode(Arrival(disk=guest.disk, is_running=False)))

    def finish(self, spec: GuestSpec, operation: str) -> None:
        """Complete an arrived guest."""
        self._receive()
        if self._was_completed_by(spec.uuid, operation):
            return
        coming = self._record.coming.get(spec.uuid)
        if coming is None or coming.operation != operation:
            raise BuildFailed(f"guest {spec.uuid} was not prepared on {self._host} by this operation")
        arrival = self._find_arrival(spec.uuid)
        if arrival is None:
            raise BuildFailed(f"no disk of guest {spec.uuid} has arrived on {self._host}")
        self._faults.strike("finish")
        spec = replace(spec, devices=spec.devices or coming.spec.devices)
        self._arrive(replace(coming, spec=spec), arrival)

    def discard(self, uuid: str, operation: str) -> None:
        """Undo an operation of an arriving guest on this host."""
        self._receive()
        self._faults.strike("discard")
        record = self._record
        with self._lock:
            if uuid in record.coming and record.coming[uuid].operation == operation:
                del record.coming[uuid]
                self._shelf.forget(self._shelf.address(self._host), uuid)
            if uuid in record.guests and record.guests[uuid].operation == operation:
                del record.guests[uuid]
                if uuid in record.replaced:
                    record.guests[uuid] = record.replaced.pop(uuid)
            self._save()

    def settle(self, uuid: str, operation: str) -> None:
        """Make the finish of an operation final."""
        self._faults.strike("settle")
        with self._lock:
            if self._was_completed_by(uuid, operation) and self._record.replaced.pop(uuid, None) is not None:
                self._save()

    def live_migrate(self, uuid: str, to: TransferTarget) -> None:
        """Move a running guest elsewhere."""
        if not self._script.can_live_migrate:
            raise BuildAborted(f"guests on {self._host} cannot move while they run")
        self._receive()  # The guest may have returned after an earlier migration.
        if self._record.left.get(uuid) == to.address and uuid not in self._record.guests:
            return
        guest = self._find_complete(uuid)
        if guest.state != "running":
            raise Conflict(f"guest {uuid} on {self._host} is {guest.state}, so it cannot be live-migrated")
        self._aborted.discard(uuid)
        self._faults.strike("live_migrate")
        if uuid in self._aborted:
            raise BuildFailed(f"the migration of guest {uuid} from {self._host} was aborted")
        self._check_expected(to)
        arrival = Arrival(disk=(*guest.disk, f"left {self._host}"), is_running=True)
        with self._lock, self._restore_on_error():
            for records in (self._record.guests, self._record.coming, self._record.replaced):
                records.pop(uuid, None)  # Also any preparation here for an abandoned move.
            self._record.left[uuid] = to.address
            self._shelf.part(
                self._host,
                msgspec.json.encode(self._record),
                address=to.address,
                uuid=uuid,
                arrival=msgspec.json.encode(arrival),
            )

    def abort_migration(self, uuid: str) -> None:
        """Make a migration in progress fail."""
        self._aborted.add(uuid)

    # --- reports ---

    def inspect(self, uuid: str) -> GuestReport | None:
        """Return the report of a guest."""
        self._faults.strike("inspect")
        return next((guest.report for guest in self._all() if guest.spec.uuid == uuid), None)

    def guests(self) -> list[GuestReport]:
        """Return the reports of all guests, by uuid."""
        return sorted((guest.report for guest in self._all()), key=lambda found: found.uuid)

    def console(self, uuid: str) -> str:
        """Return the history of a guest, one line per event."""
        return "".join(f"{line}\n" for line in self._find_complete(uuid).disk)

    # --- records ---

    def _reset(self, host: str) -> None:
        self._host = host
        self._nodes = {node.name: node for node in (each.on(host) for each in self._script.node)}
        self._faults = Faults(self._script.fault, host=host, chance=self._chance, wait=self._wait)
        self._part_of: dict[str, str] = {}  # uuid of a provider -> part of its node
        self._record = read_record(None, host)

    def _node(self, name: str) -> FakeNode:
        if name not in self._nodes:
            raise NotFound("node", name, message=f"host {self._host} has no node {name}")
        return self._nodes[name]

    def _all(self) -> list[FakeGuest]:
        """Return all guests, including those that are only expected."""
        self._receive()
        with self._lock:
            return [*(self._record.coming | self._record.guests).values()]

    def _find_complete(self, uuid: str) -> FakeGuest:
        """Return a complete guest."""
        self._receive()
        guest = self._record.guests.get(uuid)
        if guest is None or guest.state == "building":
            raise NotFound("guest", uuid, message=f"host {self._host} has no complete guest {uuid}")
        return guest

    def _find_stopped(self, uuid: str) -> FakeGuest:
        guest = self._find_complete(uuid)
        if guest.state == "running":
            raise Conflict(f"guest {uuid} runs on {self._host}, stop it first")
        return guest

    def _was_completed_by(self, uuid: str, operation: str) -> bool:
        """Return whether an operation completed a guest."""
        guest = self._record.guests.get(uuid)
        return guest is not None and guest.operation == operation and guest.state != "building"

    def _put(self, guest: FakeGuest) -> None:
        with self._lock:
            self._record.guests[guest.spec.uuid] = guest
            self._save()

    def _drop(self, uuid: str) -> None:
        record = self._record
        with self._lock:
            gone = [records.pop(uuid, None) for records in (record.guests, record.coming, record.replaced, record.left)]
            self._shelf.forget(self._shelf.address(self._host), uuid)
            if any(each is not None for each in gone):
                self._save()

    def _save(self) -> None:
        with self._restore_on_error():
            self._shelf.keep(self._host, msgspec.json.encode(self._record))

    @contextmanager
    def _restore_on_error(self) -> Iterator[None]:
        """Undo a change in memory if it could not be stored."""
        try:
            yield
        except DriverNotReady:
            self._record = read_record(self._shelf.load(self._host), self._host)
            raise

    def _image(self, spec: GuestSpec) -> tuple[str, ...]:
        """Return the initial disk from an image."""
        image = spec.image.id or ""
        if not image.startswith(_SAVED):
            return (f"image {image}",)
        return read_disk(self._shelf.image(image), image)

    def _find_arrival(self, uuid: str) -> Arrival | None:
        body = self._shelf.load_arrival(self._shelf.address(self._host), uuid)
        return None if body is None or body == _EXPECTED else read_arrival(body, uuid)

    def _check_expected(self, to: TransferTarget) -> None:
        """Refuse to send a guest to a host that does not expect it, where it would be lost."""
        if self._shelf.load_arrival(to.address, to.uuid) is None:
            raise BuildFailed(f"guest {to.uuid} is not expected at {to.address}, so it stays on {self._host}")

    def _receive(self) -> None:
        """Record guests that arrived by live migration: they run here, finished or not."""
        with self._lock:
            for uuid, coming in [*self._record.coming.items()]:
                arrival = self._find_arrival(uuid)
                if arrival is not None and arrival.is_running:
                    self._arrive(coming, arrival)

    def _arrive(self, coming: FakeGuest, arrival: Arrival) -> None:
        uuid, record = coming.spec.uuid, self._record
        state = "running" if arrival.is_running else state_of(coming.spec)
        with self._lock:
            record.coming.pop(uuid, None)
            if uuid in record.guests:
                record.replaced[uuid] = record.guests[uuid]
            record.left.pop(uuid, None)
            self._put(
                replace(coming, state=state, disk=(*arrival.disk, f"arrived on {self._host}{pieces_text(coming.spec)}"))
            )
            self._shelf.forget(self._shelf.address(self._host), uuid)

    def _devices_in_use(self, node: str) -> dict[str, tuple[str, ...]]:
        """Return the addresses of the guests' devices on a node, by uuid."""
        found: dict[str, tuple[str, ...]] = {}
        with self._lock:
            for each in (*self._all(), *self._record.replaced.values()):
                if each.spec.node == node and each.spec.devices:
                    found[each.spec.uuid] = (*found.get(each.spec.uuid, ()), *each.spec.devices)
        return found

    def _with_devices(self, spec: GuestSpec, *, instead_of: FakeGuest | None = None) -> GuestSpec:
        """Return a guest with its devices: the assigned ones, those of the guest it replaces, else free ones.

        Raises:
            BuildFailed: an assigned device is missing, or in use.
        """
        if not spec.devices and instead_of is not None:
            return replace(spec, devices=instead_of.spec.devices)
        known = self._nodes[spec.node].pci if spec.node in self._nodes else ()
        guests = [*self._record.coming.values(), *self._record.guests.values(), *self._record.replaced.values()]
        used = {
            each
            for guest in guests
            if guest is not instead_of and guest.spec.node == spec.node
            for each in guest.spec.devices
        }
        if spec.devices:
            check_assigned(spec.devices, known, used=used)
            return spec
        try:
            return replace(spec, devices=choose_pci(spec.pci, known, used=used, cells=None, sockets={}))
        except BuildFailed:
            return spec  # The fake driver has no real devices, so a shortage does not reject the guest.

    def _choose(self, spec: GuestSpec) -> Uses:
        """Choose the parts of a node for a guest: those of its allocations, else the emptiest ones.

        Raises:
            BuildFailed: no part has room.
        """
        if spec.node not in self._nodes:
            raise BuildFailed(f"host {self._host} has no node {spec.node}")
        parts, uses = parts_of(self._nodes[spec.node]), place_guest(spec)
        unplaced: dict[str, int] = {}
        for uuid, amounts in spec.allocations.items():
            # Before the first update no provider is known; then each counts as the root.
            part = self._part_of.get(uuid, None if self._part_of else ROOT)
            for name, amount in amounts.items() if part is not None else ():
                if part:
                    uses.setdefault(part, {})[name] = amount
                elif not any(name in used for used in uses.values()):
                    unplaced[name] = unplaced.get(name, 0) + amount
        promised = self._record.promised.setdefault(spec.node, {})
        for part, amounts in promised.pop(spec.uuid, {}).items():
            uses.setdefault(part, {}).update({name: amounts[name] for name in amounts if name in unplaced})
        if not any(
            "PCPU" in amounts for amounts in spec.allocations.values()
        ):  # The VCPU allocations include dedicated processors.
            unplaced["VCPU"] = unplaced.get("VCPU", 0) - sum(used.get("PCPU", 0) for used in uses.values())
        unplaced = {
            name: amount
            for name, amount in unplaced.items()
            if amount > 0 and not any(name in used for used in uses.values())
        }
        others = [each.uses for each in (*self._all(), *self._record.replaced.values()) if each.spec.node == spec.node]
        found = place(unplaced, room_of(parts, [*others, uses, *promised.values()])) if promised else None
        found = place(unplaced, room_of(parts, [*others, uses])) if found is None else found
        if found is None:
            missing = ", ".join(f"{amount} {name}" for name, amount in unplaced.items())
            raise BuildFailed(f"node {spec.node} has no {missing} left for guest {spec.uuid}")
        return {part: uses.get(part, {}) | found.get(part, {}) for part in uses | found}
