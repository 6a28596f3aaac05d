"""The guests of the fake driver, and their storage: in memory, or in a folder."""

import os
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol
from urllib.parse import quote, unquote

import msgspec

from roost.errors import BuildAborted, DriverNotReady, first_line
from roost.model.work.guest import GuestReport, GuestSpec, GuestState

# The use of a guest by part of its node: name of the part -> resource class -> amount.
Uses = dict[str, dict[str, int]]


class FakeGuest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A guest, complete or not."""

    spec: GuestSpec
    operation: str
    state: GuestState
    disk: tuple[str, ...] = ()  # history of the guest, line by line; moves with it
    uses: Uses = {}

    @property
    def report(self) -> GuestReport:
        """Its report."""
        return GuestReport(uuid=self.spec.uuid, node=self.spec.node, operation=self.operation, state=self.state)


class Arrival(msgspec.Struct, frozen=True, kw_only=True):
    """The data of a guest from another host."""

    disk: tuple[str, ...]
    is_running: bool


class HostRecord(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The stored state of a host, by uuid of the instance."""

    guests: dict[str, FakeGuest] = {}
    coming: dict[str, FakeGuest] = {}  # expected guests, with reserved resources
    replaced: dict[str, FakeGuest] = {}  # earlier states of guests that moved within the host
    left: dict[str, str] = {}  # target addresses of live-migrated guests
    # By node: the parts that a reshape assigned to consumers without a guest yet.
    promised: dict[str, dict[str, Uses]] = {}


class Shelf(Protocol):
    """The storage of hosts, and the exchange between them. Threads may share it.

    Methods raise ``DriverNotReady`` if the storage cannot be written or read now; its state is then unchanged.
    """

    def keep(self, host: str, record: bytes) -> None:
        """Store the state of a host."""

    def load(self, host: str) -> bytes | None:
        """Return the state of a host; None: it has none."""

    def address(self, host: str) -> str:
        """Return the address of a host for others."""

    def send(self, address: str, uuid: str, arrival: bytes) -> None:
        """Send data of a guest."""

    def part(self, host: str, record: bytes, *, address: str, uuid: str, arrival: bytes) -> None:
        """Send a running guest, and store its host's state without it."""

    def load_arrival(self, address: str, uuid: str) -> bytes | None:
        """Return the arrived data of a guest; None: nothing arrived."""

    def forget(self, address: str, uuid: str) -> None:
        """Delete the arrived data of a guest, if any."""

    def save_image(self, image: str, disk: bytes) -> None:
        """Store a disk as an image, for all hosts."""

    def image(self, image: str) -> bytes | None:
        """Return the disk of a saved image; None: there is none."""

    def images(self) -> Collection[str]:
        """Return the names of saved images, complete or not."""

    def drop_image(self, image: str) -> None:
        """Delete an image, if it exists."""


class MemoryShelf:
    """Storage for the hosts of one process, for its lifetime."""

    def __init__(self) -> None:
        self._records: dict[str, bytes] = {}
        self._sent: dict[tuple[str, str], bytes] = {}
        self._images: dict[str, bytes] = {}

    def keep(self, host: str, record: bytes) -> None:
        """See ``Shelf.keep``."""
        self._records[host] = record

    def load(self, host: str) -> bytes | None:
        """See ``Shelf.load``."""
        return self._records.get(host)

    def address(self, host: str) -> str:
        """Return the name of a host."""
        return host

    def send(self, address: str, uuid: str, arrival: bytes) -> None:
        """See ``Shelf.send``."""
        self._sent[address, uuid] = arrival

    def part(self, host: str, record: bytes, *, address: str, uuid: str, arrival: bytes) -> None:
        """See ``Shelf.part``; atomic."""
        self._sent[address, uuid], self._records[host] = arrival, record

    def load_arrival(self, address: str, uuid: str) -> bytes | None:
        """See ``Shelf.load_arrival``."""
        return self._sent.get((address, uuid))

    def forget(self, address: str, uuid: str) -> None:
        """See ``Shelf.forget``."""
        self._sent.pop((address, uuid), None)

    def save_image(self, image: str, disk: bytes) -> None:
        """See ``Shelf.save_image``."""
        self._images[image] = disk

    def image(self, image: str) -> bytes | None:
        """See ``Shelf.image``."""
        return self._images.get(image)

    def images(self) -> Collection[str]:
        """See ``Shelf.images``."""
        return [*self._images]

    def drop_image(self, image: str) -> None:
        """See ``Shelf.drop_image``."""
        self._images.pop(image, None)


