"""Rows of the tables as columns, to fill an empty state without an object for each row."""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

from roost.engine.columns.types import Amounts, Scores
from roost.model.writes import Write

LabelKind = Literal["traits", "membership"]


class ProviderColumns(NamedTuple):
    """New providers, in the order of their ids. The parent of each one is older."""

    ids: Sequence[int]
    uuids: Sequence[bytes]
    names: Sequence[str]
    parent_ids: Sequence[int | None]
    root_ids: Sequence[int]
    versions: Sequence[int]


class InventoryColumns(NamedTuple):
    """Inventories, and generations: in class 0, ``used`` is the generation of the provider.

    All arrays have the shape (rows,). Amounts are in the unit of the class.
    """

    ids: Amounts  # provider id << CLASS_BITS | class id
    total: Amounts
    reserved: Amounts
    min_unit: Amounts
    max_unit: Amounts
    step_size: Amounts
    ratio: Scores
    used: Amounts  # only generations are read; amounts follow from allocations


class LabelColumns(NamedTuple):
    """The traits, or the aggregates, of all providers: one row for each provider and label, sorted by provider."""

    kind: LabelKind
    provider_ids: Amounts
    label_ids: Amounts


class HostColumns(NamedTuple):
    """New hosts, in the order of their ids."""

    ids: Sequence[int]
    provider_ids: Sequence[int]
    hosts: Sequence[str]
    nodes: Sequence[str]
    facts: Sequence[bytes]  # msgpack of HostFacts
    versions: Sequence[int]


class ClaimColumns(NamedTuple):
    """New consumers, in the order of their ids, with all their allocations and instances, sorted by consumer."""

    consumers: Sequence[Sequence[Any]]  # columns in the order of the fields of ``ConsumerRow``
    takes: Sequence[Sequence[int]]  # consumer id, inventory id, amount
    instances: Sequence[Sequence[int]]  # columns in the order of the fields of ``InstanceRow``
    has_place: Sequence[bool]  # of instances: whether each one counts in the places of its group


# A part of a database. Small tables come as writes.
Part: TypeAlias = Write | ProviderColumns | InventoryColumns | LabelColumns | HostColumns | ClaimColumns
