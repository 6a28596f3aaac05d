"""Files of guests: disks, records of arriving guests, and states before a rebuild or a move within the host."""

import errno
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote, unquote

import msgspec

from roost.errors import BuildAborted, BuildFailed, Unavailable, first_line
from roost.model.work.guest import GuestReport, GuestSpec, TransferTarget

_GIB = 2**30
_CHUNK = 2**20  # block size of copies, bytes
_CONSOLE_MAX = 2**16  # maximum length of returned console output, bytes
_EXPECTED = "coming.json"
_REPLACED = "replaced.xml"
_REBUILT = "rebuilt.xml"
# Names of saved images, and of incomplete ones.
_SAVED = re.compile(r"saved-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?:\.[0-9]+\.new)?")


class ExpectedGuest(msgspec.Struct, frozen=True, kw_only=True):
    """An expected guest with reserved resources."""

    spec: GuestSpec
    operation: str

    @property
    def report(self) -> GuestReport:
        """Its report."""
        return GuestReport(uuid=self.spec.uuid, node=self.spec.node, operation=self.operation, state="prepared")


class Disks:
    """The files of one host's guests, one folder each. Hosts with the same folder reach each other through it.

    Each file is first written under another name, so an existing file is complete. Methods raise the system's OSError.

    Args:
        folder: folder of all hosts.
        host: name of the host.
        images: folder of images, one file each, named by id.
    """

    def __init__(self, folder: Path, host: str, *, images: Path) -> None:
        self.folder = folder / quote(host, safe="")
        self._images = images

    def path(self, uuid: str, operation: str) -> Path:
        """Return the path of the disk that an operation created for a guest."""
        return self._guest_folder(uuid) / f"{quote(operation, safe='')}.raw"

    def make(self, spec: GuestSpec, operation: str) -> Path:
        """Create a disk from an image, of the size of the flavor.

        Raises:
            BuildAborted: the image does not exist, or is larger.
        """
        target = self.path(spec.uuid, operation)
        size = spec.flavor.root_gb * _GIB
        with _whole(target) as partial:
            if spec.image.id is None:
                partial.write_bytes(b"")
            else:
                image = self._image(spec)
                if size and image.stat().st_size > size:
                    raise BuildAborted(f"image {spec.image.id} does not fit into {spec.flavor.root_gb} GiB")
                copy_sparse(image, partial)
            os.truncate(partial, max(size, partial.stat().st_size))
        return target

    def save(self, uuid: str, disk: Path) -> str:
        """Save a disk as an image, and return its id."""
        image = f"saved-{uuid}"
        with _whole(self._images / image) as partial:
            copy_sparse(disk, partial)
        return image

    def list_saved(self) -> list[str]:
        """Return the sorted uuids of guests with saved images, complete or not."""
        return sorted({uuid for uuid, _ in self._image_files()})

    def drop_saved(self, uuid: str) -> None:
        """Delete the saved image of a guest, complete or not; all other images stay."""
        for owner, path in self._image_files():
            if owner == uuid:
                path.unlink(missing_ok=True)  # Another host may have deleted it.

    def console_path(self, uuid: str) -> Path:
        """Return the path of a guest's console output."""
        return self._guest_folder(uuid) / "console.log"

    def console(self, uuid: str) -> str:
        """Return the end of a guest's console output."""
        try:
            with self.console_path(uuid).open("rb") as file:
                file.seek(max(file.seek(0, os.SEEK_END) - _CONSOLE_MAX, 0))
                return file.read().decode(errors="replace")
        except FileNotFoundError:
            return ""

    def drop(self, uuid: str, operation: str) -> None:
        """Delete the disk that an operation created, complete or not, if it exists."""
        path = self.path(uuid, operation)
        _drop_partial(path)
        path.unlink(missing_ok=True)

    def drop_all(self, uuid: str) -> None:
        """Delete all files of a guest."""
        try:
            shutil.rmtree(self._guest_folder(uuid))
        except FileNotFoundError:
            return

    # --- rebuilds ---

    def store_rebuilt(self, uuid: str, xml: str) -> None:
        """Store the state of a guest before its rebuild."""
        with _whole(self._guest_folder(uuid) / _REBUILT) as partial:
            partial.write_text(xml, encoding="utf-8")

    def guest_before_rebuild(self, uuid: str) -> str | None:
        """Return the state of a guest before an incomplete rebuild; None: there is none."""
        return _read_state(self._guest_folder(uuid) / _REBUILT)

    def list_rebuilt(self) -> list[str]:
        """Return the uuids of guests with incomplete rebuilds."""
        return [unquote(path.parent.name) for path in sorted(self.folder.glob(f"*/{_REBUILT}"))]

    def end_rebuild(self, uuid: str, operation: str) -> None:
        """Delete the state before a rebuild and, unless a move must be settled, the disks of all other operations."""
        if self.guest_before_move(uuid) is None:
            self.drop_others(uuid, operation)
        (self._guest_folder(uuid) / _REBUILT).unlink(missing_ok=True)

    # --- moves ---

    def expect(self, expected: ExpectedGuest) -> None:
        """Record an expected guest, in place of an earlier one."""
        self.forget(expected.spec.uuid)
        with _whole(self._guest_folder(expected.spec.uuid) / _EXPECTED) as partial:
            partial.write_bytes(msgspec.json.encode(expected))

    def find_expected(self, uuid: str) -> ExpectedGuest | None:
        """Return an expected guest; None: there is none.

        Raises:
            Unavailable: the record is malformed.
        """
        return _read_expected(self._guest_folder(uuid) / _EXPECTED)

    def list_expected(self) -> list[ExpectedGuest]:
        """Return all expected guests."""
        found = (_read_expected(path) for path in sorted(self.folder.glob(f"*/{_EXPECTED}")))
        return [each for each in found if each is not None]

    def note_arrival(self, uuid: str) -> None:
        """Record the arrival of an expected guest."""
        (self._guest_folder(uuid) / _EXPECTED).unlink(missing_ok=True)

    def forget(self, uuid: str) -> None:
        """Delete the record of an expected guest, and its arrived disk."""
        expected = self.find_expected(uuid)
        if expected is not None:
            self.note_arrival(uuid)
            self.drop(uuid, expected.operation)

    def send(self, disk: Path, to: TransferTarget) -> None:
        """Copy a disk to its target path.

        Raises:
            BuildFailed: the target does not expect the guest, or the hosts do not share the folder.
        """
        target = Path(to.disk)
        expected = _read_expected(target.with_name(_EXPECTED)) if to.disk else None
        if expected is None or target.stem != quote(expected.operation, safe=""):
            raise BuildFailed(f"guest {to.uuid} is not expected at {to.address}, or the hosts do not share its folder")
        with _whole(target) as partial:
            copy_sparse(disk, partial)

    def store_replaced(self, uuid: str, xml: str) -> None:
        """Store the state of a guest before a move within the host."""
        with _whole(self._guest_folder(uuid) / _REPLACED) as partial:
            partial.write_text(xml, encoding="utf-8")

    def guest_before_move(self, uuid: str) -> str | None:
        """Return the state of a guest before a move within the host; None: there is none."""
        return _read_state(self._guest_folder(uuid) / _REPLACED)

    def list_replaced(self) -> list[str]:
        """Return the states of guests before moves within the host."""
        found = (_read_state(folder / _REPLACED) for folder in sorted(self.folder.iterdir()))
        return [each for each in found if each is not None]

    def drop_replaced(self, uuid: str) -> None:
        """Delete the state of a guest before a move within the host."""
        (self._guest_folder(uuid) / _REPLACED).unlink(missing_ok=True)

    def drop_others(self, uuid: str, operation: str) -> None:
        """Delete the state before a move, and all disks but those of one operation and of an expected arrival."""
        self.drop_replaced(uuid)
        expected = self.find_expected(uuid)
        remaining = {self.path(uuid, operation), *([] if expected is None else [self.path(uuid, expected.operation)])}
        for path in sorted(self._guest_folder(uuid).glob("*.raw")):
            if path not in remaining:
                path.unlink(missing_ok=True)
        for path in sorted(self._guest_folder(uuid).glob("*.raw.*.new")):
            if expected is None or not path.name.startswith(f"{self.path(uuid, expected.operation).name}."):
                path.unlink(missing_ok=True)

    def _guest_folder(self, uuid: str) -> Path:
        return self.folder / quote(uuid, safe="")

    def _image_files(self) -> list[tuple[str, Path]]:
        """Return the files of saved images, with the uuid of their guest."""
        with os.scandir(self._images) as entries:
            # A saved image is a regular file; a link with its name belongs to an operator.
            names = [each.name for each in entries if each.is_file(follow_symlinks=False)]
        found = ((_SAVED.fullmatch(name), self._images / name) for name in names)
        return [(match[1], path) for match, path in found if match]

    def _image(self, spec: GuestSpec) -> Path:
        name = spec.image.id or ""
        if spec.image.disk_format not in (None, "raw"):
            raise BuildAborted(f"image {name} is {spec.image.disk_format}, and guests of this driver have raw disks")
        path = self._images / name
        if path.parent != self._images or not path.is_file():
            raise BuildAborted(f"there is no image {name} in {self._images}")
        return path


