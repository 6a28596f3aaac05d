"""A mirror of the providers of a remote Placement in the columns, refreshed regularly."""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from roost.client.placement_http import Connection, part
from roost.errors import PlacementGone
from roost.fleet.fleet_service import Fleet
from roost.model.host import HostSpec
from roost.model.names import uuid_form
from roost.model.provider import Inventory, ProviderSpec
from roost.model.writes import Write
from roost.placement.current import Current
from roost.placement.placement_service import Placement
from roost.placement.writes import inventories, labels

# Roots with this trait share their inventory and are not hosts.
_SHARING = "MISC_SHARES_VIA_AGGREGATE"


class Mirror:
    """Reads the changed providers of a remote Placement, by their generations.

    Args:
        connection: for the exclusive use of the mirror.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._generations: dict[str, int] = {}  # by uuid

    def read(self) -> list[ProviderSpec]:
        """Return new and changed providers, parents before children.

        Raises:
            PlacementGone: the remote Placement does not answer; the next call returns all of them.
        """
        specs, generations = [], {}
        try:
            for record in _parents_first(part(self._connection.get("/resource_providers"), "resource_providers")):
                uuid, generation = uuid_form(record["uuid"]), record["generation"]
                if self._generations.get(uuid) == generation:
                    continue
                spec = self._spec(record)
                if spec is not None:  # None: deleted meanwhile.
                    specs.append(spec)
                    generations[uuid] = generation
        except (LookupError, TypeError, ValueError) as error:
            raise PlacementGone(f"its providers are malformed: {error!r}") from error
        self._generations |= generations
        return specs

    def forget(self) -> None:
        """After a failed write, make the next call of ``read`` return all providers."""
        self._generations.clear()

    def _spec(self, record: dict[str, Any]) -> ProviderSpec | None:
        path = f"/resource_providers/{record['uuid']}"
        parts = {name: self._connection.get(f"{path}/{name}") for name in ("inventories", "traits", "aggregates")}
        if None in parts.values():
            return None
        parent = record["parent_provider_uuid"]
        return ProviderSpec(
            uuid=uuid_form(record["uuid"]),
            name=record["name"],
            parent_uuid=None if parent is None else uuid_form(parent),
            inventories=msgspec.convert(part(parts["inventories"], "inventories"), dict[str, Inventory]),
            traits=frozenset(part(parts["traits"], "traits")),
            aggregates=frozenset(map(uuid_form, part(parts["aggregates"], "aggregates"))),
        )


def write(current: Current, specs: Sequence[ProviderSpec], *, has_hosts: bool = True) -> None:
    """Write providers of the remote Placement to the columns, with a host on every new root.

    A new host has the name of its provider. Existing hosts keep their names and facts.

    Args:
        specs: parents before children.
        has_hosts: whether to create hosts.

    Raises:
        BadRequest: a provider cannot be stored in the columns.
        Unavailable: the store failed.
    """
    placement, providers = Placement(current), current.state.providers
    new = [spec for spec in specs if spec.uuid not in providers.row_of_uuid]
    placement.create_providers(
        [
            # If the remote Placement replaced a provider by another of the same name, the name is still in use here.
            msgspec.structs.replace(
                spec, aggregates=frozenset(), name=spec.uuid if spec.name in providers.row_of_name else spec.name
            )
            for spec in new
        ]
    )
    placement.ensure_names(
        resource_classes={name for spec in specs for name in spec.inventories},
        traits={trait for spec in specs for trait in spec.traits},
    )
    for spec in specs:
        for writes in _differences(current, spec):
            current.write(writes)
    row_of, hosts = current.state.providers.row_of_uuid, current.state.hosts
    Fleet(current).register_hosts(
        [
            HostSpec(provider_uuid=spec.uuid, host=spec.name, node=spec.name)
            for spec in specs
            if has_hosts
            and spec.parent_uuid is None
            and _SHARING not in spec.traits
            and row_of[spec.uuid] not in hosts.row_of_root
        ]
    )


def _differences(current: Current, spec: ProviderSpec) -> Iterator[tuple[Write, ...]]:
    """Yield the writes that update a provider, each to be committed before the next."""
    row = current.state.providers.row_of_uuid[spec.uuid]
    if inventories.list_inventories(current.state, row) != spec.inventories:
        yield inventories.plan_replacement(current.state, row, spec.inventories)
    generation = current.state.providers.generation.each[row]
    trait_writes = labels.plan_traits(current.state, row, names=sorted(spec.traits), generation=generation)
    if trait_writes:
        yield trait_writes
    if set(labels.aggregates_of(current.state, row)) != spec.aggregates:
        yield labels.plan_aggregates(current, row, uuids=sorted(spec.aggregates), generation=None)


def _parents_first(records: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return providers by depth; the sort is stable."""
    parent_of = {each["uuid"]: each["parent_provider_uuid"] for each in records}

    def depth(uuid: str) -> int:
        steps = 0
        while (parent := parent_of.get(uuid)) is not None and steps <= len(parent_of):
            uuid, steps = parent, steps + 1
        return steps

    return sorted(records, key=lambda each: depth(each["uuid"]))
