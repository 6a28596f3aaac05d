"""The parts of a database as bytes, and back. Parts of one kind are merged, since large parts take less time."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

import msgspec
import numpy as np

from roost.engine.fill.table_columns import (
    ClaimColumns,
    HostColumns,
    InventoryColumns,
    LabelColumns,
    Part,
    ProviderColumns,
)
from roost.model.writes import Write
from roost.store.column_file.number_codec import Packed, pack_integers, pack_reals, unpack_integers, unpack_reals
from roost.store.rules.codec import decode_writes, pack_writes

V = TypeVar("V")

BlockKind = Literal["writes", "providers", "inventories", "traits", "membership", "hosts", "claims"]

# Rows of one block: the lists of a block are in memory beside the columns.
_ROWS_MAX = 32_768
_UUID_BYTES = 16

# Each distinct value once, and the number of the value of each row.
_Repeats: TypeAlias = tuple[list[V], list[int]]
# Uuids are one text of bytes. The nodes are None if they equal the hosts.
_Providers: TypeAlias = tuple[list[int], bytes, list[str], list[int | None], list[int], list[int]]
_Hosts: TypeAlias = tuple[list[int], list[int], list[str], list[str] | None, _Repeats[bytes], list[int]]
_Numbers: TypeAlias = tuple[int, list[Packed]]  # rows, columns
_Claims: TypeAlias = tuple[
    tuple[list[int], bytes, _Repeats[str], _Repeats[str], list[int], list[int]],
    tuple[list[int], list[int], list[int]],
    tuple[list[int], list[int], list[int], list[int], list[int], list[int], list[int]],
    list[bool],
]

_encode = msgspec.msgpack.Encoder().encode
_providers = msgspec.msgpack.Decoder(_Providers)
_hosts = msgspec.msgpack.Decoder(_Hosts)
_numbers = msgspec.msgpack.Decoder(_Numbers)
_claims = msgspec.msgpack.Decoder(_Claims)


class Block(NamedTuple):
    """Some rows of one table, or some writes."""

    kind: BlockKind
    body: bytes


def encode_parts(parts: Iterable[Part]) -> Iterator[Block]:
    """Yield the blocks of a database.

    Args:
        parts: in the order of ``store.dump``.
    """
    for kind, some in groupby(parts, key=_kind_of):
        if kind == "writes":
            yield from (Block("writes", body) for body in pack_writes(_only_writes(some)))
            continue
        for merged in _merge(some):
            yield Block(kind, _body_of(merged))


def decode_block(block: Block) -> Iterator[Part]:
    """Yield the parts of a block.

    Raises:
        MsgspecError, ValueError: it is malformed.
    """
    match block.kind:
        case "writes":
            yield from decode_writes(block.body)
        case "providers":
            ids, uuids, names, parents, roots, versions = _providers.decode(block.body)
            yield ProviderColumns(ids, _split(uuids, len(ids)), names, parents, roots, versions)
        case "inventories":
            yield _decode_inventories(block.body)
        case "traits" | "membership":
            rows, columns = _decode_numbers(block.body, 2)
            yield LabelColumns(block.kind, *(unpack_integers(column, rows) for column in columns))
        case "hosts":
            ids, provider_ids, hosts, nodes, facts, versions = _hosts.decode(block.body)
            yield HostColumns(ids, provider_ids, hosts, hosts if nodes is None else nodes, _expand(facts), versions)
        case "claims":
            consumers, takes, instances, has_place = _claims.decode(block.body)
            numbers, uuids, projects, users, *others = consumers
            texts = _split(uuids, len(numbers)), _expand(projects), _expand(users)
            yield ClaimColumns((numbers, *texts, *others), takes, instances, has_place)


def _kind_of(part: Part) -> BlockKind:
    match part:
        case ProviderColumns():
            return "providers"
        case InventoryColumns():
            return "inventories"
        case LabelColumns():
            return part.kind
        case HostColumns():
            return "hosts"
        case ClaimColumns():
            return "claims"
        case _:
            return "writes"


def _only_writes(parts: Iterable[Part]) -> Iterator[Write]:
    return (part for part in parts if not isinstance(part, tuple))


def _merge(parts: Iterable[Any]) -> Iterator[Any]:
    """Yield parts of one kind with more rows each."""
    some, rows = list[Any](), 0
    for part in parts:
        some.append(part)
        rows += _rows_of(part)
        if rows >= _ROWS_MAX:
            yield _join(some)
            some, rows = [], 0
    if some:
        yield _join(some)


def _rows_of(part: Any) -> int:
    match part:
        case ClaimColumns():
            return len(part.consumers[0]) + len(part.takes[0])
        case LabelColumns():
            return len(part.label_ids)
        case _:
            return len(part[0])


def _join(parts: list[Any]) -> Any:
    match parts[0]:
        case LabelColumns():
            providers, labels = (np.concatenate([part[at] for part in parts]) for at in (1, 2))
            return LabelColumns(parts[0].kind, providers, labels)
        case InventoryColumns():
            return InventoryColumns(*map(np.concatenate, zip(*parts, strict=True)))
        case ClaimColumns():
            consumers, takes, instances = (_join_columns([part[at] for part in parts]) for at in range(3))
            return ClaimColumns(consumers, takes, instances, _chain(part.has_place for part in parts))
        case _:
            return type(parts[0])(*_join_columns(parts))


def _join_columns(tables: Sequence[Sequence[Sequence[Any]]]) -> list[list[Any]]:
    return [_chain(columns) for columns in zip(*tables, strict=True)]


def _chain(columns: Iterable[Iterable[V]]) -> list[V]:
    return list(chain.from_iterable(columns))


def _body_of(part: Part) -> bytes:
    match part:
        case ProviderColumns():
            body: Any = (part.ids, b"".join(part.uuids), *part[2:])
        case InventoryColumns():
            ids, *amounts, ratio, used = part
            body = (len(ids), [*map(pack_integers, (ids, *amounts, used)), pack_reals(ratio)])
        case LabelColumns():
            body = (len(part.label_ids), [pack_integers(part.provider_ids), pack_integers(part.label_ids)])
        case HostColumns():
            nodes = None if part.nodes == part.hosts else part.nodes
            body = (part.ids, part.provider_ids, part.hosts, nodes, _pack_repeats(part.facts), part.versions)
        case ClaimColumns():
            numbers, uuids, projects, users, *others = part.consumers
            columns = (numbers, b"".join(uuids), _pack_repeats(projects), _pack_repeats(users), *others)
            body = (columns, part.takes, part.instances, part.has_place)
        case _:
            raise AssertionError("writes have blocks of their own")
    return _encode(body)


def _decode_inventories(body: bytes) -> InventoryColumns:
    rows, (*packed, ratio) = _decode_numbers(body, len(InventoryColumns._fields))
    *columns, used = (unpack_integers(column, rows) for column in packed)
    ids, total, reserved, min_unit, max_unit, step_size = columns
    return InventoryColumns(ids, total, reserved, min_unit, max_unit, step_size, unpack_reals(ratio, rows), used)


def _decode_numbers(body: bytes, count: int) -> _Numbers:
    rows, columns = _numbers.decode(body)
    if len(columns) != count:
        raise ValueError(f"a block has {len(columns)} columns, not {count}")
    return rows, columns


def _split(uuids: bytes, rows: int) -> list[bytes]:
    if len(uuids) != rows * _UUID_BYTES:
        raise ValueError(f"{rows} uuids have {len(uuids)} bytes")
    return [uuids[at : at + _UUID_BYTES] for at in range(0, len(uuids), _UUID_BYTES)]


def _pack_repeats(values: Sequence[V]) -> _Repeats[V]:
    numbers: dict[V, int] = {}
    codes = [numbers.setdefault(value, len(numbers)) for value in values]
    return list(numbers), codes


def _expand(repeats: _Repeats[V]) -> list[V]:
    """Return the value of each row; a code beyond the values is an ``IndexError``."""
    values, codes = repeats
    return [values[code] for code in codes]
