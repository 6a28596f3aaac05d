"""The rules of all kinds of writes, one file per table: the rows that a write needs, and its refusals."""

from collections.abc import Mapping
from types import MappingProxyType

from roost.store.rules.write_rule import WriteRule
from roost.store.rules.writes import (
    aggregates,
    claims,
    documents,
    groups,
    hosts,
    inventories,
    labels,
    providers,
    symbols,
    tasks,
)

_TABLES = (symbols, providers, inventories, labels, aggregates, hosts, groups, documents, claims, tasks)
# By type of write. ``PutGeneration`` is missing because it is never committed.
WRITE_RULES: Mapping[type, WriteRule] = MappingProxyType(
    {kind: rule for table in _TABLES for kind, rule in table.RULES.items()}
)
