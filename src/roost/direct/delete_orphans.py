"""Finds and deletes orphaned allocations while all services but the database are stopped."""

from collections.abc import Callable, Sequence

from roost.app import orphans
from roost.direct.offline_report import open_report
from roost.errors import NotFound, RoostError
from roost.model.names import uuid_bytes, uuid_form
from roost.store.orphans import Orphan


def find(url: str, *, provider: str | None, is_audited: Callable[[str], bool]) -> list[Orphan]:
    """Find allocations without a current instance or migration, or on another host than theirs.

    Args:
        url: URL of the database.
        provider: uuid of the provider to check; None: all.
        is_audited: returns whether a resource class is audited; consumers without an audited class are skipped.

    Raises:
        NotFound: the provider does not exist.
        StoreBusy, Unavailable: see ``open_report``.
    """
    with open_report(url) as report:
        if provider is not None:
            if uuid_bytes(provider) is None:
                raise NotFound("provider", provider)
            report.get_allocations_for_resource_provider(uuid_form(provider))
        rows = orphans(url)
    audited_consumers = {row.consumer for row in rows if is_audited(row.resource_class)}
    return [
        row
        for row in rows
        if row.consumer in audited_consumers and (provider is None or row.provider == uuid_form(provider))
    ]


def delete(url: str, orphan_rows: Sequence[Orphan]) -> str:
    """Delete orphaned allocations; return the first problem; empty: none.

    An unknown consumer loses all its allocations; an instance or a migration loses only the orphaned ones.
    """
    by_consumer: dict[str, list[Orphan]] = {}
    for orphan in orphan_rows:
        by_consumer.setdefault(orphan.consumer, []).append(orphan)
    with open_report(url) as report:
        for consumer, rows in by_consumer.items():
            try:
                if rows[0].holder == "unknown":
                    report.delete_allocation_for_instance(consumer, force=True)
                else:
                    allocations = report.get_allocs_for_consumer(consumer)
                    report.remove_providers_from_allocation(consumer, allocations, {row.provider for row in rows})
            except RoostError as error:
                return f"consumer {consumer}: {error}"
    return ""
