"""The writes of an import: one item, so that the commit is atomic."""

from collections.abc import Callable, Iterable, Iterator, Mapping

import msgspec

from roost.compat.upstream.import_memory import CopyDigests, Memory, build_memory_write
from roost.compat.upstream.merge import ImportPlan
from roost.compat.upstream.placement_world import Offer, Provider, World, digest
from roost.errors import BadRequest
from roost.model import names
from roost.model.writes import (
    CLASS_BITS,
    Claim,
    ConsumerRow,
    DropProvider,
    InventoryRow,
    PutAggregate,
    PutInventories,
    PutMembership,
    PutProvider,
    PutSymbol,
    PutTraits,
    RaiseGeneration,
    ReuseSymbol,
    Write,
)
from roost.placement.current import Current
from roost.placement.writes.claims import release_of
from roost.ports import IdKind

# An unlimited inventory, used until all consumers are imported, if the final inventory is too small for them.
_WIDE = Offer(names.AMOUNT_MAX, 0, 1, names.AMOUNT_MAX, 1, float(names.AMOUNT_MAX))
_NAME_MAX = 200
_TEXT_MAX = 255


def writes_of(
    current: Current, plan: ImportPlan, there: World, *, source: str, first_id: int, new_id: Callable[[IdKind], int]
) -> tuple[Write, ...]:
    """Return all writes of an import, in order; empty without changes.

    Args:
        first_id: first new identity; one is used per created provider.
        new_id: returns a new identity of a consumer, an aggregate or a document.

    Raises:
        BadRequest: the source has unsupported data.
    """
    return _WriteBuilder(current, plan, there, new_id=new_id).writes(source, first_id)


