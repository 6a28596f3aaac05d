"""The data of a Placement, in the same structs for upstream and for Roost, so that they are comparable."""

import hashlib
import uuid
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from roost.engine.columns.state import Holder, State
from roost.errors import BadRequest
from roost.model.names import uuid_text
from roost.model.writes import CLASS_BITS, CLASS_MASK

_DIGEST_BYTES = 8
_encoder = msgspec.msgpack.Encoder(order="sorted")

Progress = Callable[[int, int], None]  # done, total


class Offer(msgspec.Struct, frozen=True, array_like=True):
    """An inventory, copied without validation."""

    total: int
    reserved: int
    min_unit: int
    max_unit: int
    step_size: int
    allocation_ratio: float

    @property
    def capacity(self) -> float:
        """The total less the reserved amount, times the allocation ratio."""
        return (self.total - self.reserved) * self.allocation_ratio

    def allows(self, amount: int) -> bool:
        """Return whether one consumer may hold an amount."""
        return self.min_unit <= amount <= self.max_unit and amount % self.step_size == 0


def offer_of(fields: Sequence[Any]) -> Offer:
    """Build an inventory from its fields in order, converted from the source's number types.

    A reshape in the source may have left a reserved amount above the total, which Roost does not allow. Then
    the reserved amount is lowered to the total, with the same effect.
    """
    total, reserved, min_unit, max_unit, step_size = map(int, fields[:5])
    return Offer(total, min(reserved, total), min_unit, max_unit, step_size, float(fields[5]))


class Provider(msgspec.Struct, frozen=True, array_like=True):
    """A provider with its inventories, traits and aggregates."""

    uuid: str
    name: str
    parent_uuid: str | None
    generation: int
    inventories: dict[str, Offer]
    traits: list[str]  # sorted, like ``aggregates``
    aggregates: list[str]


class Consumer(msgspec.Struct, frozen=True, array_like=True):
    """A consumer with its allocations, at least one."""

    uuid: str
    project_id: str
    user_id: str
    consumer_type: str | None  # None: unknown
    generation: int
    amounts: dict[str, dict[str, int]]  # by provider and class


class World(msgspec.Struct, kw_only=True):
    """All data of a Placement."""

    providers: dict[str, Provider]  # by uuid, like ``consumers``
    consumers: dict[str, Consumer]
    # Names; some may be unused.
    classes: list[str]
    traits: list[str]

    def use(self) -> dict[tuple[str, str], int]:
        """Return the used amounts, by provider and class."""
        used: dict[tuple[str, str], int] = defaultdict(int)
        for consumer in self.consumers.values():
            for provider, amounts in consumer.amounts.items():
                for name, amount in amounts.items():
                    used[provider, name] += amount
        return used


def digest(record: Provider | Consumer) -> bytes:
    """Return a digest of the content."""
    return hashlib.blake2b(_encoder.encode(record), digest_size=_DIGEST_BYTES).digest()


def canonical_uuid(text: str, noun: str) -> str:
    """Return a uuid in canonical spelling.

    Raises:
        BadRequest: the text is not a uuid.
    """
    try:
        return str(uuid.UUID(text))
    except (ValueError, AttributeError):
        raise BadRequest(f"the source has a {noun} with an invalid uuid: {text!r}") from None


def provider_at(state: State, row: int) -> Provider:
    """Read a provider from the columns."""
    providers = state.providers
    parent = providers.parent.each[row]
    name_of = state.class_ids.name_of
    return Provider(
        providers.uuids[row],
        providers.names[row],
        None if parent < 0 else providers.uuids[parent],
        providers.generation.each[row],
        {
            name_of(class_id): Offer(
                columns.total.each[row],
                columns.reserved.each[row],
                columns.min_unit.each[row],
                columns.max_unit.each[row],
                columns.step_size.each[row],
                columns.ratio.each[row],
            )
            for class_id, columns in state.classes.items()
            if row in columns.holders
        },
        sorted(map(state.trait_ids.name_of, state.traits.labels_of(row))),
        sorted(map(state.aggregates.name_of, state.membership.labels_of(row))),
    )


def consumer_of(state: State, holder: Holder) -> Consumer:
    """Read a consumer from the columns."""
    providers, amounts = state.providers, dict[str, dict[str, int]]()
    for inventory_id, amount in holder.takes:
        provider = providers.uuids[providers.row_of_id[inventory_id >> CLASS_BITS]]
        amounts.setdefault(provider, {})[state.class_ids.name_of(inventory_id & CLASS_MASK)] = amount
    kind = state.consumer_types.name_of(holder.type_id) if holder.type_id else None
    return Consumer(uuid_text(holder.uuid), holder.project_id, holder.user_id, kind, holder.generation, amounts)


def world_of(state: State) -> World:
    """Read all data from the columns."""
    rows = (row for row, is_alive in enumerate(state.providers.alive.view.tolist()) if is_alive)
    consumers = (consumer_of(state, holder) for holder in state.holders.values())
    return World(
        providers={each.uuid: each for each in (provider_at(state, row) for row in rows)},
        consumers={each.uuid: each for each in consumers if each.amounts},
        classes=sorted(state.class_ids),
        traits=sorted(state.trait_ids),
    )