def copy_sparse(source: Path, target: Path) -> None:
    """Copy a file without its holes; it is durable on return."""
    with source.open("rb") as reader, target.open("wb") as writer:
        size, at = os.fstat(reader.fileno()).st_size, 0
        while at < size:
            try:
                start = os.lseek(reader.fileno(), at, os.SEEK_DATA)
            except OSError as error:
                if error.errno != errno.ENXIO:
                    raise
                break  # Only a hole is left.
            at = os.lseek(reader.fileno(), start, os.SEEK_HOLE)
            while start < at:
                chunk = os.pread(reader.fileno(), min(_CHUNK, at - start), start)
                if not chunk:
                    raise Unavailable(f"{source} became shorter while it was copied")
                start += os.pwrite(writer.fileno(), chunk, start)
        writer.truncate(size)
        os.fsync(writer.fileno())


@contextmanager
def _whole(path: Path) -> Iterator[Path]:
    """Yield a temporary path for a new file; an error, such as a full disk, leaves nothing behind."""
    path.parent.mkdir(parents=True, exist_ok=True)
    _drop_partial(path)
    partial = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        yield partial
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def _drop_partial(path: Path) -> None:
    """Delete the incomplete files of processes that died."""
    ours = re.compile(rf"{re.escape(path.name)}\.[0-9]+\.new")
    for partial in path.parent.glob("*.new"):
        if ours.fullmatch(partial.name):
            partial.unlink(missing_ok=True)


def _read_state(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):  # Most guests have no such file, and it may be deleted meanwhile.
        return None


def _read_expected(path: Path) -> ExpectedGuest | None:
    try:
        body = path.read_bytes()
    except FileNotFoundError:
        return None
    try:
        return msgspec.json.decode(body, type=ExpectedGuest)
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise Unavailable(f"the record of an expected guest at {path} is malformed: {first_line(error)}") from error
