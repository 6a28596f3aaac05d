"""Orphans: allocations of consumers that do not exist or are on other hosts. Nothing will release them."""

from typing import Any, Literal

import msgspec

from roost.model.names import uuid_text

# Consumers of other types belong to other services, and are left out. Without any instance status, Roost runs no
# instances, so nothing is an orphan. An instance without a status was decided here but runs under another service, so
# its allocations are valid. Allocations of an ended migration are orphans. So are those of an instance without a host,
# except during its build.
_OF_UNKNOWN_CONSUMERS = """
    SELECT c.uuid, p.uuid, s.name, a.amount, 'unknown' FROM consumer c
    JOIN allocation a ON a.consumer_id = c.id JOIN provider p ON p.id = a.inventory_id >> 16
    JOIN symbol s ON s.id = a.inventory_id % 65536 AND s.kind = 'resource_class'
    LEFT JOIN instance i ON i.consumer_id = c.id LEFT JOIN instance_status t ON t.uuid = c.uuid
    LEFT JOIN migration m ON m.uuid = c.uuid
    LEFT JOIN symbol y ON y.id = c.type_id AND y.kind = 'consumer_type'
    WHERE EXISTS (SELECT 1 FROM instance_status)
      AND COALESCE(y.name, 'INSTANCE') IN ('INSTANCE', 'MIGRATION')
      AND COALESCE(m.status, '') NOT IN ('moving', 'finished', 'left', 'reverting')
      AND (m.uuid IS NOT NULL OR (t.uuid IS NULL AND i.consumer_id IS NULL) OR t.status = 'DELETED'
           OR (t.host = '' AND t.status <> 'BUILD' AND t.operation_id = 0))"""
# Sharing providers are left out, because instances of any host may have allocations on them. If the status of an
# instance and its row in ``instance`` name two hosts, either may be wrong, so the instance is left out. It is also left
# out during an operation or task, and during a migration from or to the other host.
_ELSEWHERE = """
    SELECT c.uuid, p.uuid, s.name, a.amount, '{holder}' FROM consumer c
    {known} JOIN allocation a ON a.consumer_id = c.id JOIN provider p ON p.id = a.inventory_id >> 16
    JOIN symbol s ON s.id = a.inventory_id % 65536 AND s.kind = 'resource_class'
    JOIN host other ON other.provider_id = p.root_id AND other.id <> own.id
    WHERE {rest}
      AND NOT EXISTS (SELECT 1 FROM provider_trait l JOIN symbol w ON w.id = l.trait_id AND w.kind = 'trait'
                      WHERE l.provider_id = p.id AND w.name = 'MISC_SHARES_VIA_AGGREGATE')"""
_OF_INSTANCES = _ELSEWHERE.format(
    holder="instance",
    known="""JOIN instance_status t ON t.uuid = c.uuid JOIN host own ON own.host = t.host AND own.node = t.node
    LEFT JOIN instance i ON i.consumer_id = c.id""",
    rest="""t.operation_id = 0 AND t.task = '' AND COALESCE(i.host_id, own.id) = own.id
      AND NOT EXISTS (SELECT 1 FROM migration m WHERE m.instance_uuid = t.uuid
                      AND m.status IN ('moving', 'finished', 'left', 'reverting')
                      AND (m.source_node = other.node OR m.target_node = other.node))""",
)
_OF_MIGRATIONS = _ELSEWHERE.format(
    holder="migration",
    known="JOIN migration m ON m.uuid = c.uuid JOIN host own ON own.host = m.source_host AND own.node = m.source_node",
    rest="m.status IN ('moving', 'finished', 'left', 'reverting') AND other.node <> m.target_node",
)
ORPHANS = f"{_OF_UNKNOWN_CONSUMERS} UNION ALL {_OF_INSTANCES} UNION ALL {_OF_MIGRATIONS} ORDER BY 1, 2, 3"

Holder = Literal["unknown", "instance", "migration"]
_PROBLEMS: dict[Holder, str] = {
    "unknown": "is neither an instance nor a migration that is under way",
    "instance": "is an instance on another host",
    "migration": "is a migration between other hosts",
}


class Orphan(msgspec.Struct, frozen=True, kw_only=True):
    """An allocation that nothing will release."""

    consumer: str  # uuid
    provider: str  # uuid
    resource_class: str
    amount: int
    holder: Holder = "unknown"  # the kind of the consumer; an instance or a migration belongs to other hosts

    @property
    def problem(self) -> str:
        """The problem, as the end of a sentence that begins with the consumer."""
        return f"holds {self.amount} {self.resource_class} on provider {self.provider}, and {_PROBLEMS[self.holder]}"


def orphan_of(row: tuple[Any, ...]) -> Orphan:
    """Convert a row of ``ORPHANS``, from any database, to a struct."""
    consumer, provider, resource_class, amount, holder = row
    return Orphan(
        consumer=_text(consumer), provider=_text(provider), resource_class=resource_class, amount=amount, holder=holder
    )


def _text(uuid: Any) -> str:
    return uuid_text(uuid if isinstance(uuid, bytes) else uuid.bytes)
