"""Compares the imported data (here), as stored, with the source (there)."""

from collections import defaultdict
from collections.abc import Iterable

import msgspec

from roost.compat.upstream.placement_world import World


class ClassCheck(msgspec.Struct, frozen=True, kw_only=True):
    """Totals of one resource class, there and here; only providers and consumers of the source count."""

    resource_class: str
    providers: int  # there
    total_there: int
    total_here: int
    used_there: int
    used_here: int

    @property
    def is_equal(self) -> bool:
        """Whether both sides are equal."""
        return self.total_there == self.total_here and self.used_there == self.used_here


class CountCheck(msgspec.Struct, frozen=True, kw_only=True):
    """The number of items of one kind in the source, and the number of these items found here."""

    what: str
    there: int
    here: int


class ImportCheck(msgspec.Struct, frozen=True, kw_only=True):
    """The result of the comparison."""

    counts: list[CountCheck]
    classes: list[ClassCheck]
    differing: list[str]  # one sentence per differing provider or consumer

    @property
    def is_equal(self) -> bool:
        """Whether everything is equal."""
        return (
            not self.differing
            and all(count.there == count.here for count in self.counts)
            and all(each.is_equal for each in self.classes)
        )


def verify(there: World, here: World, *, skip: Iterable[str]) -> ImportCheck:
    """Compare all data of the source with the data here.

    Args:
        skip: uuids of providers and consumers that changed here after the copy.
    """
    skipped = set(skip)
    return ImportCheck(
        counts=[
            CountCheck(what=what, there=len(source_items), here=len(source_items & local_items))
            for what, source_items, local_items in (
                ("providers", set(there.providers) - skipped, set(here.providers)),
                ("consumers", set(there.consumers) - skipped, set(here.consumers)),
                (
                    "allocations",
                    _list_allocations(there) - _list_allocations_of(there, skipped),
                    _list_allocations(here),
                ),
                ("resource classes", set(there.classes), set(here.classes)),
                ("traits", set(there.traits), set(here.traits)),
            )
        ],
        classes=_compare_classes(there, here, skipped),
        differing=list(_find_differences(there, here, skipped)),
    )


def _list_allocations(world: World) -> set[tuple[str, str, str, int]]:
    return {
        (consumer.uuid, provider, name, amount)
        for consumer in world.consumers.values()
        for provider, amounts in consumer.amounts.items()
        for name, amount in amounts.items()
    }


def _list_allocations_of(world: World, consumers: set[str]) -> set[tuple[str, str, str, int]]:
    return {each for each in _list_allocations(world) if each[0] in consumers}


def _compare_classes(there: World, here: World, skipped: set[str]) -> list[ClassCheck]:
    rows: dict[str, list[int]] = defaultdict(lambda: [0] * 5)
    for uuid, provider in there.providers.items():
        if uuid in skipped:
            continue
        local = here.providers.get(uuid)
        for name, inventory in provider.inventories.items():
            row = rows[name]
            row[0] += 1
            row[1] += inventory.total
            if local is not None and name in local.inventories:
                row[2] += local.inventories[name].total
    for column, world in ((3, there), (4, here)):
        for consumer, _, name, amount in _list_allocations(world):
            if consumer in there.consumers and consumer not in skipped:
                rows[name][column] += amount
    return [
        ClassCheck(
            resource_class=name,
            providers=row[0],
            total_there=row[1],
            total_here=row[2],
            used_there=row[3],
            used_here=row[4],
        )
        for name, row in sorted(rows.items())
    ]


def _find_differences(there: World, here: World, skipped: set[str]) -> Iterable[str]:
    for uuid, provider in there.providers.items():
        local = here.providers.get(uuid)
        if uuid in skipped or local == provider:
            continue
        if local is None:
            yield f"provider {uuid} is missing here"
        elif msgspec.structs.replace(local, generation=provider.generation) == provider:
            yield f"provider {uuid} has generation {local.generation} here, and {provider.generation} in the source"
        else:
            yield f"provider {uuid} differs from the source"
    for uuid, consumer in there.consumers.items():
        if uuid not in skipped and here.consumers.get(uuid) != consumer:
            yield f"consumer {uuid} differs from the source"
