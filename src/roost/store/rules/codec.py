"""Conversion between structs and rows of the databases."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import groupby
from typing import Any, NamedTuple, TypeVar

import msgspec

from roost.model.writes import (
    ConsumerRow,
    EvidenceRow,
    InstanceRow,
    PutAggregate,
    PutDocument,
    PutGroup,
    PutHost,
    PutProvider,
    PutSymbol,
    Write,
)
from roost.store.rules import schema
from roost.store.rules.footprint import Values
from roost.store.rules.row_cache import Holding, Labels, Seat, Shelf, Shelves, Stock
from roost.store.rules.schema import Table

R = TypeVar("R", bound=msgspec.Struct)

_WRITES = msgspec.msgpack.Encoder()
_WRITES_OF = msgspec.msgpack.Decoder(list[Write])
_AS_TUPLE = msgspec.structs.astuple
# Approximate size of a row of a snapshot; each is written in its own transaction, for which others wait.
_PART_BYTES = 256 * 1024


class Codec(NamedTuple):
    """The conversion of one table's rows to structs, and back."""

    table: Table
    decode: Callable[[list[Any]], Any]  # rows with one key -> struct
    encode: Callable[[Any], list[Values]]
    is_blind: bool = False  # written without having been read


def encode_writes(writes: list[Write]) -> bytes:
    """Return the body of a change."""
    return _WRITES.encode(writes)


def parts_of(writes: Iterable[Write]) -> Iterator[bytes]:
    """Pack many writes into bodies of limited size, for ``decode_writes``."""
    part: list[msgspec.Raw] = []
    size = 0
    for write in writes:
        body = _WRITES.encode(write)
        part.append(msgspec.Raw(body))
        size += len(body)
        if size >= _PART_BYTES:
            yield _WRITES.encode(part)
            part, size = [], 0
    if part:
        yield _WRITES.encode(part)


def decode_writes(body: bytes) -> list[Write]:
    """Return the writes of a change."""
    return _WRITES_OF.decode(body)


def aggregate_of(row: Iterable[Any]) -> PutAggregate:
    """Return an aggregate from its row."""
    number, uuid, name, metadata, version = row
    return PutAggregate(number, uuid, name, msgspec.json.decode(metadata, type=dict[str, str]), version)


def host_of(row: Iterable[Any]) -> PutHost:
    """Return a host from its row."""
    number, provider_id, host, node, facts, version = row
    return PutHost(number, provider_id, host, node, msgspec.Raw(facts), version)


def _host_row(host: PutHost) -> list[Values]:
    return [(host.id, host.provider_id, host.host, host.node, bytes(host.facts), host.version)]


def _aggregate_row(row: PutAggregate) -> list[Values]:
    return [(row.id, row.uuid, row.name, msgspec.json.encode(row.metadata).decode(), row.version)]


def _one(row: Any) -> list[Values]:
    return [_AS_TUPLE(row)]


def work_of(kind: type[R], row: Iterable[Any]) -> R:
    """Return a row of work; the databases store true as 1."""
    return msgspec.convert(tuple(row), kind, strict=False)


def _labels_of(rows: list[Any]) -> Labels:
    return Labels(rows[0][0], tuple(row[1] for row in rows))


def _holding_of(rows: list[Any]) -> Holding:
    return Holding(rows[0][0], tuple(sorted((row[1], row[2]) for row in rows)))


def _first_of(kind: type[msgspec.Struct], rows: list[Any]) -> Any:
    return work_of(kind, rows[0])


def _codecs() -> dict[str, Codec]:
    codecs = [
        Codec(schema.SYMBOL, lambda rows: PutSymbol(*rows[0]), _one),
        Codec(schema.PROVIDER, lambda rows: PutProvider(*rows[0]), _one),
        Codec(schema.INVENTORY, lambda rows: Stock(*rows[0]), _one),
        Codec(
            schema.PROVIDER_TRAIT, _labels_of, lambda row: [(row.provider_id, one) for one in row.ids], is_blind=True
        ),
        Codec(
            schema.PROVIDER_AGGREGATE,
            _labels_of,
            lambda row: [(row.provider_id, one) for one in row.ids],
            is_blind=True,
        ),
        Codec(schema.AGGREGATE, lambda rows: aggregate_of(rows[0]), _aggregate_row),
        Codec(schema.HOST, lambda rows: host_of(rows[0]), _host_row),
        Codec(schema.SERVER_GROUP, lambda rows: PutGroup(*rows[0]), _one),
        Codec(schema.DOCUMENT, lambda rows: PutDocument(*rows[0]), _one),
        Codec(schema.PLACE, lambda rows: Seat(*rows[0]), _one),
        Codec(schema.CONSUMER, lambda rows: ConsumerRow(*rows[0]), _one),
        Codec(schema.ALLOCATION, _holding_of, lambda row: [(row.consumer_id, *take) for take in row.takes]),
        Codec(schema.INSTANCE, lambda rows: InstanceRow(*rows[0]), _one),
        Codec(schema.DECISION, lambda rows: EvidenceRow(*rows[0]), _one),
        *(Codec(table, partial(_first_of, kind), _one) for kind, table in schema.WORK.items()),
    ]
    return {codec.table.name: codec for codec in codecs}


CODECS = _codecs()


def fill(shelves: Shelves, table: str, rows: list[Values]) -> None:
    """Add rows from the database to the shelf of their table; rows with one key are neighbours."""
    codec, shelf = CODECS[table], shelves.by_table()[table]
    width = [codec.table.columns.index(column) for column in codec.table.key]
    for _, same in groupby(rows, key=lambda row: [row[at] for at in width]):
        shelf.fill(codec.decode(list(same)))


class Rewrite(NamedTuple):
    """The effect of accepted items on one table."""

    table: Table
    gone: list[Values]  # keys
    updated: list[Values]  # whole rows; only of tables with ``is_updated``
    fresh: list[Values]  # whole rows, to be inserted after the deletion of ``gone``


def rewrites(shelves: Shelves) -> Iterator[Rewrite]:
    """Yield the effect of accepted items, table by table."""
    for name, shelf in shelves.by_table().items():
        if shelf.changed:
            yield _rewrite(CODECS[name], shelf)


def _rewrite(codec: Codec, shelf: Shelf[Any, Any]) -> Rewrite:
    rewrite = Rewrite(codec.table, [], [], [])
    for key, before in shelf.changed.items():
        now = shelf.get(key)
        if now is not None and before is not None and codec.table.is_updated:
            rewrite.updated.extend(codec.encode(now))
            continue
        if before is not None or codec.is_blind:
            rewrite.gone.append(key if isinstance(key, tuple) else (key,))
        if now is not None:
            rewrite.fresh.extend(codec.encode(now))
    rewrite.gone.sort()
    return rewrite
