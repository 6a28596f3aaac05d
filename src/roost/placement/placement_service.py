"""Placement: resource providers, their inventories, and the claims of consumers on them."""

from collections.abc import Iterable, Sequence

import msgspec

from roost.engine.columns.apply import apply_release, occupy, undo_claim
from roost.engine.columns.state import State
from roost.errors import BadRequest, NotFound
from roost.model import names
from roost.model.evidence.fleet_part import FleetPart
from roost.model.provider import Inventory, ProviderSpec
from roost.model.work.work_rows import ChangeRow
from roost.model.writes import (
    Claim,
    InventoryRow,
    Item,
    PutInventories,
    PutMembership,
    PutProvider,
    PutTraits,
    Refusal,
    Write,
)
from roost.placement.current import Current
from roost.placement.writes import name_numbers
from roost.placement.writes.claims import claim_of, release_of
from roost.ports import DepartedInstance, IdKind

_BATCH = 1000
_NAME_MAX = 200  # as in the Placement API


class Placement:
    """Creates resource providers, and claims and releases their resources.

    Args:
        current: the columns and the store behind them.
    """

    def __init__(self, current: Current) -> None:
        self._current = current
        name_numbers.install_standard(current)

    @property
    def state(self) -> State:
        """The columns, as of the last refresh."""
        return self._current.state

    def ensure_names(
        self, *, resource_classes: Iterable[str] = (), traits: Iterable[str] = (), consumer_types: Iterable[str] = ()
    ) -> None:
        """Assign numbers to new names.

        Raises:
            BadRequest: a name is neither standard nor a well-formed custom one, or the numbers are exhausted.
            Unavailable: other processes made too many concurrent changes.
        """
        new_names = {"resource_class": resource_classes, "trait": traits, "consumer_type": consumer_types}
        name_numbers.ensure(self._current, {kind: frozenset(each) for kind, each in new_names.items()})

    def create_providers(self, specs: Sequence[ProviderSpec]) -> None:
        """Create providers with their inventories and traits, parents before children.

        Their aggregates must exist. Each commit has up to 1,000 providers; an error leaves earlier commits in place.

        Raises:
            BadRequest: a uuid, name, class or trait is malformed or in use, or a parent does not exist.
            NotFound: an aggregate does not exist.
        """
        specs = [_normalize_uuids(spec) for spec in specs]
        self.check_new(specs)
        self.ensure_names(
            resource_classes={name for spec in specs for name in spec.inventories},
            traits={trait for spec in specs for trait in spec.traits},
        )
        with self._current.reserve_in_order("provider", len(specs)) as first:
            self.check_new(specs)  # Other processes may have committed meanwhile.
            places: dict[str, tuple[int, int]] = {}  # uuid -> id and root id, of the new providers
            writes = [self._creation(spec, number, places) for number, spec in enumerate(specs, start=first)]
            for start in range(0, len(writes), _BATCH):
                self._current.write([write for group in writes[start : start + _BATCH] for write in group])

    def check_new(self, specs: Iterable[ProviderSpec], *, aggregates: Iterable[str] = ()) -> None:
        """Check providers before their creation, and write nothing.

        Args:
            specs: parents before children.
            aggregates: uuids of aggregates that are created before the providers.

        Raises:
            BadRequest: a uuid, name, class or trait is malformed or in use, or a parent does not exist.
            NotFound: an aggregate does not exist.
        """
        providers = self.state.providers
        new_aggregates = {names.uuid_form(uuid) for uuid in aggregates}
        uuids: set[str] = set()
        taken: set[str] = set()
        for spec in map(_normalize_uuids, specs):
            _uuid_bytes(spec.uuid, "provider")
            if not spec.name or not names.is_text(spec.name, length_max=_NAME_MAX):
                raise BadRequest(f"provider {spec.uuid}: its name must be 1..{_NAME_MAX} characters of text")
            name_numbers.check("resource_class", spec.inventories)
            name_numbers.check("trait", spec.traits)
            if spec.uuid in providers.row_of_uuid or spec.uuid in uuids:
                raise BadRequest(f"provider {spec.name}: uuid {spec.uuid} is taken")
            if spec.name in providers.row_of_name or spec.name in taken:
                raise BadRequest(f"provider {spec.uuid}: name {spec.name!r} is taken")
            parent = spec.parent_uuid
            if parent is not None and parent not in providers.row_of_uuid and parent not in uuids:
                raise BadRequest(f"provider {spec.name}: its parent {parent} is not known")
            for aggregate in spec.aggregates:
                if aggregate not in self.state.aggregates and aggregate not in new_aggregates:
                    raise NotFound("aggregate", aggregate)
            uuids.add(spec.uuid)
            taken.add(spec.name)

    def _creation(self, spec: ProviderSpec, provider_id: int, places: dict[str, tuple[int, int]]) -> list[Write]:
        parent_id, root_id = None, provider_id
        if spec.parent_uuid is not None:
            if spec.parent_uuid in places:
                parent_id, root_id = places[spec.parent_uuid]
            else:
                providers = self.state.providers
                parent_row = providers.row_of_uuid[spec.parent_uuid]
                parent_id = providers.ids[parent_row]
                root_id = providers.ids[int(providers.root.view[parent_row])]
        places[spec.uuid] = (provider_id, root_id)
        writes: list[Write] = [
            PutProvider(provider_id, _uuid_bytes(spec.uuid, "provider"), spec.name, parent_id, root_id, 0)
        ]
        generation = 0
        if spec.inventories:
            rows = [self._inventory_row(name, inventory) for name, inventory in sorted(spec.inventories.items())]
            writes.append(PutInventories(provider_id, generation, rows))
            generation += 1
        if spec.traits:
            ids = [self._require_number(self.state.trait_ids.id_of(trait)) for trait in sorted(spec.traits)]
            writes.append(PutTraits(provider_id, generation, ids))
            generation += 1
        if spec.aggregates:
            ids = [self._require_number(self.state.aggregates.id_of(each)) for each in sorted(spec.aggregates)]
            writes.append(PutMembership(provider_id, generation, ids))
        return writes

    def _inventory_row(self, name: str, inventory: Inventory) -> InventoryRow:
        return InventoryRow(
            class_id=self._require_number(self.state.class_ids.id_of(name)),
            total=inventory.total,
            reserved=inventory.reserved,
            min_unit=inventory.min_unit,
            max_unit=inventory.max_unit,
            step_size=inventory.step_size,
            allocation_ratio=float(inventory.allocation_ratio),  # An int could exceed the database's range.
        )

    @staticmethod
    def _require_number(number: int | None) -> int:
        assert number is not None, "names are numbered before they are used"
        return number

    @property
    def part(self) -> FleetPart | None:
        """The part of the fleet of this process, as of the last refresh; None: it decides alone."""
        return self._current.part

    def group_size(self, maximum: int) -> int:
        """Return the present upper bound of items in one commit, 1..maximum; see ``GroupLimit``."""
        return self._current.group_limit.size(maximum)

    @property
    def staged_count(self) -> int:
        """Number of items for the next commit."""
        return self._current.staged_count

    @property
    def ahead(self) -> int:
        """Number of claims and releases in the columns that are not durable yet."""
        return self._current.ahead

    @property
    def visible_changes(self) -> str:
        """The set of changes applied to the columns, encoded as text: see ``Store.visible_changes``."""
        return self._current.store.visible_changes

    @property
    def is_shared(self) -> bool:
        """Whether other processes may write to the database."""
        return self._current.store.is_shared

    def refresh(self) -> bool:
        """Apply the commits of other processes; return whether there were any."""
        return self._current.refresh()

    def new_id(self, kind: IdKind) -> int:
        """Return a new id, unique across all processes."""
        return self._current.new_id(kind)

    def occupy(self, claim: Claim) -> None:
        """Apply a claim to the columns, for later searches."""
        occupy(self.state, claim)

    def leave(self, instance: bytes) -> DepartedInstance:
        """Release an instance in the columns, before it occupies another host.

        Args:
            instance: uuid of an instance on a host.
        """
        holder = self.state.holders[instance]
        freed = release_of(self.state, [holder])
        apply_release(self.state, freed)
        return DepartedInstance(freed, claim_of(holder, freed.places))

    def withdraw(self, claims: Sequence[Claim], left: DepartedInstance | None = None) -> None:
        """Undo claims that are applied but not staged, and restore the released instance."""
        for claim in reversed(claims):
            undo_claim(self.state, claim, was_counted=False)
        if left is not None:
            occupy(self.state, left.held)

    def stage(self, item: Item, left: DepartedInstance | None = None) -> int:
        """Add an applied claim and its evidence to the next commit; return its index there.

        Args:
            left: the instance released for that claim; the item's first write is its release.
        """
        return self._current.stage(item, left)

    def flush(self) -> list[Refusal | None]:
        """Make the staged items durable; return one verdict per item."""
        return self._current.flush()

    def commit(self, items: Sequence[Item]) -> list[Refusal | None]:
        """Make items durable, then visible; return one verdict per item. No item may be staged before."""
        return self._current.commit(items)

    def drop(self) -> None:
        """Discard the staged items after an error."""
        self._current.drop()

    def release(self, consumer_uuids: Iterable[str], trail: tuple[ChangeRow, ...] = ()) -> int:
        """Stage the release of consumers; return the number of them found.

        Args:
            trail: the records of the client's change; committed with the first release.
        """
        holders = self.state.holders
        count = 0
        for body in [_uuid_bytes(text, "consumer") for text in consumer_uuids]:
            holder = holders.get(body)
            if holder is None:
                continue
            self._current.stage_release(release_of(self.state, [holder]), trail)
            trail = ()
            count += 1
        return count


def _normalize_uuids(spec: ProviderSpec) -> ProviderSpec:
    """Return a spec with its uuids in canonical form, as in the store."""
    form = names.uuid_form
    return msgspec.structs.replace(
        spec,
        uuid=form(spec.uuid),
        parent_uuid=None if spec.parent_uuid is None else form(spec.parent_uuid),
        aggregates=frozenset(form(aggregate) for aggregate in spec.aggregates),
    )


def _uuid_bytes(text: str, kind: str) -> bytes:
    body = names.uuid_bytes(text)
    if body is None:
        raise BadRequest(f"the {kind} {text!r} is not a valid UUID")
    return body
