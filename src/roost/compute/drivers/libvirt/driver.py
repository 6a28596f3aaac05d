"""A driver that runs guests as domains of libvirt, with disks in a folder."""

import shutil
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from msgspec.structs import replace

from roost.compute.drivers.libvirt.build_errors import build_errors, undo_on_error
from roost.compute.drivers.libvirt.devices import ANY_GPU, VGPU, NodeDevices, choose_vgpus, passthrough, vgpu_totals
from roost.compute.drivers.libvirt.disks import Disks, ExpectedGuest
from roost.compute.drivers.libvirt.domain_xml import Domain, devices_of, domain_xml, mark_of, read_mark
from roost.compute.drivers.libvirt.host import Encryption, HostCapabilities, cpu_traits, divide_cpus
from roost.compute.drivers.libvirt.link import Guest, Link, run_events
from roost.compute.drivers.libvirt.options import LibvirtOptions, read_libvirt_options
from roost.compute.drivers.libvirt.providers import Offer, update, use_of_guest, use_of_spec
from roost.compute.drivers.pci_choice import check_assigned, choose_pci
from roost.compute.providers.held_allocations import Allocations
from roost.compute.providers.provider_tree import ProviderTree
from roost.errors import BadSettings, BuildAborted, BuildFailed, Conflict, NotFound, Unavailable, extra_hint, first_line
from roost.model.devices.numa import NumaTopology
from roost.model.work.agent_terms import Capabilities, HostTerms, NodeResources
from roost.model.work.guest import GuestReport, GuestSpec, TransferTarget

_TRAITS = frozenset({"COMPUTE_IMAGE_TYPE_RAW", "COMPUTE_SAME_HOST_COLD_MIGRATE"})
_GIB = 2**30
_CONTEXTS, _ENCRYPTS = "MEM_ENCRYPTION_CONTEXT", "HW_CPU_X86_AMD_SEV"
_CHECK_S = 0.5  # interval of checks for a shutdown, s


def make(options: Mapping[str, str], terms: HostTerms) -> "Libvirt":
    """Create the driver for an agent.

    Raises:
        BadSettings: an option is invalid, or libvirt's binding is not installed.
    """
    parsed = read_libvirt_options(options)
    try:
        import libvirt
    except ImportError as error:
        problem = f"needs libvirt's binding ({first_line(error)}): {extra_hint('libvirt')}"
        raise BadSettings("driver libvirt", problem) from None
    run_events(libvirt)
    return Libvirt(parsed, terms=terms, link=Link(libvirt, parsed.uri, connect=libvirt.open))


