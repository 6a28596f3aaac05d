"""The allocations in the tables, and the allocations that each process shows from its columns."""

import random
from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

from roost.store.backends import database_at
from tests.ha.record import Holding
from tests.support.servers.clusters import ServerProgram

_ALLOCATIONS = """
SELECT c.uuid, p.uuid, s.name, a.amount FROM allocation a
JOIN consumer c ON c.id = a.consumer_id
JOIN provider p ON p.id = a.inventory_id / 65536
JOIN symbol s ON s.kind = 'resource_class' AND s.id = a.inventory_id % 65536"""
_SAMPLE = 40


class Tables:
    """The rows that are compared.

    Args:
        holdings: by consumer.
        decisions: the UUIDs of all decisions, one for each row.
    """

    def __init__(self, holdings: dict[str, Holding], decisions: list[str]) -> None:
        self.holdings, self.decisions = holdings, decisions


def read_tables(url: str) -> Tables:
    """Read allocations and decisions with plain SQL, without the code that wrote them."""
    holdings: dict[str, Holding] = {}
    with database_at(url).audit_query() as query:
        for consumer, provider, name, amount in query(_ALLOCATIONS):
            holdings.setdefault(_text(consumer), {}).setdefault(_text(provider), {})[name] = amount
        decisions = [_text(uuid) for (uuid,) in query("SELECT uuid FROM decision")]
    return Tables(holdings, decisions)


def _text(uuid: Any) -> str:
    return str(UUID(bytes=bytes(uuid)) if isinstance(uuid, bytes | memoryview) else uuid)


def compare_server(server: ServerProgram, tables: Tables, *, consumers: Iterable[str] = ()) -> list[str]:
    """Return the differences between the answers of a process and the tables.

    Args:
        server: the process.
        tables: read while no client writes.
        consumers: a sample of them is read one by one, also absent ones.
    """
    by_provider: dict[str, dict[str, dict[str, int]]] = {}
    for consumer, holding in tables.holdings.items():
        for provider, amounts in holding.items():
            by_provider.setdefault(provider, {})[consumer] = amounts
    found = []
    for each in _ask(server, "/placement/resource_providers")["resource_providers"]:
        provider = each["uuid"]
        path, expected = f"/placement/resource_providers/{provider}", by_provider.pop(provider, {})
        shown = _ask(server, f"{path}/allocations")["allocations"]
        if {name: held["resources"] for name, held in shown.items()} != expected:
            found.append(f"provider {provider} has {len(shown)} consumers instead of {len(expected)}, or other amounts")
        usages = _ask(server, f"{path}/usages")["usages"]
        if {name: amount for name, amount in usages.items() if amount} != _sum(expected):
            found.append(f"provider {provider} has the usage {usages} instead of {_sum(expected)}")
    found += [f"provider {provider} is missing" for provider in by_provider]
    names = sorted(consumers)
    for consumer in random.Random(len(names)).sample(names, min(_SAMPLE, len(names))):
        shown = _ask(server, f"/placement/allocations/{consumer}")["allocations"]
        holding = {provider: held["resources"] for provider, held in shown.items()}
        if holding != (wanted := tables.holdings.get(consumer, {})):
            found.append(f"consumer {consumer} holds {holding} instead of {wanted}")
    return found


def _ask(server: ServerProgram, path: str) -> Any:
    status, answer = server.ask("GET", path)
    assert status == 200, (path, status, answer)
    return answer


def _sum(held: Mapping[str, Mapping[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for amounts in held.values():
        for name, amount in amounts.items():
            total[name] = total.get(name, 0) + amount
    return total
