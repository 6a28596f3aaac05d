"""The layout of a column file: a header, blocks, and an end that shows that the file is whole.

Each has a checksum. A length is compared with the size of the file before anything is read.
"""

import os
import struct
import zlib
from collections.abc import Iterable, Iterator
from typing import BinaryIO, Final, get_args

import msgspec

from roost import __version__
from roost.engine.fill.table_columns import Part
from roost.store.column_file.part_codec import Block, BlockKind, decode_block
from roost.store.rules.closing_parts import close_after
from roost.store.rules.schema import SCHEMA_VERSION

_MAGIC: Final = b"roostcol"
_FORMAT: Final = 1  # of the blocks and the header; another format is never read
_START = struct.Struct("<8sIII")  # magic, format, length of the header, its checksum
_BLOCK = struct.Struct("<BIQ")  # kind, checksum, length
_END = struct.Struct("<8sQQI")  # magic, number of blocks, size of the file, checksum of all heads of blocks
_HEADER_MAX = 2**20
_CHUNK_BYTES = 2**20
_KINDS: tuple[BlockKind, ...] = get_args(BlockKind)


class ColumnFileRefused(Exception):  # never leaves the store, but for ``ColumnFile.parts``
    """A column file cannot be used; the text says why."""


class ColumnBase(msgspec.Struct, frozen=True, kw_only=True):
    """The changes in a column file."""

    position: int  # of the newest one
    schema: str  # of the database
    epoch: int = 0  # of a database on a server; changes with each restore
    vector: str = ""  # of a database on a server: the changes of each writer
    closed: dict[int, int] = {}  # see ``Vector.closed``


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """What a column file is of."""

    program: str  # version of the program that wrote it
    token: str  # see ``token_rows``
    base: ColumnBase
    made_at_s: float  # seconds since the epoch
    program_schema: str = SCHEMA_VERSION

    @property
    def is_foreign(self) -> bool:
        """Whether another version of the program wrote it."""
        return (self.program, self.program_schema) != (__version__, SCHEMA_VERSION)


_decode_header = msgspec.msgpack.Decoder(Header).decode


def write_file(file: BinaryIO, header: Header, blocks: Iterable[Block], *, size_max: int) -> int:
    """Write a column file; return its size.

    Raises:
        ColumnFileRefused: it would be larger than ``size_max``.
    """
    body = msgspec.msgpack.encode(header)
    file.write(_START.pack(_MAGIC, _FORMAT, len(body), zlib.crc32(body)) + body)
    size, count, checksum = _START.size + len(body), 0, 0
    for block in blocks:
        count += 1
        head = _BLOCK.pack(_KINDS.index(block.kind), zlib.crc32(block.body), len(block.body))
        checksum = zlib.crc32(head, checksum)
        size += len(head) + len(block.body)
        if size + _END.size > size_max:
            raise ColumnFileRefused(f"it would be larger than {size_max:,} bytes")
        file.write(head)
        file.write(block.body)
    size += _END.size
    file.write(_END.pack(_MAGIC, count, size, checksum))
    return size


class ColumnFile:
    """An open column file; ``close`` closes it.

    Args:
        file: at its beginning.

    Raises:
        ColumnFileRefused: it has no valid header, or is not whole.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.size = os.fstat(file.fileno()).st_size
        self.header = self._read_header()
        self._start = file.tell()
        self._count, self._checksum = self._read_end()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _read_header(self) -> Header:
        magic, layout, length, checksum = _START.unpack(self._read(_START.size))
        if magic != _MAGIC:
            raise ColumnFileRefused("it is not a column file")
        if layout != _FORMAT:
            raise ColumnFileRefused(f"it has format {layout}, not {_FORMAT}")
        if length > _HEADER_MAX:
            raise ColumnFileRefused("its header is too long")
        body = self._read(length)
        if zlib.crc32(body) != checksum:
            raise ColumnFileRefused("its header is damaged")
        try:
            return _decode_header(body)
        except msgspec.MsgspecError as error:
            raise ColumnFileRefused(f"its header is malformed: {error}") from None

    def _read_end(self) -> tuple[int, int]:
        if self.size < self._start + _END.size:
            raise ColumnFileRefused("it is truncated")
        self._file.seek(self.size - _END.size)
        magic, count, size, checksum = _END.unpack(self._read(_END.size))
        if magic != _MAGIC or size != self.size:
            raise ColumnFileRefused("it is truncated")
        return count, checksum

    def check(self) -> None:
        """Compare all checksums.

        Raises:
            ColumnFileRefused: the file is damaged.
        """
        whole, count = 0, 0
        for _, head, expected, length in self._heads():
            checksum, left = 0, length
            while left:
                chunk = self._read(min(left, _CHUNK_BYTES))
                checksum = zlib.crc32(chunk, checksum)
                left -= len(chunk)
            if checksum != expected:
                raise ColumnFileRefused("a block is damaged")
            whole, count = zlib.crc32(head, whole), count + 1
        if (whole, count) != (self._checksum, self._count):
            raise ColumnFileRefused("its blocks are damaged")

    def parts(self) -> Iterator[Part]:
        """Yield the parts of the database; close the file after the last one, or when the iterator is dropped.

        Raises:
            ColumnFileRefused, MsgspecError, ValueError, IndexError, OSError: it changed since ``check``.
        """
        return close_after(self._decode_blocks(), self.close)

    def _decode_blocks(self) -> Iterator[Part]:
        for kind, _, expected, length in self._heads():
            body = self._read(length)
            if zlib.crc32(body) != expected:
                raise ColumnFileRefused("a block is damaged")
            yield from decode_block(Block(kind, body))

    def _heads(self) -> Iterator[tuple[BlockKind, bytes, int, int]]:
        """Yield the kind, the head, the checksum and the length of each block; the file is then at its body."""
        at, end = self._start, self.size - _END.size
        while at < end:
            self._file.seek(at)
            head = self._read(_BLOCK.size)
            kind, checksum, length = _BLOCK.unpack(head)
            at += _BLOCK.size + length
            if at > end or kind >= len(_KINDS):
                raise ColumnFileRefused("the head of a block is damaged")
            yield _KINDS[kind], head, checksum, length

    def _read(self, length: int) -> bytes:
        found = self._file.read(length)
        if len(found) != length:
            raise ColumnFileRefused("it is truncated")
        return found
