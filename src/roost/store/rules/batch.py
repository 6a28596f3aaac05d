"""The net effect of a batch of claims and releases, so that few guarded statements can write it.

The guards of the statements pass only if ``commit_rules.judge`` would accept every item of the batch, in order. If a
guard does not pass, nothing is written, and ``judge`` decides item by item. ``judge`` also decides if ``gather``
returns None.
"""

from bisect import bisect_right
from collections.abc import Sequence
from math import gcd

import msgspec

from roost.model.writes import CLASS_BITS, Claim, Item, Place, PutDocument, Release, Write
from roost.store.rules.footprint import Value, Values
from roost.store.rules.schema import CONSUMER

# Bounds that pass every guard: for rows with releases only, and for generations.
NO_PEAK = -(2**62)
NO_MINIMUM = 2**62
NO_LIMIT = 2**62

_UUID = CONSUMER.columns.index("uuid")
_AS_TUPLE = msgspec.structs.astuple


class Batch:
    """The net effect of a batch."""

    __slots__ = (
        "allocations",
        "consumers",
        "decisions",
        "documents",
        "frees",
        "groups",
        "instances",
        "phases",
        "places",
        "released",
        "stocks",
        "trail",
        "writes",
    )

    def __init__(self) -> None:
        # Inventory id, or the slot of a generation -> the total increment of ``used``, its peak after any claim, and
        # minimum, maximum and common divisor of the claimed amounts.
        self.stocks: dict[int, list[int]] = {}
        # Group and scope -> holder, added members, maximum number of members afterwards.
        self.places: dict[tuple[int, int], list[int]] = {}
        self.groups: set[int] = set()  # server groups that claims need
        self.consumers: dict[int, Values] = {}
        self.allocations: list[tuple[int, int, int]] = []
        self.instances: list[Values] = []
        self.documents: list[Values] = []
        self.decisions: list[Values] = []
        self.trail: list[Values] = []
        self.released: dict[int, None] = {}  # in order
        # Counts of released and of claimed consumers at the end of each phase. A release after a claim begins a new
        # phase. A batch may release a uuid and then claim it again, but not the reverse.
        self.phases: list[tuple[int, int]] = []
        self.frees: list[tuple[int, int, int]] = []
        self.writes: list[Write] = []


def gather(items: Sequence[Item]) -> Batch | None:
    """Add up claims, releases and documents; None if only ``judge`` can decide, as on work and on other writes."""
    batch = Batch()
    for item in items:
        if item.work:
            return None
        for write in item.writes:
            if isinstance(write, Claim):
                is_usual = _add_claim(batch, write)
            elif isinstance(write, Release):
                is_usual = _add_release(batch, write)
            elif isinstance(write, PutDocument):
                batch.documents.append(_AS_TUPLE(write))
                is_usual = True
            else:
                is_usual = False
            if not is_usual:
                return None
        batch.writes.extend(item.writes)
        if item.trail:
            batch.trail.extend(map(_AS_TUPLE, item.trail))
        if item.evidence:
            batch.decisions.extend(map(_AS_TUPLE, item.evidence))
    return batch


def phases_of_releases(batch: Batch) -> list[Values]:
    """Return the ids of released consumers, each with its phase."""
    return _add_phases(list(batch.released), [release_end for release_end, _ in batch.phases])


def phases_of_claims(batch: Batch) -> list[Values]:
    """Return the uuids of claimed consumers, each with its phase."""
    uuids = [row[_UUID] for row in batch.consumers.values()]
    return _add_phases(uuids, [claim_end for _, claim_end in batch.phases])


def _add_phases(consumers: Sequence[Value], ends: Sequence[int]) -> list[Values]:
    return [(consumer, bisect_right(ends, at)) for at, consumer in enumerate(consumers)]


def _add_claim(batch: Batch, claim: Claim) -> bool:
    consumers, stocks = batch.consumers, batch.stocks
    for consumer in claim.consumers:
        if consumer.id in consumers or consumer.id in batch.released:
            return False
        consumers[consumer.id] = _AS_TUPLE(consumer)
    providers = set()
    for consumer_id, inventory_id, amount in claim.takes:
        if consumer_id not in consumers:
            return False
        stock = stocks.get(inventory_id)
        if stock is None:
            stocks[inventory_id] = [amount, amount, amount, amount, amount]
        else:
            added, peak, minimum, maximum, divisor = stock
            added += amount
            stocks[inventory_id] = [
                added,
                max(peak, added),
                min(minimum, amount),
                max(maximum, amount),
                gcd(divisor, amount),
            ]
        providers.add(inventory_id >> CLASS_BITS)
    for provider_id in providers:
        _raise_generation(stocks, provider_id)
    batch.allocations.extend(claim.takes)
    if claim.instances:
        for instance in claim.instances:
            if instance.consumer_id not in consumers:
                return False
        batch.instances.extend(map(_AS_TUPLE, claim.instances))
    if claim.instances or claim.places:
        batch.groups |= claim.group_ids
    return not claim.places or all(_add_place(batch, place, sign=1) for place in claim.places)


def _add_release(batch: Batch, release: Release) -> bool:
    consumer_ids, claimed_count = dict.fromkeys(release.consumer_ids), len(batch.consumers)
    # ``judge`` decides on a consumer that is claimed and released in one batch.
    is_repeated = any(number in batch.consumers or number in batch.released for number in consumer_ids)
    if is_repeated or len(consumer_ids) != len(release.consumer_ids):
        return False
    if claimed_count and (not batch.phases or batch.phases[-1][1] != claimed_count):
        batch.phases.append((len(batch.released), claimed_count))
    batch.released |= consumer_ids
    for consumer_id, inventory_id, amount in release.frees:
        if consumer_id not in consumer_ids:
            return False
        stock = batch.stocks.get(inventory_id)
        if stock is None:
            batch.stocks[inventory_id] = [-amount, NO_PEAK, NO_MINIMUM, 0, 0]
        else:
            stock[0] -= amount
    batch.frees.extend(release.frees)
    for provider_id in release.raised:
        _raise_generation(batch.stocks, provider_id)
    return all(_add_place(batch, place, sign=-1) for place in release.places)


def _raise_generation(stocks: dict[int, list[int]], provider_id: int) -> None:
    """Raise the generation of a provider by one."""
    stock = stocks.get(provider_id << CLASS_BITS)
    if stock is None:
        stocks[provider_id << CLASS_BITS] = [1, NO_PEAK, NO_MINIMUM, 0, 0]
    else:
        stock[0] += 1


def _add_place(batch: Batch, place: Place, *, sign: int) -> bool:
    """Add a place; return False for bad counts, two holders, or both a claim and a release: ``judge`` decides then."""
    key = (place.group_id, place.scope)
    if place.members < 1 or (sign > 0 and place.members > place.limit):
        return False
    old = batch.places.get(key)
    limit = place.limit if sign > 0 else NO_LIMIT
    if old is None:
        batch.places[key] = [place.holder, sign * place.members, limit]
        return True
    if old[0] != place.holder or (old[1] > 0) != (sign > 0):
        return False
    old[1] += sign * place.members
    old[2] = min(old[2], limit)
    return old[1] <= old[2]
