"""What the fake driver has of guests, and where that is kept and sent: in memory, or in a folder of the machine."""

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

# What a guest uses of the parts of its node: name of the part -> resource class -> amount.
Uses = dict[str, dict[str, int]]


class FakeGuest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A guest, complete or not."""

    spec: GuestSpec
    operation: str
    state: GuestState
    disk: tuple[str, ...] = ()  # what became of it, line by line; moves with it
    uses: Uses = {}

    @property
    def report(self) -> GuestReport:
        """What is told of it."""
        return GuestReport(uuid=self.spec.uuid, node=self.spec.node, operation=self.operation, state=self.state)


class Arrival(msgspec.Struct, frozen=True, kw_only=True):
    """What arrives of a guest from another host."""

    disk: tuple[str, ...]
    is_running: bool


class Kept(msgspec.Struct, kw_only=True, omit_defaults=True):
    """All that a host has; what a restart finds again. By uuid of the instance."""

    guests: dict[str, FakeGuest] = {}
    coming: dict[str, FakeGuest] = {}  # for which room is kept
    replaced: dict[str, FakeGuest] = {}  # guests as they were before a move to their own host was finished
    left: dict[str, str] = {}  # where guests went that moved while they ran, by address
    # By node: the parts that a reshape gave to those who hold amounts and have no guest yet.
    promised: dict[str, dict[str, Uses]] = {}


class Shelf(Protocol):
    """Where hosts keep what they have, and find what others sent. Threads may share it.

    Methods raise ``DriverNotReady`` where it cannot be written or read now; then what is there stays as it was.
    """

    def keep(self, host: str, kept: bytes) -> None:
        """Keep what a host has."""

    def load(self, host: str) -> bytes | None:
        """Return what a host had; None: nothing is known of it."""

    def address(self, host: str) -> str:
        """Return how others reach a host."""

    def send(self, address: str, uuid: str, arrival: bytes) -> None:
        """Send what is to arrive of a guest."""

    def part(self, host: str, kept: bytes, *, address: str, uuid: str, arrival: bytes) -> None:
        """Send a guest that runs, and keep what its host has without it."""

    def load_arrival(self, address: str, uuid: str) -> bytes | None:
        """Return what arrived of a guest; None: nothing."""

    def forget(self, address: str, uuid: str) -> None:
        """Drop what arrived of a guest, if anything did."""

    def save_image(self, image: str, disk: bytes) -> None:
        """Keep a disk as an image, for all hosts."""

    def image(self, image: str) -> bytes | None:
        """Return the disk of an image that was saved; None: there is none."""

    def images(self) -> Collection[str]:
        """Return the names of images that were saved, or are about to be."""

    def drop_image(self, image: str) -> None:
        """Drop an image, if there is one."""


class MemoryShelf:
    """Of the hosts of one process, for as long as that lives."""

    def __init__(self) -> None:
        self._kept: dict[str, bytes] = {}
        self._sent: dict[tuple[str, str], bytes] = {}
        self._images: dict[str, bytes] = {}

    def keep(self, host: str, kept: bytes) -> None:
        """Keep what a host has."""
        self._kept[host] = kept

    def load(self, host: str) -> bytes | None:
        """Return what a host had."""
        return self._kept.get(host)

    def address(self, host: str) -> str:
        """Return how others reach a host: its name."""
        return host

    def send(self, address: str, uuid: str, arrival: bytes) -> None:
        """Send what is to arrive of a guest."""
        self._sent[address, uuid] = arrival

    def part(self, host: str, kept: bytes, *, address: str, uuid: str, arrival: bytes) -> None:
        """Send a guest that runs, and keep what its host has without it: both or nothing."""
        self._sent[address, uuid], self._kept[host] = arrival, kept

    def load_arrival(self, address: str, uuid: str) -> bytes | None:
        """Return what arrived of a guest."""
        return self._sent.get((address, uuid))

    def forget(self, address: str, uuid: str) -> None:
        """Drop what arrived of a guest."""
        self._sent.pop((address, uuid), None)

    def save_image(self, image: str, disk: bytes) -> None:
        """Keep a disk as an image."""
        self._images[image] = disk

    def image(self, image: str) -> bytes | None:
        """Return the disk of an image that was saved."""
        return self._images.get(image)

    def images(self) -> Collection[str]:
        """Return the names of images that were saved."""
        return [*self._images]

    def drop_image(self, image: str) -> None:
        """Drop an image."""
        self._images.pop(image, None)


class FolderShelf:
    """Of all hosts whose agents name the same folder, whichever processes they are."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()

    def keep(self, host: str, kept: bytes) -> None:
        """Keep what a host has."""
        self._write(self._path("hosts", host), kept)

    def load(self, host: str) -> bytes | None:
        """Return what a host had."""
        return self._read(self._path("hosts", host))

    def address(self, host: str) -> str:
        """Return how others reach a host: the folder of what arrives there."""
        return str(self._folder / "arrivals" / quote(host, safe=""))

    def send(self, address: str, uuid: str, arrival: bytes) -> None:
        """Send what is to arrive of a guest."""
        self._write(Path(address) / f"{uuid}.json", arrival)

    def part(self, host: str, kept: bytes, *, address: str, uuid: str, arrival: bytes) -> None:
        """Send a guest that runs, and keep what its host has without it, one after the other."""
        self.send(address, uuid, arrival)
        try:
            self.keep(host, kept)
        except DriverNotReady:
            self.forget(address, uuid)  # It stays where it is, so it must not run there, too.
            raise

    def load_arrival(self, address: str, uuid: str) -> bytes | None:
        """Return what arrived of a guest."""
        return self._read(Path(address) / f"{uuid}.json")

    def forget(self, address: str, uuid: str) -> None:
        """Drop what arrived of a guest."""
        self._unlink(Path(address) / f"{uuid}.json")

    def save_image(self, image: str, disk: bytes) -> None:
        """Keep a disk as an image."""
        self._write(self._path("images", image), disk)

    def image(self, image: str) -> bytes | None:
        """Return the disk of an image that was saved."""
        return self._read(self._path("images", image))

    def images(self) -> Collection[str]:
        """Return the names of images that were saved, or are about to be."""
        return {unquote(path.name.partition(".")[0]) for path in self._files("*")}

    def drop_image(self, image: str) -> None:
        """Drop an image, and what was begun of one."""
        for each in self._files(f"{self._path('images', image).stem}.*"):
            self._unlink(each)

    def _files(self, pattern: str) -> list[Path]:
        """Return the files of images whose names fit."""
        return [*(self._folder / "images").glob(pattern)]

    def _path(self, kind: str, name: str) -> Path:
        return self._folder / kind / f"{quote(name, safe='')}.json"

    def _write(self, path: Path, body: bytes) -> None:
        # A reader, or whoever comes after a crash, finds the old whole or the new whole.
        fresh = path.with_suffix(f".{os.getpid()}.new")
        try:
            with self._lock:
                path.parent.mkdir(parents=True, exist_ok=True)
                fresh.write_bytes(body)
                fresh.replace(path)
        except OSError as error:
            raise DriverNotReady(f"the fake driver cannot write {path}: {error.strerror}") from error

    def _unlink(self, path: Path) -> None:
        try:
            path.unlink(missing_ok=True)  # Another host may have been faster.
        except OSError as error:
            raise DriverNotReady(f"the fake driver cannot drop {path}: {error.strerror}") from error

    def _read(self, path: Path) -> bytes | None:
        try:
            return path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise DriverNotReady(f"the fake driver cannot read {path}: {error.strerror}") from error


