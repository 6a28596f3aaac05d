"""Conversion between structs and rows of the databases."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import groupby
from typing import Any, NamedTuple, TypeVar

import msgspec

from roost.model.writes import (
    Change,
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
from roost.store.rules.row_cache import CachedTable, Holding, Labels, RowCache, Seat, Stock
from roost.store.rules.schema import Table

R = TypeVar("R", bound=msgspec.Struct)

_WRITES = msgspec.msgpack.Encoder()
_WRITES_OF = msgspec.msgpack.Decoder(list[Write])
_AS_TUPLE = msgspec.structs.astuple
# Approximate size of one part of a snapshot. Each part has its own transaction, and other writers wait for it.
_PART_BYTES = 256 * 1024


class UnknownChange(Exception):  # never leaves the store
    """A change cannot be decoded: a newer program wrote it."""


class Codec(NamedTuple):
    """The conversion of one table's rows to structs, and back."""

    table: Table
    decode: Callable[[list[Any]], Any]  # rows with one key -> struct
    encode: Callable[[Any], list[Values]]
    is_blind: bool = False  # rows are written without a read of the previous ones


def encode_writes(writes: list[Write]) -> bytes:
    """Return the body of a change."""
    return _WRITES.encode(writes)


def pack_writes(writes: Iterable[Write]) -> Iterator[bytes]:
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


def decode_change(position: int, body: bytes) -> Change:
    """Return a change of the feed.

    Raises:
        UnknownChange: its writes are of no known form.
    """
    try:
        return Change(position, decode_writes(body))
    except msgspec.MsgspecError as error:
        raise UnknownChange(f"change {position} cannot be decoded: {error}") from error


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


def _single_row(row: Any) -> list[Values]:
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
        Codec(schema.SYMBOL, lambda rows: PutSymbol(*rows[0]), _single_row),
        Codec(schema.PROVIDER, lambda rows: PutProvider(*rows[0]), _single_row),
        Codec(schema.INVENTORY, lambda rows: Stock(*rows[0]), _single_row),
        Codec(
            schema.PROVIDER_TRAIT,
            _labels_of,
            lambda row: [(row.provider_id, label) for label in row.ids],
            is_blind=True,
        ),
        Codec(
            schema.PROVIDER_AGGREGATE,
            _labels_of,
            lambda row: [(row.provider_id, label) for label in row.ids],
            is_blind=True,
        ),
        Codec(schema.AGGREGATE, lambda rows: aggregate_of(rows[0]), _aggregate_row),
        Codec(schema.HOST, lambda rows: host_of(rows[0]), _host_row),
        Codec(schema.SERVER_GROUP, lambda rows: PutGroup(*rows[0]), _single_row),
        Codec(schema.DOCUMENT, lambda rows: PutDocument(*rows[0]), _single_row),
        Codec(schema.PLACE, lambda rows: Seat(*rows[0]), _single_row),
        Codec(schema.CONSUMER, lambda rows: ConsumerRow(*rows[0]), _single_row),
        Codec(schema.ALLOCATION, _holding_of, lambda row: [(row.consumer_id, *take) for take in row.takes]),
        Codec(schema.INSTANCE, lambda rows: InstanceRow(*rows[0]), _single_row),
        Codec(schema.DECISION, lambda rows: EvidenceRow(*rows[0]), _single_row),
        *(Codec(table, partial(_first_of, kind), _single_row) for kind, table in schema.WORK.items()),
    ]
    return {codec.table.name: codec for codec in codecs}


CODECS = _codecs()


def fill(cache: RowCache, table: str, rows: list[Values]) -> None:
    """Add rows of a table from the database to a cache; rows with equal keys must be neighbours."""
    codec, cached = CODECS[table], cache.by_name()[table]
    key = [codec.table.columns.index(column) for column in codec.table.key]
    for _, same in groupby(rows, key=lambda row: [row[at] for at in key]):
        cached.fill(codec.decode(list(same)))


class TableChange(NamedTuple):
    """The effect of accepted items on one table."""

    table: Table
    deletions: list[Values]  # keys
    updates: list[Values]  # whole rows; only of tables with ``is_updated``
    insertions: list[Values]  # whole rows, to be inserted after the deletions


def table_changes(cache: RowCache) -> Iterator[TableChange]:
    """Yield the effect of accepted items, table by table."""
    for name, cached in cache.by_name().items():
        if cached.changed:
            yield _build_change(CODECS[name], cached)


def _build_change(codec: Codec, cached: CachedTable[Any, Any]) -> TableChange:
    change = TableChange(codec.table, [], [], [])
    for key, before in cached.changed.items():
        now = cached.get(key)
        if now is not None and before is not None and codec.table.is_updated:
            change.updates.extend(codec.encode(now))
            continue
        if before is not None or codec.is_blind:
            change.deletions.append(key if isinstance(key, tuple) else (key,))
        if now is not None:
            change.insertions.extend(codec.encode(now))
    change.deletions.sort()
    return change
