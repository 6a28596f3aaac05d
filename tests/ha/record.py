"""The record of all writes of the clients, and its comparison with the tables.

A consumer has a set of possible holdings. An acknowledged write leaves one. A write without an answer adds one.
"""

from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec

Holding = dict[str, dict[str, int]]  # amounts by provider uuid and resource class; empty: the consumer is absent
Kind = Literal["lost", "doubled", "resurrected", "different"]
KINDS: tuple[Kind, ...] = ("lost", "doubled", "resurrected", "different")


class Problem(msgspec.Struct, frozen=True):
    """A difference between the record and the tables."""

    kind: Kind
    text: str


class Record:
    """The writes of a client; only this client writes these consumers."""

    def __init__(self) -> None:
        self.possible: dict[str, tuple[Holding, ...]] = {}  # by consumer; the write that began last is the last
        self.acknowledged_at_s: dict[str, float] = {}  # by consumer
        self.decisions: dict[str, str] = {}  # the consumer of each acknowledged decision
        self.open_decisions = 0
        self.acknowledged = 0

    def begin(self, consumer: str, holding: Holding | None) -> None:
        """Note a write before it is sent; None: the server chooses the provider."""
        before = self.possible.get(consumer, ({},))
        if holding is None:
            self.open_decisions += 1
        self.possible[consumer] = (*before, ANY if holding is None else holding)

    def acknowledge(self, consumer: str, holding: Holding, *, at_s: float, decision: str = "") -> None:
        """Note that a write is durable."""
        if decision:
            self.decisions[decision] = consumer
            self.open_decisions -= 1
        self.possible[consumer] = (holding,)
        self.acknowledged_at_s[consumer] = at_s
        self.acknowledged += 1

    @property
    def unknown(self) -> int:
        """The number of consumers with a write without an answer."""
        return sum(len(each) > 1 for each in self.possible.values())


# Of a claim without an answer whose provider is not known.
ANY: Holding = {"any": {}}


def find_problems(records: Iterable[Record], tables: Mapping[str, Holding]) -> list[Problem]:
    """Compare all records with the allocations in the tables."""
    found, seen = [], set()
    for record in records:
        seen |= record.possible.keys()
        for consumer, possible in record.possible.items():
            actual = tables.get(consumer, {})
            if (kind := classify(possible, actual)) is not None:
                at_s = record.acknowledged_at_s.get(consumer)
                when = "never acknowledged" if at_s is None else f"acknowledged at {at_s:.2f} s"
                found.append(Problem(kind, f"{consumer} has {actual} instead of {list(possible)}, {when}"))
    extra = tables.keys() - seen
    return found + [Problem("different", f"{each} was never written: {tables[each]}") for each in sorted(extra)]


def classify(possible: tuple[Holding, ...], actual: Holding) -> Kind | None:
    """Return how a consumer differs from its record; None: it does not."""
    if actual in possible or (actual and ANY in possible and len(actual) == 1):
        return None
    if not actual:
        return "lost"
    if not any(possible):
        return "resurrected"
    return "doubled" if any(each and _contains(actual, each) for each in possible) else "different"


def _contains(actual: Holding, smaller: Holding) -> bool:
    """Return whether each amount is at least as large."""
    return all(
        actual.get(provider, {}).get(name, 0) >= amount
        for provider, amounts in smaller.items()
        for name, amount in amounts.items()
    )


def find_decision_problems(records: Iterable[Record], stored: Iterable[str]) -> list[Problem]:
    """Compare the acknowledged decisions with those in the tables; each must be there once."""
    expected: dict[str, str] = {}
    open_decisions = 0
    for record in records:
        expected |= record.decisions
        open_decisions += record.open_decisions
    rows = list(stored)
    present = set(rows)
    found = [Problem("lost", f"decision {uuid} of {name}") for uuid, name in expected.items() if uuid not in present]
    extra = len(rows) - len(present & expected.keys())
    if extra > open_decisions:
        text = f"{extra} decisions were not acknowledged, but only {open_decisions} requests have no answer"
        found.append(Problem("doubled", text))
    return found
