"""The room that a host loses by an instance: how many instances of the usual sizes no longer fit on it.

A slot of a size is room for one more instance of this size on a host. A lost slot costs the more, the fewer slots of
its size are left in the fleet. A host also loses room if processors and memory do not run out together.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from roost.engine.columns.types import Amounts, Scores

# Weight of the difference between the free shares of processors and memory, in slots.
_UNEVEN_SLOTS = 6.0
# Weight of the free shares themselves: of otherwise equal hosts, the fullest is best.
_FREE_SLOTS = 1e-6
# Prices change when the slots of a size change by this factor, as a logarithm. Finer steps change no result, and make
# kept weights outdated more often.
_LEVEL_STEP = 0.2
# Prices are multiples of this, so that their sums over whole slots are exact in any order.
_PRICE_UNIT = 2.0**-30


class Claim(NamedTuple):
    """The amounts of one instance."""

    cpus: float
    memory: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SizeTable:
    """The sizes of instances for which room is kept: float64, shape (sizes,) each."""

    cpus: Scores  # at least 1
    memory: Scores  # at least 1
    weights: Scores  # importance of each size, sum 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RoomHosts:
    """Capacities and free amounts of some hosts: float64, shape (hosts,) each."""

    cpus: Scores
    memory: Scores
    free_cpus: Scores
    free_memory: Scores


def slots_of(free_cpus: Scores, free_memory: Scores, table: SizeTable) -> Amounts:
    """Return the number of instances of each size that fit: int64, shape (hosts, sizes).

    >>> sizes = SizeTable(cpus=np.array([2.0, 1.0]), memory=np.array([4.0, 3.0]), weights=np.array([0.5, 0.5]))
    >>> slots_of(np.array([8.0]), np.array([9.0]), sizes).tolist()
    [[2, 3]]
    """
    slots = np.divide.outer(np.maximum(free_cpus, 0.0), table.cpus)
    np.minimum(slots, np.divide.outer(np.maximum(free_memory, 0.0), table.memory), out=slots)
    return slots.astype(np.int64)


def levels_of(totals: Amounts) -> Amounts:
    """Return the level of each number of slots in the fleet: int64; a level spans about 20 %."""
    levels: Amounts = np.rint(np.log1p(totals) / _LEVEL_STEP).astype(np.int64)
    return levels


def prices_of(levels: Amounts, table: SizeTable, *, host_count: int) -> Scores:
    """Return the price of a slot of each size: 1 on average if each host has one slot of each size.

    Args:
        levels: of the slots in the fleet, shape (sizes,).
        table: the sizes.
        host_count: hosts of the fleet.
    """
    prices = host_count * table.weights / np.exp(levels * _LEVEL_STEP)
    rounded: Scores = np.rint(prices / _PRICE_UNIT) * _PRICE_UNIT
    return rounded


def slot_loss(hosts: RoomHosts, slots: Amounts, table: SizeTable, *, prices: Scores, claim: Claim) -> Scores:
    """Return the price of the slots that each host loses by an instance: float64, shape (hosts,).

    Args:
        hosts: the hosts.
        slots: their slots without the instance, shape (hosts, sizes).
        table: the sizes.
        prices: of a slot of each size, shape (sizes,).
        claim: the amounts of the instance.
    """
    after = slots_of(hosts.free_cpus - claim.cpus, hosts.free_memory - claim.memory, table)
    lost: Scores = (slots - after).astype(np.float64) @ prices
    return lost


def unevenness(hosts: RoomHosts, claim: Claim) -> Scores:
    """Return the difference between the free shares of processors and memory with an instance: 0..1, shape (hosts,)."""
    free_cpus, free_memory = _free_shares(hosts, claim)
    uneven: Scores = np.abs(free_cpus - free_memory)
    return uneven


def room_loss(
    hosts: RoomHosts, slots: Amounts, table: SizeTable, *, prices: Scores, claim: Claim, host_count: int
) -> Scores:
    """Return the loss of room by an instance, in slots: float64, shape (hosts,).

    Args:
        hosts, slots, table, prices, claim: as for ``slot_loss``.
        host_count: hosts of the fleet.
    """
    free_cpus, free_memory = _free_shares(hosts, claim)
    lost = slot_loss(hosts, slots, table, prices=prices, claim=claim)
    lost += _UNEVEN_SLOTS * np.abs(free_cpus - free_memory)
    lost += _FREE_SLOTS * host_count * (free_cpus + free_memory)
    return lost


def _free_shares(hosts: RoomHosts, claim: Claim) -> tuple[Scores, Scores]:
    return (
        (hosts.free_cpus - claim.cpus) / np.maximum(hosts.cpus, 1.0),
        (hosts.free_memory - claim.memory) / np.maximum(hosts.memory, 1.0),
    )
