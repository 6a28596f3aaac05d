"""The way to libvirt: a connection that is opened again where it broke, and what is asked of it and told."""

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
_events: list[threading.Thread] = []  # the one that runs libvirt's events, since there is one loop a process


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Guest:
    """A domain that is a guest."""

    mark: Mark
    xml: str  # that it would be defined by again
    is_active: bool
    domain: Any  # libvirt's own object

    @property
    def report(self) -> GuestReport:
        """What an agent is told of it."""
        mark = self.mark
        state: GuestState = "building" if not mark.is_complete else "running" if self.is_active else "stopped"
        return GuestReport(uuid=mark.uuid, node=mark.node, operation=mark.operation, state=state)


class Link:
    """What the driver asks of libvirt. Methods raise libvirt's own error, ``Link.error``, where it does.

    Args:
        binding: libvirt's module.
        uri: of libvirt.
        opened: opens a connection to a URI.
    """

    def __init__(self, binding: Any, uri: str, *, opened: Callable[[str], Any]) -> None:
        self._libvirt, self._uri, self._opened = binding, uri, opened
        self.error: type[Exception] = binding.libvirtError
        self._lock = threading.Lock()
        self._connection: Any = None
        self._node = ""  # whose guests these are
        self._features: dict[str, frozenset[str]] = {}  # all of them, by XML of the processors

    def work_for(self, node: str) -> None:
        """Let the guests of a node be those that there are; what else is there belongs to others."""
        self._node = node

    def connection(self) -> Any:
        """Return a connection that lives.

        Raises:
            DriverNotReady: libvirt cannot be reached.
        """
        with self._lock:
            try:
                if self._connection is None or not self._connection.isAlive():
                    self._connection = self._opened(self._uri)
            except self.error as error:
                raise DriverNotReady(f"libvirt cannot be reached at {self._uri}: {first_line(error)}") from error
            return self._connection

    @contextmanager
    def asking(self, subject: str, kind: type[Unavailable] = DriverNotReady) -> Iterator[None]:
        """Let an error of libvirt, or of the system, be one of ours that names a subject."""
        try:
            yield
        except (self.error, OSError) as error:
            raise kind(f"{subject}: {first_line(error)}") from error

    def is_nonsense(self, error: Exception) -> bool:
        """Say whether libvirt could not understand what it was told, or be told it, so that no other could either."""
        binding = self._libvirt
        codes = (binding.VIR_ERR_XML_ERROR, binding.VIR_ERR_XML_DETAIL, binding.VIR_ERR_XML_INVALID_SCHEMA)
        return isinstance(error, ValueError) or self._code(error) in codes

    # --- the host ---

    def capabilities(self) -> HostCapabilities:
        """Return what the host is, with all features of its processors."""
        told = read_capabilities(self.connection().getCapabilities())
        if told.cpu not in self._features:
            self._features = {told.cpu: told.features | self._expand_model(told.cpu)}
        return msgspec.structs.replace(told, features=self._features[told.cpu])

    def encryption(self, told: HostCapabilities, kind: str) -> Encryption | None:
        """Return how the host encrypts the memory of domains of a kind; None: it does not, or does not say."""
        binding = self._libvirt
        if told.arch != "x86_64":
            return None
        try:
            return read_encryption(self.connection().getDomainCapabilities(None, told.arch, MACHINE, kind))
        except self.error as error:
            silent = (binding.VIR_ERR_NO_SUPPORT, binding.VIR_ERR_INVALID_ARG, binding.VIR_ERR_CONFIG_UNSUPPORTED)
            if self._code(error) not in silent:
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
        """Return how long all processors were busy with what since the host started, ns."""
        return {name: float(value) for name, value in self.connection().getCPUStats(_ALL_PROCESSORS).items()}

    def devices(self) -> NodeDevices:
        """Return the devices of the host; none where libvirt does not tell any."""
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
        """Return the XML of all domains, ours or not."""
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
                guest = self._read(domain)
                if guest is not None:
                    found.append(guest)
        return found

    def guest(self, uuid: str) -> Guest | None:
        """Return a guest; None: there is none, or it is of another node.

        Raises:
            Unavailable: a domain of its uuid is not marked as a guest, so nobody knows what runs there.
        """
        domain = self._domain(uuid)
        try:
            mark = None if domain is None else self._mark_of(domain)
            if domain is not None and (mark is None or mark.uuid != uuid):
                raise Unavailable(f"domain {domain.name()} has the uuid of guest {uuid}, and is not marked as that")
            return None if domain is None else self._read(domain)
        except self.error as error:
            if not self._is_gone(error):
                raise
            return None

    def check_free(self, uuid: str) -> None:
        """Check that a domain that is defined with a uuid replaces nobody else's.

        Raises:
            Unavailable: it would.
        """
        domain = self._domain(uuid)
        if domain is not None and self._read(domain) is None:
            raise Unavailable(f"domain {domain.name()} is somebody else's")

    def define(self, xml: str) -> Any:
        """Define a domain, and return libvirt's object of it."""
        return self.connection().defineXML(xml)

    def start(self, domain: Any, mark: Mark) -> None:
        """Start a domain, with its parts of GPUs, which a host forgets when it starts again."""
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
        """Stop a domain at once; one that does not run is fine."""
        try:
            domain.destroy()
        except self.error:
            if domain.isActive():
                raise

    def remove(self, guest: Guest) -> None:
        """Stop a guest and forget it, with the parts of GPUs that were made for it."""
        with self._unless_gone():
            self.stop(guest.domain)
            binding = self._libvirt
            flags = binding.VIR_DOMAIN_UNDEFINE_MANAGED_SAVE | binding.VIR_DOMAIN_UNDEFINE_SNAPSHOTS_METADATA
            if self.kind() == "QEMU":  # Others refuse to be told of what they have not.
                flags |= binding.VIR_DOMAIN_UNDEFINE_CHECKPOINTS_METADATA | binding.VIR_DOMAIN_UNDEFINE_NVRAM
            guest.domain.undefineFlags(flags)
        made = {each.uuid for each in guest.mark.vgpus if each.is_made}
        for mdev in self.devices().mdevs if made else ():
            if mdev.uuid in made:
                self._unmake(mdev)

    def _unmake(self, mdev: Mdev) -> None:
        try:
            self.connection().nodeDeviceLookupByName(mdev.name).destroy()
        except self.error as error:
            log.fault(f"part of a GPU {mdev.name} stays", error)

    def _domain(self, uuid: str) -> Any:
        """Return libvirt's domain of a uuid; None: there is none."""
        try:
            return self.connection().lookupByUUIDString(uuid)
        except self.error as error:
            if not self._is_gone(error):
                raise
            return None

    def _read(self, domain: Any) -> Guest | None:
        """Return the guest that a domain is; None: it is none of this node. A copy of a guest has the mark of that."""
        mark = self._mark_of(domain)
        if mark is None or (mark.node, mark.uuid) != (self._node, domain.UUIDString()):
            return None
        xml = domain.XMLDesc(self._libvirt.VIR_DOMAIN_XML_INACTIVE | self._libvirt.VIR_DOMAIN_XML_SECURE)
        return Guest(mark=mark, xml=xml, is_active=bool(domain.isActive()), domain=domain)

    def _mark_of(self, domain: Any) -> Mark | None:
        try:
            return read_mark(domain.XMLDesc())
        except ValueError as error:
            problem = f"the mark of domain {domain.name()} cannot be understood: {first_line(error)}"
            raise DriverNotReady(problem) from None

    @contextmanager
    def _unless_gone(self) -> Iterator[None]:
        """Pass over what somebody else removed meanwhile."""
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
        """Return the features of the model of processors; none where libvirt does not know the model."""
        flag = self._libvirt.VIR_CONNECT_BASELINE_CPU_EXPAND_FEATURES
        try:
            return features_of(read_xml(self.connection().baselineCPU([cpu], flag)))
        except self.error:
            return frozenset()


def run_events(libvirt: Any) -> None:
    """Run libvirt's events for as long as the process lives; without them it does not notice that a link broke."""
    with _EVENTS_LOCK:
        if _events:
            return
        libvirt.registerErrorHandler(lambda *_: None, None)  # Else it writes each error to standard error, too.
        libvirt.virEventRegisterDefaultImpl()

        def run() -> None:
            while libvirt.virEventRunDefaultImpl() == 0:
                pass

        _events.append(threading.Thread(target=run, name="libvirt-events", daemon=True))
        _events[0].start()
