"""The connection to libvirt, reopened after a loss, and the calls to it."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import msgspec

from roost.compute.drivers.libvirt.devices import Mdev, NodeDevices, mdev_xml, read_devices
from roost.compute.drivers.libvirt.domain_xml import MACHINE, NAMESPACE, PREFIX, Mark, mark_xml, read_mark
from roost.compute.drivers.libvirt.host import (
    Encryption,
    HostCapabilities,
    features_of,
    read_capabilities,
    read_encryption,
    read_xml,
)
from roost.errors import DriverNotReady, Unavailable, first_line
from roost.model.work.guest import GuestReport, GuestState
from roost.observe import log

_ALL_PROCESSORS = -1
_EVENTS_LOCK = threading.Lock()
_events: list[threading.Thread] = []  # runs libvirt's events: one loop per process


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Guest:
    """A domain that is a guest."""

    mark: Mark
    xml: str  # to define the domain again
    is_active: bool
    domain: Any  # libvirt's own object

    @property
    def report(self) -> GuestReport:
        """Its report."""
        mark = self.mark
        state: GuestState = "building" if not mark.is_complete else "running" if self.is_active else "stopped"
        return GuestReport(uuid=mark.uuid, node=mark.node, operation=mark.operation, state=state)


class Link:
    """The driver's calls to libvirt. Methods raise libvirt's own error, ``Link.error``.

    Args:
        binding: libvirt's module.
        uri: URI of libvirt.
        connect: opens a connection to a URI.
    """

    def __init__(self, binding: Any, uri: str, *, connect: Callable[[str], Any]) -> None:
        self._libvirt, self._uri, self._connect = binding, uri, connect
        self.error: type[Exception] = binding.libvirtError
        self._lock = threading.Lock()
        self._connection: Any = None
        self._node = ""  # name of the node
        self._features: dict[str, frozenset[str]] = {}  # all features, by XML of the processors

    def set_node(self, node: str) -> None:
        """Set the node whose guests are managed; other domains are left alone."""
        self._node = node

    def connection(self) -> Any:
        """Return a live connection.

        Raises:
            DriverNotReady: libvirt does not answer.
        """
        with self._lock:
            try:
                if self._connection is None or not self._connection.isAlive():
                    self._connection = self._connect(self._uri)
            except self.error as error:
                raise DriverNotReady(f"libvirt cannot be reached at {self._uri}: {first_line(error)}") from error
            return self._connection

    @contextmanager
    def convert_errors(self, subject: str, kind: type[Unavailable] = DriverNotReady) -> Iterator[None]:
        """Convert errors of libvirt and of the system into errors that name a subject."""
        try:
            yield
        except (self.error, OSError) as error:
            raise kind(f"{subject}: {first_line(error)}") from error

    def is_bad_input(self, error: Exception) -> bool:
        """Return whether libvirt rejected the input itself, so that other hosts would too."""
        binding = self._libvirt
        codes = (binding.VIR_ERR_XML_ERROR, binding.VIR_ERR_XML_DETAIL, binding.VIR_ERR_XML_INVALID_SCHEMA)
        return isinstance(error, ValueError) or self._code(error) in codes

    # --- the host ---

    def capabilities(self) -> HostCapabilities:
        """Return the capabilities of the host, with all features of its processors."""
        found = read_capabilities(self.connection().getCapabilities())
        if found.cpu not in self._features:
            self._features = {found.cpu: found.features | self._expand_model(found.cpu)}
        return msgspec.structs.replace(found, features=self._features[found.cpu])

    def encryption(self, capabilities: HostCapabilities, kind: str) -> Encryption | None:
        """Return the host's memory encryption for domains of a kind; None: none, or unknown."""
        binding = self._libvirt
        if capabilities.arch != "x86_64":
            return None
        try:
            return read_encryption(self.connection().getDomainCapabilities(None, capabilities.arch, MACHINE, kind))
        except self.error as error:
            unsupported = (binding.VIR_ERR_NO_SUPPORT, binding.VIR_ERR_INVALID_ARG, binding.VIR_ERR_CONFIG_UNSUPPORTED)
            if self._code(error) not in unsupported:
                raise
            return None

    def kind(self) -> str:
        """Return the kind of hypervisor, such as QEMU."""
        return str(self.connection().getType())

    def version(self) -> int:
        """Return the version of the hypervisor; 1002003 is 1.2.3."""
        return int(self.connection().getVersion())

    def info(self) -> tuple[int, int, int]:
        """Return the processors of the host, its memory in MiB, and the frequency in MHz."""
        _, memory_mb, cpus, mhz, *_ = self.connection().getInfo()
        return int(cpus), int(memory_mb), int(mhz)

    def cpu_times(self) -> dict[str, float]:
        """Return the total times of all processors by kind since the host's start, ns."""
        return {name: float(value) for name, value in self.connection().getCPUStats(_ALL_PROCESSORS).items()}

    def devices(self) -> NodeDevices:
        """Return the devices of the host; empty if libvirt reports none."""
        texts = []
        try:
            for device in self.connection().listAllDevices():
                with self._unless_gone():
                    texts.append(device.XMLDesc())
        except self.error as error:
            if self._code(error) != self._libvirt.VIR_ERR_NO_SUPPORT:
                raise
        return read_devices(texts)

    # --- guests ---

    def texts(self) -> list[str]:
        """Return the XML of all domains, managed or not."""
        found = []
        for domain in self.connection().listAllDomains():
            with self._unless_gone():
                found.append(domain.XMLDesc())
        return found

    def guests(self) -> list[Guest]:
        """Return all guests."""
        found = []
        for domain in self.connection().listAllDomains():
            with self._unless_gone():
                guest = self._read_guest(domain)
                if guest is not None:
                    found.append(guest)
        return found

    def guest(self, uuid: str) -> Guest | None:
        """Return a guest; None: there is none, or it belongs to another node.

        Raises:
            Unavailable: a domain with its uuid is not marked as a guest, so its content is unknown.
        """
        domain = self._find_domain(uuid)
        try:
            mark = None if domain is None else self._mark_of(domain)
            if domain is not None and (mark is None or mark.uuid != uuid):
                raise Unavailable(f"domain {domain.name()} has the uuid of guest {uuid}, and is not marked as a guest")
            return None if domain is None else self._read_guest(domain)
        except self.error as error:
            if not self._is_gone(error):
                raise
            return None

    def check_free(self, uuid: str) -> None:
        """Check that no foreign domain has a uuid, since a definition would replace it.

        Raises:
            Unavailable: a foreign domain has the uuid.
        """
        domain = self._find_domain(uuid)
        if domain is not None and self._read_guest(domain) is None:
            raise Unavailable(f"domain {domain.name()} is not a guest of this agent")

    def define(self, xml: str) -> Any:
        """Define a domain, and return libvirt's object."""
        return self.connection().defineXML(xml)

    def start(self, domain: Any, mark: Mark) -> None:
        """Start a domain, after recreating its vGPUs, which a host loses at its restart."""
        known = {each.uuid for each in self.devices().mdevs} if mark.vgpus else set()
        for vgpu in mark.vgpus:
            if vgpu.uuid not in known:
                self.connection().nodeDeviceCreateXML(mdev_xml(vgpu))
        domain.create()

    def mark(self, domain: Any, mark: Mark) -> None:
        """Change the mark of a domain."""
        flags = self._libvirt.VIR_DOMAIN_AFFECT_CONFIG
        if domain.isActive():
            flags |= self._libvirt.VIR_DOMAIN_AFFECT_LIVE
        kind = self._libvirt.VIR_DOMAIN_METADATA_ELEMENT
        domain.setMetadata(kind, mark_xml(mark), PREFIX, NAMESPACE, flags)

    def stop(self, domain: Any) -> None:
        """Stop a domain at once, if it runs."""
        try:
            domain.destroy()
        except self.error:
            if domain.isActive():
                raise

    def remove(self, guest: Guest) -> None:
        """Stop and undefine a guest, and delete the vGPUs created for it."""
        with self._unless_gone():
            self.stop(guest.domain)
            binding = self._libvirt
            flags = binding.VIR_DOMAIN_UNDEFINE_MANAGED_SAVE | binding.VIR_DOMAIN_UNDEFINE_SNAPSHOTS_METADATA
            if self.kind() == "QEMU":  # Other hypervisors may reject these flags.
                flags |= binding.VIR_DOMAIN_UNDEFINE_CHECKPOINTS_METADATA | binding.VIR_DOMAIN_UNDEFINE_NVRAM
            guest.domain.undefineFlags(flags)
        created = {each.uuid for each in guest.mark.vgpus if each.is_made}
        for mdev in self.devices().mdevs if created else ():
            if mdev.uuid in created:
                self._delete_mdev(mdev)

    def _delete_mdev(self, mdev: Mdev) -> None:
        try:
            self.connection().nodeDeviceLookupByName(mdev.name).destroy()
        except self.error as error:
            log.fault(f"mediated device {mdev.name} remains", error)

    def _find_domain(self, uuid: str) -> Any:
        """Return libvirt's domain with a uuid; None: there is none."""
        try:
            return self.connection().lookupByUUIDString(uuid)
        except self.error as error:
            if not self._is_gone(error):
                raise
            return None

    def _read_guest(self, domain: Any) -> Guest | None:
        """Return the guest of a domain; None: not a guest of this node, or a copy of a guest with the same mark."""
        mark = self._mark_of(domain)
        if mark is None or (mark.node, mark.uuid) != (self._node, domain.UUIDString()):
            return None
        xml = domain.XMLDesc(self._libvirt.VIR_DOMAIN_XML_INACTIVE | self._libvirt.VIR_DOMAIN_XML_SECURE)
        return Guest(mark=mark, xml=xml, is_active=bool(domain.isActive()), domain=domain)

    def _mark_of(self, domain: Any) -> Mark | None:
        try:
            return read_mark(domain.XMLDesc())
        except ValueError as error:
            problem = f"the mark of domain {domain.name()} is malformed: {first_line(error)}"
            raise DriverNotReady(problem) from None

    @contextmanager
    def _unless_gone(self) -> Iterator[None]:
        """Ignore the concurrent removal of an object."""
        try:
            yield
        except self.error as error:
            if not self._is_gone(error):
                raise

    def _is_gone(self, error: Exception) -> bool:
        return self._code(error) in (self._libvirt.VIR_ERR_NO_DOMAIN, self._libvirt.VIR_ERR_NO_NODE_DEVICE)

    def _code(self, error: Exception) -> int | None:
        return error.get_error_code() if isinstance(error, self.error) else None  # type: ignore[attr-defined]  # Untyped.

    def _expand_model(self, cpu: str) -> frozenset[str]:
        """Return the features of a processor model; empty if libvirt does not know it."""
        flag = self._libvirt.VIR_CONNECT_BASELINE_CPU_EXPAND_FEATURES
        try:
            return features_of(read_xml(self.connection().baselineCPU([cpu], flag)))
        except self.error:
            return frozenset()


def run_events(libvirt: Any) -> None:
    """Run libvirt's events for the lifetime of the process; without them a broken connection goes unnoticed."""
    with _EVENTS_LOCK:
        if _events:
            return
        libvirt.registerErrorHandler(lambda *_: None, None)  # By default it also writes each error to standard error.
        libvirt.virEventRegisterDefaultImpl()

        def run() -> None:
            while libvirt.virEventRunDefaultImpl() == 0:
                pass

        _events.append(threading.Thread(target=run, name="libvirt-events", daemon=True))
        _events[0].start()
