"""The hosts of a remote Placement, known here too: what it has of providers is written after it, now and then."""

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

# Roots that lend what they have to others are no hosts.
_SHARING = "MISC_SHARES_VIA_AGGREGATE"


class Mirror:
    """Reads the providers of a remote Placement.

    What was read is known by its generation, so it is read again when that is another.

    Args:
        connection: to that server, for this alone.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._generations: dict[str, int] = {}  # uuid -> generation

    def read(self) -> list[ProviderSpec]:
        """Return the providers that are new or changed, parents before their children.

        Raises:
            PlacementGone: the remote Placement does not answer; all of this is returned the next time.
        """
        found, generations = [], {}
        try:
            for told in _parents_first(part(self._connection.get("/resource_providers"), "resource_providers")):
                uuid, generation = uuid_form(told["uuid"]), told["generation"]
                if self._generations.get(uuid) == generation:
                    continue
                spec = self._spec(told)
                if spec is not None:  # It may have been deleted meanwhile.
                    found.append(spec)
                    generations[uuid] = generation
        except (LookupError, TypeError, ValueError) as error:
            raise PlacementGone(f"its providers cannot be understood: {error!r}") from error
        self._generations |= generations
        return found

    def forget(self) -> None:
        """Let everything be read again: what was read was not written."""
        self._generations.clear()

    def _spec(self, told: dict[str, Any]) -> ProviderSpec | None:
        path = f"/resource_providers/{told['uuid']}"
        parts = {name: self._connection.get(f"{path}/{name}") for name in ("inventories", "traits", "aggregates")}
        if None in parts.values():
            return None
        parent = told["parent_provider_uuid"]
        return ProviderSpec(
            uuid=uuid_form(told["uuid"]),
            name=told["name"],
            parent_uuid=None if parent is None else uuid_form(parent),
            inventories=msgspec.convert(part(parts["inventories"], "inventories"), dict[str, Inventory]),
            traits=frozenset(part(parts["traits"], "traits")),
            aggregates=frozenset(map(uuid_form, part(parts["aggregates"], "aggregates"))),
        )


def write(current: Current, specs: Sequence[ProviderSpec]) -> None:
    """Let the columns know providers as they are at the remote Placement, and put a host on every new root.

    A host is called after its provider. Hosts that are known keep their names and facts.

    Args:
        specs: parents before their children.

    Raises:
        BadRequest: something cannot be kept here.
        Unavailable: the store failed.
    """
    placement, providers = Placement(current), current.state.providers
    new = [spec for spec in specs if spec.uuid not in providers.row_of_uuid]
    placement.create_providers(
        [
            # One that was deleted there and made again still has its name here.
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
            if spec.parent_uuid is None and _SHARING not in spec.traits and row_of[spec.uuid] not in hosts.row_of_root
        ]
    )


def _differences(current: Current, spec: ProviderSpec) -> Iterator[tuple[Write, ...]]:
    """Yield what makes a provider as it is to be, each after what came before was written."""
    row = current.state.providers.row_of_uuid[spec.uuid]
    if inventories.offered(current.state, row) != spec.inventories:
        yield inventories.replaced(current.state, row, spec.inventories)
    generation = current.state.providers.generation.each[row]
    worn = labels.wearing(current.state, row, names=sorted(spec.traits), generation=generation)
    if worn:
        yield worn
    if set(labels.aggregates_of(current.state, row)) != spec.aggregates:
        yield labels.joining(current, row, uuids=sorted(spec.aggregates), generation=None)


def _parents_first(told: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return providers by the length of their way to the root, and then as they were told."""
    parent_of = {each["uuid"]: each["parent_provider_uuid"] for each in told}

    def depth(uuid: str) -> int:
        steps = 0
        while (parent := parent_of.get(uuid)) is not None and steps <= len(parent_of):
            uuid, steps = parent, steps + 1
        return steps

    return sorted(told, key=lambda each: depth(each["uuid"]))
