"""The file format of a backup: contents, order and checksum.

The file starts with two lines of text for ``head -n 2``: the name of the format, and the header as JSON. Blocks of rows
follow. A block is its length in four bytes, then msgpack compressed with zlib. A length of 0 ends the blocks. The last
bytes are the SHA-256 of everything before them.
"""

import hashlib
import os
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from roost.errors import BadFile, BadRequest, unreadable_file

Progress = Callable[[int, int], None]  # written rows, all rows
Block = tuple[int, list[tuple[Any, ...]]]  # index of a table in the header, rows of it

_MAGIC = b"roost-backup 1\n"
_LENGTH = struct.Struct(">I")
_BLOCK_MAX = 2**30  # bytes; a greater length is damaged
_HEADER_MAX = 2**20
_CHUNK = 2**20
_DIGEST_BYTES = hashlib.sha256().digest_size
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(tuple[int, list[tuple[Any, ...]]])


class TableHead(msgspec.Struct, frozen=True):
    """A table in a backup."""

    name: str
    columns: tuple[str, ...]
    rows: int


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """The header of a backup: origin, position and tables."""

    schema: str
    database: str  # sqlite, postgresql
    made_at: str  # ISO 8601, UTC
    position: int  # of the newest change in the feed
    tables: tuple[TableHead, ...]

    @property
    def rows(self) -> int:
        """Number of rows in all tables."""
        return sum(table.rows for table in self.tables)

    def age_s(self, now_s: float) -> float:
        """Return the seconds since the backup, >= 0."""
        return max(0.0, now_s - datetime.fromisoformat(self.made_at).timestamp())


def write_backup(path: Path, header: Header, blocks: Iterable[Block], *, progress: Progress) -> int:
    """Write a backup, and return its size in bytes; the file appears when it is complete.

    Raises:
        BadRequest: the file exists.
        BadFile: it cannot be written.
    """
    if path.exists():
        raise BadRequest(f"{path} exists already: name a file that does not")
    beside = path.with_name(path.name + ".new")
    with _translate_errors(path, is_read=False):
        # A backup has all data of the database, so only its owner may read it.
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                size = _write(file, header, blocks, progress=progress)
                file.flush()
                os.fsync(file.fileno())
            os.link(beside, path)  # Unlike a rename, it never replaces a file created meanwhile.
        finally:
            beside.unlink(missing_ok=True)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    return size


def _write(file: BinaryIO, header: Header, blocks: Iterable[Block], *, progress: Progress) -> int:
    digest, size, done, total = hashlib.sha256(), 0, 0, header.rows
    for part in _parts(header, blocks):
        if isinstance(part, int):
            done += part
            progress(done, total)
            continue
        file.write(part)
        digest.update(part)
        size += len(part)
    file.write(digest.digest())
    return size + _DIGEST_BYTES


def _parts(header: Header, blocks: Iterable[Block]) -> Iterator[bytes | int]:
    yield _MAGIC + msgspec.json.encode(header) + b"\n"
    for block in blocks:
        body = zlib.compress(_encoder.encode(block))
        yield _LENGTH.pack(len(body)) + body
        yield len(block[1])
    yield _LENGTH.pack(0)


def read_header(path: Path) -> Header:
    """Return the header of a backup, after a check of its checksum.

    Raises:
        FileMissing: it cannot be read.
        BadFile: it is not a complete backup.
    """
    with _translate_errors(path, is_read=True), path.open("rb") as file:
        digest, left = hashlib.sha256(), path.stat().st_size - _DIGEST_BYTES
        header = _header(path, file)
        file.seek(0)
        while left > 0:
            part = file.read(min(left, _CHUNK))
            if not part:
                break
            digest.update(part)
            left -= len(part)
        if left or file.read() != digest.digest():
            raise BadFile(str(path), "the backup is damaged or cut off: its checksum is wrong")
    return header


def read_blocks(path: Path) -> Iterator[Block]:
    """Yield the rows of a backup with a correct checksum, in the order of writing.

    Raises:
        FileMissing: it cannot be read.
        BadFile: it is not a complete backup.
    """
    with _translate_errors(path, is_read=True), path.open("rb") as file:
        _header(path, file)
        while True:
            length = file.read(_LENGTH.size)
            size = _LENGTH.unpack(length)[0] if len(length) == _LENGTH.size else _BLOCK_MAX
            if not size:
                return
            body = file.read(size) if size < _BLOCK_MAX else b""
            try:
                yield _decoder.decode(zlib.decompress(body))
            except (zlib.error, msgspec.MsgspecError) as error:
                raise BadFile(str(path), "the backup is damaged or cut off") from error


def _header(path: Path, file: BinaryIO) -> Header:
    if file.read(len(_MAGIC)) != _MAGIC:
        raise BadFile(str(path), "is not a backup that this version of roost can read")
    try:
        return msgspec.json.decode(file.readline(_HEADER_MAX), type=Header)
    except msgspec.MsgspecError as error:
        raise BadFile(str(path), "the backup is damaged: its second line is invalid") from error


@contextmanager
def _translate_errors(path: Path, *, is_read: bool) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if is_read:
            raise unreadable_file(str(path), error) from error
        raise BadFile(str(path), f"cannot be written: {error.strerror or error}") from error
