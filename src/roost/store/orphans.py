"""Allocations that nobody gives back: their consumer is neither an instance nor a migration that is under way."""

from typing import Any

import msgspec

from roost.model.names import uuid_text

# Where no instance has a status, nobody tells which there are, so nothing is an orphan. An instance without a status
# is one that was decided and is run by somebody else. A migration that is over holds nothing, nor does an instance that
# is on no host, but for one that is being built.
ORPHANS = """
    SELECT c.uuid, p.uuid, s.name, a.amount FROM consumer c
    JOIN allocation a ON a.consumer_id = c.id JOIN provider p ON p.id = a.inventory_id / 65536
    JOIN symbol s ON s.id = a.inventory_id % 65536 AND s.kind = 'resource_class'
    LEFT JOIN instance i ON i.consumer_id = c.id LEFT JOIN instance_status t ON t.uuid = c.uuid
    LEFT JOIN migration m ON m.uuid = c.uuid
    WHERE EXISTS (SELECT 1 FROM instance_status)
      AND COALESCE(m.status, '') NOT IN ('moving', 'finished', 'left', 'reverting')
      AND (m.uuid IS NOT NULL OR (t.uuid IS NULL AND i.consumer_id IS NULL) OR t.status = 'DELETED'
           OR (t.host = '' AND t.status <> 'BUILD' AND t.operation_id = 0))
    ORDER BY c.uuid, p.uuid, s.name"""


class Orphan(msgspec.Struct, frozen=True, kw_only=True):
    """An allocation that nobody gives back."""

    consumer: str  # uuid
    provider: str  # uuid
    resource_class: str
    amount: int


def orphan_of(row: tuple[Any, ...]) -> Orphan:
    """Return what a row of ``ORPHANS`` says, whichever database it is of."""
    consumer, provider, resource_class, amount = row
    return Orphan(consumer=_text(consumer), provider=_text(provider), resource_class=resource_class, amount=amount)


def _text(uuid: Any) -> str:
    return uuid_text(uuid if isinstance(uuid, bytes) else uuid.bytes)
