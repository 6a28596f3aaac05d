"""What earlier imports copied: for each provider and consumer, how it was there and what it became here.

So that a later import can tell what has changed there since from what has changed here. It is kept in documents, in
the same commit as what it tells of.
"""

import hashlib
from typing import NamedTuple

import msgspec

from roost.model.writes import PutDocument
from roost.placement.current import Current

KIND = "import"
_encoder = msgspec.msgpack.Encoder()


class Copied(msgspec.Struct, frozen=True, array_like=True):
    """Digests of one thing, when it was copied."""

    there: bytes
    here: bytes


Things = dict[str, Copied | None]  # by uuid; None: it is no more


class _Body(msgspec.Struct, frozen=True):
    source: str
    position: int  # of the columns then, so that no two are equal
    providers: Things
    consumers: Things


class Memory(NamedTuple):
    """Everything copied from one source."""

    providers: Things
    consumers: Things


def recall(current: Current, source: str) -> Memory:
    """Return what was copied from a source, as the last import of each thing left it."""
    memory = Memory({}, {})
    numbers = sorted(number for (kind, _), number in current.state.documents.items() if kind == KIND)
    for number in numbers:
        body = current.store.document(number)
        if body is None:
            continue
        entry = msgspec.msgpack.decode(body, type=_Body)
        if entry.source == source:
            memory.providers.update(entry.providers)
            memory.consumers.update(entry.consumers)
    return memory


def remember(current: Current, number: int, source: str, changed: Memory) -> PutDocument:
    """Return the write that remembers what an import copied."""
    body = _encoder.encode(_Body(source, current.state.position, changed.providers, changed.consumers))
    return PutDocument(number, KIND, hashlib.blake2b(body, digest_size=16).digest(), body)
