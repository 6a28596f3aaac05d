"""Generations of providers, each in a row of the inventory table."""

from roost.model.writes import CLASS_BITS, GENERATION_SLOT, Refusal
from roost.store.rules.row_cache import RowCache, Stock


def slot_of(provider_id: int) -> int:
    """Return the identity of the row with a provider's generation."""
    return provider_id << CLASS_BITS | GENERATION_SLOT


def generation_row(provider_id: int, generation: int) -> Stock:
    """Return the row with a provider's generation.

    A batch treats it like an inventory with releases only, and its bounds pass the guard of such inventories.
    """
    return Stock(slot_of(provider_id), 0, 0, 0, 0, 1, 0.0, generation)


def check_generation(cache: RowCache, provider_id: int, expected: int) -> Refusal | None:
    """Return a refusal unless a provider exists and has the expected generation."""
    slot = cache.stocks.get(slot_of(provider_id))
    if slot is None:
        return Refusal("missing", "provider", provider_id)
    if slot.used != expected:
        return Refusal("generation", "provider", provider_id)
    return None


def raise_generation(cache: RowCache, provider_id: int, *, by: int = 1) -> None:
    """Raise the generation of an existing provider."""
    slot = cache.stocks.get(slot_of(provider_id))
    assert slot is not None, provider_id
    cache.stocks.put(slot.with_used(slot.used + by))