def read_kept(body: bytes | None, host: str) -> Kept:
    """Return what a host had.

    Raises:
        DriverNotReady: it cannot be understood.
    """
    if body is None:
        return Kept()
    with _decode_errors(f"what the fake driver kept of host {host}"):
        return msgspec.json.decode(body, type=Kept)


def read_arrival(body: bytes, uuid: str) -> Arrival:
    """Return what arrived of a guest.

    Raises:
        DriverNotReady: it cannot be understood.
    """
    with _decode_errors(f"what arrived of guest {uuid} at the fake driver"):
        return msgspec.json.decode(body, type=Arrival)


def read_disk(body: bytes | None, image: str) -> tuple[str, ...]:
    """Return the disk that was saved as an image.

    Raises:
        BuildAborted: there is none, or it cannot be understood.
    """
    if body is None:
        raise BuildAborted(f"there is no image {image}")
    try:
        return msgspec.json.decode(body, type=tuple[str, ...])
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise BuildAborted(f"image {image} of the fake driver cannot be understood: {first_line(error)}") from error


@contextmanager
def _decode_errors(subject: str) -> Iterator[None]:
    try:
        yield
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise DriverNotReady(f"{subject} cannot be understood: {first_line(error)}") from error


def pieces_text(spec: GuestSpec) -> str:
    """Say which single resources a guest has."""
    return f" with {', '.join(spec.pieces)}" if spec.pieces else ""


def state_of(spec: GuestSpec) -> GuestState:
    """Return the state that a guest is to have."""
    return "running" if spec.is_on else "stopped"