class _WriteBuilder:
    """Builds the writes, and tracks their identities and generations."""

    def __init__(self, current: Current, plan: ImportPlan, there: World, *, new_id: Callable[[IdKind], int]) -> None:
        self._current, self._state, self._new_id = current, current.state, new_id
        self._plan, self._there = plan, there
        self._put = [*plan.providers.create, *(now for _, now in plan.providers.change)]
        self._before = {now.uuid: before for before, now in plan.providers.change}
        self._consumers = [*plan.consumers.create, *(now for _, now in plan.consumers.change)]
        providers = self._state.providers
        self._ids = {uuid: providers.ids[row] for uuid, row in providers.row_of_uuid.items()}
        self._generations = {uuid: providers.generation.each[row] for uuid, row in providers.row_of_uuid.items()}
        self._later: list[Provider] = []  # have interim inventories until all claims are written
        self._used = there.use()
        self._takes: dict[str, dict[str, list[int]]] = {}  # by provider and class
        for consumer in self._consumers:
            for uuid, amounts in consumer.amounts.items():
                for name, amount in amounts.items():
                    self._takes.setdefault(uuid, {}).setdefault(name, []).append(amount)
        self._symbols: dict[str, dict[str, PutSymbol | ReuseSymbol]] = {
            "resource_class": {},
            "trait": {},
            "consumer_type": {},
        }
        self._aggregates: dict[str, int] = {}

    def writes(self, source: str, first_id: int) -> tuple[Write, ...]:
        """Return all writes."""
        for number, provider in enumerate(_parents_first(self._plan.providers.create), start=first_id):
            self._ids[provider.uuid] = number
            self._generations[provider.uuid] = 0
        self._check()
        body = [*self._structure(), *self._offers(), *self._claims(), *self._finals(), *self._drops(), *self._raises()]
        changed = self._new_memory()
        if any(changed):
            body.append(build_memory_write(self._current, self._new_id("document"), source, changed))
        return (*self._names(), *body)

    def _check(self) -> None:
        for provider in self._put:
            if not provider.name or not names.is_text(provider.name, length_max=_NAME_MAX):
                raise BadRequest(f"provider {provider.uuid}: its name must be 1..{_NAME_MAX} characters of text")
        for consumer in self._consumers:
            for text in (consumer.project_id, consumer.user_id):
                if not names.is_text(text, length_max=_TEXT_MAX):
                    raise BadRequest(
                        f"consumer {consumer.uuid}: its project or user must be text of up to {_TEXT_MAX} characters"
                    )

    def _names(self) -> Iterator[Write]:
        """Yield writes of new names: names in other writes, and unused names of the source."""
        for kind, known_names in (("resource_class", self._there.classes), ("trait", self._there.traits)):
            for name in known_names:
                self._number(kind, name)
        for symbols in self._symbols.values():
            yield from symbols.values()
        for uuid, number in self._aggregates.items():
            yield PutAggregate(number, names.valid_uuid_bytes(uuid), "", {}, 0)

    def _number(self, kind: str, name: str) -> int:
        number = self._state.name_table(kind).id_of(name)
        if number is not None:
            return number
        symbol = self._symbols[kind].get(name)
        if symbol is None:
            symbol = self._symbols[kind][name] = self._current.new_symbol(kind, name)
        return symbol.id

    def _aggregate(self, uuid: str) -> int:
        number = self._state.aggregates.id_of(uuid) or self._aggregates.get(uuid)
        if number is None:
            number = self._aggregates[uuid] = self._new_id("aggregate")
        return number

    def _structure(self) -> Iterator[Write]:
        """Yield writes that create, rename and move providers with their descendants, parents first."""
        if not self._put:
            return
        providers = self._state.providers
        put = {each.uuid: each for each in self._put}
        parents: dict[str, str | None] = {}
        for uuid, provider_row in providers.row_of_uuid.items():
            parent_row = providers.parent.each[provider_row]
            parents[uuid] = None if parent_row < 0 else providers.uuids[parent_row]
        parents |= {uuid: each.parent_uuid for uuid, each in put.items()}
        for uuid, path in sorted(_paths(parents).items(), key=lambda each: (len(each[1]), self._ids[each[0]])):
            row = providers.row_of_uuid.get(uuid)
            name = put[uuid].name if uuid in put else providers.names[row or 0]
            parent = parents[uuid]
            parent_id, root_id = None if parent is None else self._ids[parent], self._ids[path[-1]]
            if row is None or (name, parent_id, root_id) != self._current_place(row):
                version = 0 if row is None else providers.versions[row] + 1
                yield PutProvider(self._ids[uuid], names.valid_uuid_bytes(uuid), name, parent_id, root_id, version)

    def _current_place(self, row: int) -> tuple[str, int | None, int]:
        providers = self._state.providers
        parent_row = providers.parent.each[row]
        parent_id = None if parent_row < 0 else providers.ids[parent_row]
        return providers.names[row], parent_id, providers.ids[providers.root.each[row]]

    def _offers(self) -> Iterator[Write]:
        """Yield writes of inventories, final or interim, and of traits and aggregates."""
        for provider in self._put:
            before = self._before.get(provider.uuid)
            current = {} if before is None else before.inventories
            new = self._interim_offers(provider, current)
            if new != current:
                yield self._inventories(provider.uuid, new)
            if new != provider.inventories:
                self._later.append(provider)
            number, generation = self._ids[provider.uuid], self._generations[provider.uuid]
            if provider.traits != ([] if before is None else before.traits):
                yield PutTraits(number, generation, [self._number("trait", name) for name in provider.traits])
                self._generations[provider.uuid] = generation = generation + 1
            if provider.aggregates != ([] if before is None else before.aggregates):
                numbers = [self._aggregate(uuid) for uuid in provider.aggregates]
                yield PutMembership(number, generation, sorted(numbers), raises=False)

    def _interim_offers(self, provider: Provider, old: Mapping[str, Offer]) -> Mapping[str, Offer]:
        """Return a provider's inventories until all claims are written. Choose those with the fewest writes.

        The final inventories may be too small for the claims, if they were reduced after the allocations.
        """
        final, both = provider.inventories, {**old, **provider.inventories}
        # Allocations may use a removed inventory until their release.
        if len(both) == len(final) and self._fits(provider.uuid, final):
            return final
        for offers in (old, both):
            if self._fits(provider.uuid, offers):
                return offers
        return dict.fromkeys(both, _WIDE)

    def _fits(self, uuid: str, offers: Mapping[str, Offer]) -> bool:
        """Return whether the commit would accept the claims on a provider."""
        for name, amounts in self._takes.get(uuid, {}).items():
            offer = offers.get(name)
            if offer is None or not all(map(offer.allows, amounts)):
                return False
            after = self._used[uuid, name]
            if after > offer.capacity and after > self._current_use(uuid, name):
                return False
        return True

    def _current_use(self, uuid: str, name: str) -> int:
        row, class_id = self._state.providers.row_of_uuid.get(uuid), self._state.class_ids.id_of(name)
        if row is None or class_id is None or class_id not in self._state.classes:
            return 0
        return int(self._state.classes[class_id].used.each[row])

    def _inventories(self, uuid: str, offers: Mapping[str, Offer]) -> PutInventories:
        rows = [
            InventoryRow(
                self._number("resource_class", name),
                offer.total,
                offer.reserved,
                offer.min_unit,
                offer.max_unit,
                offer.step_size,
                offer.allocation_ratio,
            )
            for name, offer in sorted(offers.items())
        ]
        self._generations[uuid] += 1
        return PutInventories(self._ids[uuid], self._generations[uuid] - 1, rows)

    def _claims(self) -> Iterator[Write]:
        """Yield the release of old allocations and the claim of new ones."""
        ending = [*self._plan.consumers.remove, *(before for before, _ in self._plan.consumers.change)]
        if ending:
            yield release_of(self._state, [self._state.holders[names.valid_uuid_bytes(each.uuid)] for each in ending])
        if not self._consumers:
            return
        rows, takes = [], []
        for consumer in self._consumers:
            number, kind = self._new_id("consumer"), consumer.consumer_type
            type_id = 0 if kind is None else self._number("consumer_type", kind)
            rows.append(
                ConsumerRow(
                    number,
                    names.valid_uuid_bytes(consumer.uuid),
                    consumer.project_id,
                    consumer.user_id,
                    type_id,
                    consumer.generation,
                )
            )
            for uuid, amounts in consumer.amounts.items():
                first = self._ids[uuid] << CLASS_BITS
                takes += [
                    (number, first | self._number("resource_class", name), amount) for name, amount in amounts.items()
                ]
        for uuid in self._takes:
            self._generations[uuid] += 1
        yield Claim(rows, takes)

    def _finals(self) -> Iterator[Write]:
        for provider in self._later:
            yield self._inventories(provider.uuid, provider.inventories)

    def _drops(self) -> Iterator[Write]:
        """Yield the deletions of providers, children first."""
        for provider in reversed(_parents_first(self._plan.providers.remove)):
            yield DropProvider(self._ids[provider.uuid])

    def _raises(self) -> Iterator[Write]:
        for provider in self._put:
            generation = self._generations[provider.uuid]
            if provider.generation > generation:
                yield RaiseGeneration(self._ids[provider.uuid], generation, provider.generation - generation)
                self._generations[provider.uuid] = provider.generation

    def _new_memory(self) -> Memory:
        """Return the digests to store."""
        providers, consumers = dict(self._plan.providers.known), dict(self._plan.consumers.known)
        for provider in self._put:
            copy = msgspec.structs.replace(provider, generation=self._generations[provider.uuid])
            providers[provider.uuid] = CopyDigests(digest(provider), digest(copy))
        for consumer in self._consumers:
            consumers[consumer.uuid] = CopyDigests(digest(consumer), digest(consumer))
        providers |= dict.fromkeys((each.uuid for each in self._plan.providers.remove), None)
        consumers |= dict.fromkeys((each.uuid for each in self._plan.consumers.remove), None)
        return Memory(providers, consumers)


def _parents_first(providers: Iterable[Provider]) -> list[Provider]:
    """Sort providers so that each follows its parent."""
    by_uuid = {each.uuid: each for each in providers}
    paths = _paths({uuid: each.parent_uuid for uuid, each in by_uuid.items()})
    return sorted(by_uuid.values(), key=lambda each: len(paths[each.uuid]))


def _paths(parents: Mapping[str, str | None]) -> dict[str, list[str]]:
    """Return the path from each provider up to its topmost known ancestor, itself first.

    Raises:
        BadRequest: a provider is its own ancestor.
    """
    paths: dict[str, list[str]] = {}
    for uuid in parents:
        path, at = [], uuid
        while True:
            path.append(at)
            if len(path) > len(parents):
                raise BadRequest(f"provider {uuid} is its own ancestor")
            parent = parents[at]
            if parent is None or parent not in parents:
                break
            at = parent
        paths[uuid] = path
    return paths
