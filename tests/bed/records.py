"""Observations of an operation, and of a whole cloud."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from tests.bed.combinations import Combination

Amounts = dict[str, int]
Loads = dict[str, Amounts]  # used amounts by host


class Holding(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """Amounts that a consumer holds on one provider."""

    role: str  # of the provider, seen from the server: its host, a part of its host, or another host
    amounts: Amounts


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """One observation of an operation: mostly a server after an action."""

    status: str = ""  # of the server, or that of a refusal by the API
    fault: str = ""
    host: str = ""
    is_host_free: bool = True  # several hosts would have been correct
    holdings: tuple[Holding, ...] = ()
    facts: Any = None  # further observations; they never depend on the choice among correct hosts
    loads: Loads = {}  # before the choice


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """All observations of a cloud."""

    combination: Combination
    outcomes: dict[str, dict[str, Outcome]]  # by operation and label
    durations_s: dict[str, float]  # by operation
    start_s: float
    cpu_s: dict[str, float]  # by process
    rounds: tuple[int, ...] = ()  # boots granted in each round


def holdings_of(allocations: Mapping[str, Amounts], host: str) -> tuple[Holding, ...]:
    """Return holdings without the names of hosts.

    Args:
        allocations: amounts by the name of the provider.
        host: of the server.
    """
    return tuple(
        sorted(
            Holding(role=_role(name, host), amounts=dict(sorted(amounts.items())))
            for name, amounts in allocations.items()
        )
    )


def _role(provider: str, host: str) -> str:
    if provider == host:
        return "its host"
    return "part of its host" if host and provider.startswith(f"{host}-") else "another host"


def add_amounts(many: Iterable[Amounts]) -> Amounts:
    """Return the sums by class."""
    sums: Amounts = {}
    for amounts in many:
        for name, amount in amounts.items():
            sums[name] = sums.get(name, 0) + amount
    return dict(sorted(sums.items()))