class Libvirt:
    """The libvirt driver of one host, which is one node.

    Args:
        options: its options.
        terms: overcommit and reserves of the host.
        link: the connection to libvirt.
        wait: sleeps a number of seconds.
    """

    def __init__(
        self, options: LibvirtOptions, *, terms: HostTerms, link: Link, wait: Callable[[float], None] = time.sleep
    ) -> None:
        self._options, self._terms, self._link, self._wait = options, terms, link, wait
        self._lock = threading.Lock()  # held from the choice of devices to the definition of their domain
        self._host = ""
        self._has_console = False
        self._gpu_of: dict[str, str] = {}  # uuid of a GPU's provider -> name of the GPU
        self._disks = Disks(options.state / "hosts", "", images=options.images)

    @property
    def capabilities(self) -> Capabilities:
        """Its capabilities."""
        return Capabilities(traits=_TRAITS, can_save=True, has_console=self._has_console)

    # --- the node ---

    def start(self, host: str) -> None:
        """Begin to work for a host, with its existing guests."""
        with self._link.convert_errors(f"libvirt at {self._options.uri} does not describe its host"):
            capabilities = self._link.capabilities()
            self._has_console = self._link.kind() == "QEMU"  # Other hypervisors leave the console file empty.
        self._topology(capabilities)
        capabilities.domain_type(self._options.virt_type)
        disks = Disks(self._options.state / "hosts", host, images=self._options.images)
        for folder in (disks.folder, self._options.images):
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise BadSettings("driver libvirt", f"{folder} cannot be used: {error.strerror}") from None
        self._host, self._disks = host, disks
        self._link.set_node(host)
        with self._link.convert_errors(f"interrupted rebuilds on {host} cannot be undone"):
            for uuid in disks.list_rebuilt():
                self._restore_if_unfinished(uuid)

    def nodes(self) -> list[str]:
        """Return the name of its single node, which is that of the host."""
        return [self._host] if self._host else []

    def is_node_gone(self, node: str) -> bool:
        """Return whether a node is not the host."""
        return node != self._host

    def resources(self, node: str) -> NodeResources:
        """Return the resources of the node and their use."""
        self._check_node(node)
        with self._link.convert_errors(f"the resources of {node} cannot be read"):
            capabilities, devices = self._link.capabilities(), self._link.devices()
            totals = self._totals(capabilities)
            used = self._uses()
            return NodeResources(
                vcpus=totals["VCPU"] + totals["PCPU"],
                memory_mb=totals["MEMORY_MB"],
                local_gb=totals["DISK_GB"],
                vcpus_used=used["vcpus"],
                memory_mb_used=used["memory_mb"],
                local_gb_used=used["disk_gb"],
                cpu_info=capabilities.cpu_info,
                numa_topology=self._topology(capabilities),
                hypervisor_type=self._link.kind(),
                hypervisor_version=self._link.version(),
                supported_instances=capabilities.kinds,
                pci_devices=passthrough(devices.pci, self._options.pci_devices),
                pci_in_use={each.mark.uuid: tuple(sorted(devices_of(each.xml)[0])) for each in self._link.guests()},
            )

    def update_provider_tree(self, tree: ProviderTree, node: str, allocations: Allocations | None = None) -> None:
        """Write the inventories of the node into a provider tree."""
        self._check_node(node)
        with self._link.convert_errors(f"the inventories of {node} cannot be read"):
            capabilities, devices, guests = self._link.capabilities(), self._link.devices(), self._link.guests()
            gpus = vgpu_totals(devices, self._options.mdev_types)
            traits, encryption = cpu_traits(capabilities), self._find_encryption(capabilities)
            totals = self._totals(capabilities) | ({} if encryption is None else {_CONTEXTS: encryption.contexts})
            offer = Offer(totals=totals, gpus=gpus, traits=traits if encryption is None else traits | {_ENCRYPTS})
            topology = self._topology(capabilities)
            own = frozenset(number for cell in (topology.cells if topology else ()) for number in cell.pcpus)
            users = {each.spec.uuid: use_of_spec(each.spec) for each in self._disks.list_expected()}
            users |= {each.mark.uuid: use_of_guest(each, own) for each in guests}
            self._gpu_of = update(tree, node, offer, terms=self._terms, allocations=allocations, guests=users)

    def metrics(self, node: str) -> dict[str, float]:
        """Return libvirt's measurements of the processors."""
        self._check_node(node)
        with self._link.convert_errors(f"the metrics of {node} cannot be read"):
            times = {f"cpu.{kind}.time": spent for kind, spent in self._link.cpu_times().items()}
            return times | {"cpu.frequency": float(self._link.info()[2])}

    # --- guests that stay ---

    def spawn(self, spec: GuestSpec, operation: str) -> None:
        """Build and start a guest."""
        with build_errors(self._link, self._host, spec.uuid):
            if self._was_completed_by(spec.uuid, operation):
                return
            self._check_spec(spec)
            self._drop(spec.uuid)
            with undo_on_error(self._link, lambda: self._drop(spec.uuid)):
                self._run(spec, operation, self._disks.make(spec, operation))

    def destroy(self, uuid: str, operation: str) -> None:
        """Remove a guest completely."""
        with self._guest_errors(uuid):
            self._drop(uuid)

    def power(self, uuid: str, *, is_on: bool) -> None:
        """Start a guest, or stop it: it may shut itself down within a time limit."""
        with self._guest_errors(uuid):
            guest = self._find_complete(uuid)
            if is_on and not guest.is_active:
                self._link.start(guest.domain, guest.mark)
            if not is_on and guest.is_active:
                self._shutdown(guest)

    def rebuild(self, spec: GuestSpec, operation: str) -> None:
        """Replace the disk of a guest by a new one from an image; an error restores it."""
        uuid = spec.uuid
        with build_errors(self._link, self._host, uuid):
            guest = self._restore_if_unfinished(uuid)
            if guest is None or not guest.mark.is_complete:
                raise self._not_found(uuid)
            if guest.mark.operation == operation:
                return
            self._check_spec(spec)
            disk = self._disks.make(spec, operation)
            self._disks.store_rebuilt(uuid, guest.xml)

            def undo() -> None:
                self._restore(uuid, guest.xml, is_on=guest.is_active)
                self._disks.end_rebuild(uuid, guest.mark.operation)

            with undo_on_error(self._link, undo):
                self._link.remove(guest)
                self._run(spec, operation, disk)
            self._disks.end_rebuild(uuid, operation)

    def save(self, uuid: str) -> str:
        """Save the disk of a stopped guest as an image."""
        with self._guest_errors(uuid):
            return self._disks.save(uuid, Path(self._find_stopped(uuid).mark.disk))

    def saved_images(self) -> list[str]:
        """Return the uuids of guests with saved images, of any host that shares the folder."""
        with self._link.convert_errors(f"the saved images in {self._options.images} cannot be listed"):
            return self._disks.list_saved()

    def drop_saved_image(self, uuid: str) -> None:
        """Delete the saved image of a guest."""
        with self._guest_errors(uuid):
            self._disks.drop_saved(uuid)

    # --- guests that move ---

    def prepare(self, spec: GuestSpec, operation: str) -> TransferTarget:
        """Expect a guest; its disk arrives in the folder that the hosts share."""
        with build_errors(self._link, self._host, spec.uuid):
            self._check_spec(spec)
            disk = str(self._disks.path(spec.uuid, operation))
            prepared = TransferTarget(uuid=spec.uuid, node=spec.node, address=self._host, disk=disk)
            expected = self._disks.find_expected(spec.uuid)
            is_expected = expected is not None and expected.operation == operation
            if not self._was_completed_by(spec.uuid, operation) and not is_expected:
                self._disks.expect(ExpectedGuest(spec=spec, operation=operation))
            return prepared

    def send_disk(self, uuid: str, to: TransferTarget) -> None:
        """Copy the disk of a stopped guest to its target path."""
        with build_errors(self._link, self._host, uuid):
            self._disks.send(Path(self._find_stopped(uuid).mark.disk), to)

    def finish(self, spec: GuestSpec, operation: str) -> None:
        """Complete an arrived guest."""
        uuid = spec.uuid
        with build_errors(self._link, self._host, uuid):
            expected, disk = self._disks.find_expected(uuid), self._disks.path(uuid, operation)
            is_expected = expected is not None and expected.operation == operation
            if not self._was_completed_by(uuid, operation):
                if not is_expected:
                    raise BuildFailed(f"guest {uuid} was not prepared on {self._host} by this operation")
                if not disk.exists():
                    raise BuildFailed(f"no disk of guest {uuid} has arrived on {self._host}")
                self._arrive(spec, operation, disk)
            if is_expected:
                self._disks.note_arrival(uuid)

    def discard(self, uuid: str, operation: str) -> None:
        """Undo an operation of an arriving guest on this host."""
        with self._guest_errors(uuid):
            expected, guest = self._disks.find_expected(uuid), self._link.guest(uuid)
            before = self._disks.guest_before_move(uuid)
            if expected is not None and expected.operation == operation:
                self._disks.forget(uuid)
                expected = None
            if guest is not None and guest.mark.operation == operation:
                self._link.remove(guest)
                guest = None
            if guest is None and before is not None:
                self._restore(uuid, before, is_on=False)
                guest = self._link.guest(uuid)
            if guest is None and expected is None:
                self._disks.drop_all(uuid)
            else:
                self._disks.drop(uuid, operation)
            if guest is not None and before is not None and read_mark(before) == guest.mark:
                self._disks.drop_replaced(uuid)

    def settle(self, uuid: str, operation: str) -> None:
        """Make the finish of an operation final."""
        with self._guest_errors(uuid):
            guest = self._link.guest(uuid)
            if guest is not None and guest.mark.operation == operation:
                self._disks.drop_others(uuid, operation)

    def live_migrate(self, uuid: str, to: TransferTarget) -> None:
        """Refuse: guests of this driver move only while they are stopped."""
        with self._guest_errors(uuid):
            self._find_complete(uuid)
        raise BuildAborted(f"guests on {self._host} cannot move while they run")

    def abort_migration(self, uuid: str) -> None:
        """Do nothing: there are no live migrations."""

    # --- reports ---

    def inspect(self, uuid: str) -> GuestReport | None:
        """Return the report of a guest."""
        with self._guest_errors(uuid):
            guest, expected = self._link.guest(uuid), self._disks.find_expected(uuid)
        if guest is not None:
            return guest.report
        return None if expected is None else expected.report

    def guests(self) -> list[GuestReport]:
        """Return the reports of all guests, by uuid."""
        with self._link.convert_errors(f"the guests of {self._host} cannot be listed"):
            found = {each.spec.uuid: each.report for each in self._disks.list_expected()}
            found |= {each.mark.uuid: each.report for each in self._link.guests()}
        return [found[uuid] for uuid in sorted(found)]

    def console(self, uuid: str) -> str:
        """Return the end of a guest's output on its first serial port."""
        with self._guest_errors(uuid):
            self._find_complete(uuid)
            return self._disks.console(uuid)

    # --- resources ---

    def _topology(self, capabilities: HostCapabilities) -> NumaTopology | None:
        options = self._options
        cells = divide_cpus(capabilities.cells, shared=options.cpu_shared_set, dedicated=options.cpu_dedicated_set)
        return NumaTopology(cells=cells) if cells else None

    def _find_encryption(self, capabilities: HostCapabilities) -> Encryption | None:
        return self._link.encryption(capabilities, capabilities.domain_type(self._options.virt_type))

    def _totals(self, capabilities: HostCapabilities) -> dict[str, int]:
        topology, (cpus, memory_mb, _) = self._topology(capabilities), self._link.info()
        disk_gb = shutil.disk_usage(self._disks.folder).total // _GIB
        if topology is None:
            return {"VCPU": cpus, "PCPU": 0, "MEMORY_MB": memory_mb, "DISK_GB": disk_gb}
        return {
            "VCPU": sum(len(cell.cpus) for cell in topology.cells),
            "PCPU": sum(len(cell.pcpus) for cell in topology.cells),
            "MEMORY_MB": sum(cell.memory_mb for cell in topology.cells),
            "DISK_GB": disk_gb,
        }

    def _uses(self) -> Counter[str]:
        """Return the use of guests, including expected ones."""
        marks = {each.spec.uuid: mark_of(each.spec, "", disk="") for each in self._disks.list_expected()}
        marks |= {each.mark.uuid: each.mark for each in self._link.guests()}
        used = Counter[str]()
        for mark in marks.values():
            used.update(vcpus=mark.vcpus, memory_mb=mark.memory_mb, disk_gb=mark.disk_gb)
        return used

    # --- guests ---

    def _run(self, spec: GuestSpec, operation: str, disk: Path) -> None:
        """Define a guest on its disk, start it if it is to run, and mark it complete."""
        capabilities = self._link.capabilities()
        is_encrypted = any(amounts.get(_CONTEXTS) for amounts in spec.allocations.values())
        encryption = self._find_encryption(capabilities) if is_encrypted else None
        if is_encrypted and encryption is None:
            raise BuildFailed(f"host {self._host} does not encrypt memory, as guest {spec.uuid} requires")
        with self._lock:
            self._link.check_free(spec.uuid)
            texts = [*self._link.texts(), *self._disks.list_replaced()]
            used = [devices_of(text) for text in texts]
            devices, topology = self._link.devices(), self._topology(capabilities)
            taken = {each for addresses, _ in used for each in addresses}
            pci = self._addresses_of(spec, devices, topology, used=taken)
            counts = Counter[str]()
            for uuid, amounts in spec.allocations.items():
                counts[self._gpu_of.get(uuid, ANY_GPU)] += amounts.get(VGPU, 0)
            vgpus = choose_vgpus(
                counts,
                devices,
                enabled=self._options.mdev_types,
                used={each for _, mdevs in used for each in mdevs},
                owner=f"{spec.uuid} {operation}",
            )
            mark = mark_of(spec, operation, disk=str(disk), vgpus=vgpus)
            domain = self._link.define(
                domain_xml(
                    Domain(
                        mark=mark,
                        spec=spec,
                        kind=capabilities.domain_type(self._options.virt_type),
                        arch=capabilities.arch,
                        pci=pci,
                        topology=topology,
                        console=str(self._disks.console_path(spec.uuid)),
                        network=self._options.network,
                        encryption=encryption,
                    )
                )
            )
        if spec.is_on:
            self._link.start(domain, mark)
        self._link.mark(domain, replace(mark, is_complete=True))

    def _addresses_of(
        self, spec: GuestSpec, devices: NodeDevices, topology: NumaTopology | None, *, used: Collection[str]
    ) -> tuple[str, ...]:
        """Return the addresses of PCI devices for a guest.

        Raises:
            BuildFailed: there are not enough.
        """
        known = passthrough(devices.pci, self._options.pci_devices)
        if spec.devices:
            check_assigned(spec.devices, known, used=used)
            return spec.devices
        return choose_pci(
            spec.pci,
            known,
            used=used,
            cells=[each.host_cell for each in spec.cells] or None,
            sockets={cell.id: cell.socket for cell in (topology.cells if topology else ())},
        )

    def _arrive(self, spec: GuestSpec, operation: str, disk: Path) -> None:
        """Run a guest from an arrived disk; in a move within this host, keep its earlier state."""
        uuid = spec.uuid
        before = self._link.guest(uuid)
        if before is not None and not before.mark.is_complete:
            self._link.remove(before)
            before = None

        def undo() -> None:
            if before is not None:
                self._restore(uuid, before.xml, is_on=before.is_active)
                self._disks.drop_replaced(uuid)
            elif (begun := self._link.guest(uuid)) is not None:
                self._link.remove(begun)

        with undo_on_error(self._link, undo):
            if before is not None:
                self._disks.store_replaced(uuid, before.xml)
                self._link.remove(before)
            self._run(spec, operation, disk)

    def _restore_if_unfinished(self, uuid: str) -> Guest | None:
        """Return a guest; after an interrupted rebuild, restore it first, and leave it stopped."""
        guest, before = self._link.guest(uuid), self._disks.guest_before_rebuild(uuid)
        if before is not None and (guest is None or not guest.mark.is_complete):
            self._restore(uuid, before, is_on=False)
            guest = self._link.guest(uuid)
        if before is not None and guest is not None:
            self._disks.end_rebuild(uuid, guest.mark.operation)
        return guest

    def _restore(self, uuid: str, xml: str, *, is_on: bool) -> None:
        """Restore an earlier state of a guest, in place of the present one."""
        now = self._link.guest(uuid)
        if now is not None:
            self._link.remove(now)
        self._link.define(xml)
        guest = self._link.guest(uuid)
        if is_on and guest is not None:
            self._link.start(guest.domain, guest.mark)

    def _drop(self, uuid: str) -> None:
        guest = self._link.guest(uuid)
        if guest is not None:
            self._link.remove(guest)
        self._disks.drop_all(uuid)

    def _shutdown(self, guest: Guest) -> None:
        left_s = self._options.shutdown_s
        try:
            if left_s:
                guest.domain.shutdown()
        except self._link.error:  # It ended by itself, or does not support a shutdown request.
            left_s = 0.0
        while left_s > 0 and guest.domain.isActive():
            self._wait(min(_CHECK_S, left_s))
            left_s -= _CHECK_S
        self._link.stop(guest.domain)

    def _find_complete(self, uuid: str) -> Guest:
        """Return a complete guest."""
        guest = self._restore_if_unfinished(uuid)
        if guest is None or not guest.mark.is_complete:
            raise self._not_found(uuid)
        return guest

    def _find_stopped(self, uuid: str) -> Guest:
        guest = self._find_complete(uuid)
        if guest.is_active:
            raise Conflict(f"guest {uuid} runs on {self._host}, stop it first")
        return guest

    def _was_completed_by(self, uuid: str, operation: str) -> bool:
        """Return whether an operation completed a guest."""
        guest = self._link.guest(uuid)
        return guest is not None and guest.mark.operation == operation and guest.mark.is_complete

    def _check_node(self, node: str) -> None:
        if node != self._host:
            raise NotFound("node", node, message=f"host {self._host} has no node {node}")

    def _check_spec(self, spec: GuestSpec) -> None:
        if spec.node != self._host:
            raise BuildFailed(f"host {self._host} has no node {spec.node}")
        if spec.flavor.ephemeral_gb or spec.flavor.swap:
            raise BuildFailed(f"guests on {self._host} have one disk, without ephemeral disks and swap")

    def _not_found(self, uuid: str) -> NotFound:
        return NotFound("guest", uuid, message=f"host {self._host} has no complete guest {uuid}")

    @contextmanager
    def _guest_errors(self, uuid: str) -> Iterator[None]:
        """Turn errors of libvirt and of the system into ``Unavailable``, with the uuid of the guest."""
        with self._link.convert_errors(f"guest {uuid} on {self._host}", Unavailable):
            yield
