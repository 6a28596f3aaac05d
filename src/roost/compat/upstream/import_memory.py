"""The memory of earlier imports: for each provider and consumer, digests of its source and of its copy.

A later import compares the digests to detect changes on either side. They are stored as documents, in the commit of
the import.
"""

import hashlib
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from roost.compat.upstream.sql_drivers import source_key
from roost.model.writes import PutDocument
from roost.placement.current import Current

KIND = "import"
_encoder = msgspec.msgpack.Encoder()


class CopyDigests(msgspec.Struct, frozen=True, array_like=True):
    """Digests of a provider or consumer, when it was copied."""

    there: bytes
    here: bytes


DigestsByUuid = dict[str, CopyDigests | None]  # by uuid; None: deleted


class _Body(msgspec.Struct, frozen=True):
    source: str
    position: int  # of the columns, so that every body is unique
    providers: DigestsByUuid
    consumers: DigestsByUuid


class Memory(NamedTuple):
    """All digests of one source."""

    providers: DigestsByUuid
    consumers: DigestsByUuid


def read_memory(current: Current, source: str) -> Memory:
    """Return the newest digests of all providers and consumers copied from a source.

    Args:
        source: its URL; account, driver and parameters may differ from those of earlier imports.
    """
    memory = Memory({}, {})
    for entry in _entries(current):
        if source_key(entry.source) == source_key(source):
            memory.providers.update(entry.providers)
            memory.consumers.update(entry.consumers)
    return memory


def other_sources(current: Current, source: str) -> list[str]:
    """Return the other sources of earlier imports."""
    return sorted({entry.source for entry in _entries(current) if source_key(entry.source) != source_key(source)})


def _entries(current: Current) -> Iterator[_Body]:
    """Yield the records of earlier imports, oldest first."""
    numbers = sorted(number for (kind, _), number in current.state.documents.items() if kind == KIND)
    for number in numbers:
        body = current.store.document(number)
        if body is not None:
            yield msgspec.msgpack.decode(body, type=_Body)


def build_memory_write(current: Current, number: int, source: str, changed: Memory) -> PutDocument:
    """Return the write that stores the digests of an import."""
    body = _encoder.encode(_Body(source, current.state.position, changed.providers, changed.consumers))
    return PutDocument(number, KIND, hashlib.blake2b(body, digest_size=16).digest(), body)