class FolderShelf:
    """Storage for all hosts with the same folder, in any process."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()

    def keep(self, host: str, record: bytes) -> None:
        """See ``Shelf.keep``."""
        self._write(self._path("hosts", host), record)

    def load(self, host: str) -> bytes | None:
        """See ``Shelf.load``."""
        return self._read(self._path("hosts", host))

    def address(self, host: str) -> str:
        """Return the path of a host's arrivals."""
        return str(self._folder / "arrivals" / quote(host, safe=""))

    def send(self, address: str, uuid: str, arrival: bytes) -> None:
        """See ``Shelf.send``."""
        self._write(Path(address) / f"{uuid}.json", arrival)

    def part(self, host: str, record: bytes, *, address: str, uuid: str, arrival: bytes) -> None:
        """See ``Shelf.part``; in two steps."""
        self.send(address, uuid, arrival)
        try:
            self.keep(host, record)
        except DriverNotReady:
            self.forget(address, uuid)  # The guest stays on its host, so it must not run on the target too.
            raise

    def load_arrival(self, address: str, uuid: str) -> bytes | None:
        """See ``Shelf.load_arrival``."""
        return self._read(Path(address) / f"{uuid}.json")

    def forget(self, address: str, uuid: str) -> None:
        """See ``Shelf.forget``."""
        self._unlink(Path(address) / f"{uuid}.json")

    def save_image(self, image: str, disk: bytes) -> None:
        """See ``Shelf.save_image``."""
        self._write(self._path("images", image), disk)

    def image(self, image: str) -> bytes | None:
        """See ``Shelf.image``."""
        return self._read(self._path("images", image))

    def images(self) -> Collection[str]:
        """See ``Shelf.images``."""
        return {unquote(path.name.partition(".")[0]) for path in self._files("*")}

    def drop_image(self, image: str) -> None:
        """Delete an image, complete or not."""
        for each in self._files(f"{self._path('images', image).stem}.*"):
            self._unlink(each)

    def _files(self, pattern: str) -> list[Path]:
        """Return the files of images by name pattern."""
        return [*(self._folder / "images").glob(pattern)]

    def _path(self, kind: str, name: str) -> Path:
        return self._folder / kind / f"{quote(name, safe='')}.json"

    def _write(self, path: Path, body: bytes) -> None:
        # A reader, also after a crash, finds the complete old or new file.
        partial = path.with_suffix(f".{os.getpid()}.new")
        try:
            with self._lock:
                path.parent.mkdir(parents=True, exist_ok=True)
                partial.write_bytes(body)
                partial.replace(path)
        except OSError as error:
            raise DriverNotReady(f"the fake driver cannot write {path}: {error.strerror}") from error

    def _unlink(self, path: Path) -> None:
        try:
            path.unlink(missing_ok=True)  # Another host may have deleted it meanwhile.
        except OSError as error:
            raise DriverNotReady(f"the fake driver cannot delete {path}: {error.strerror}") from error

    def _read(self, path: Path) -> bytes | None:
        try:
            return path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise DriverNotReady(f"the fake driver cannot read {path}: {error.strerror}") from error


def read_record(body: bytes | None, host: str) -> HostRecord:
    """Return the state of a host.

    Raises:
        DriverNotReady: it is malformed.
    """
    if body is None:
        return HostRecord()
    with _decode_errors(f"the fake driver's state of host {host}"):
        return msgspec.json.decode(body, type=HostRecord)


def read_arrival(body: bytes, uuid: str) -> Arrival:
    """Return the arrived data of a guest.

    Raises:
        DriverNotReady: it is malformed.
    """
    with _decode_errors(f"the arrived data of guest {uuid}"):
        return msgspec.json.decode(body, type=Arrival)


def read_disk(body: bytes | None, image: str) -> tuple[str, ...]:
    """Return the disk of a saved image.

    Raises:
        BuildAborted: there is none, or it is malformed.
    """
    if body is None:
        raise BuildAborted(f"there is no image {image}")
    try:
        return msgspec.json.decode(body, type=tuple[str, ...])
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise BuildAborted(f"image {image} of the fake driver is malformed: {first_line(error)}") from error


@contextmanager
def _decode_errors(subject: str) -> Iterator[None]:
    try:
        yield
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise DriverNotReady(f"{subject} is malformed: {first_line(error)}") from error


def pieces_text(spec: GuestSpec) -> str:
    """Return the names of a guest's individual resources as text."""
    return f" with {', '.join(spec.pieces)}" if spec.pieces else ""


def state_of(spec: GuestSpec) -> GuestState:
    """Return the intended state of a guest."""
    return "running" if spec.is_on else "stopped"
