"""The part of a Placement for the check: its root providers, with their aggregates and some traits."""

from collections.abc import Iterable
from typing import Any
from urllib.parse import urlencode

import msgspec
import numpy as np

from roost.client.placement_http import Connection, part
from roost.engine.columns.state import State
from roost.model.names import DISABLED_TRAIT, SHARING_TRAIT

OWNER_TRAIT = "OWNER_NOVA"
_TRAITS = (DISABLED_TRAIT, OWNER_TRAIT, SHARING_TRAIT)


class PlacementPicture(msgspec.Struct, frozen=True, kw_only=True):
    """The root providers of a Placement."""

    names: dict[str, str]  # of root providers, by uuid
    members: dict[str, frozenset[str]]  # uuid of an aggregate -> its root providers
    traits: dict[str, frozenset[str]]  # trait -> root providers that have it

    def having(self, trait: str) -> frozenset[str]:
        """Return the uuids of the root providers with a trait."""
        return self.traits.get(trait, frozenset())


def picture_of_state(state: State, aggregates: Iterable[str]) -> PlacementPicture:
    """Read Roost's own Placement.

    Args:
        aggregates: uuids.
    """
    providers = state.providers
    roots = providers.alive.view & (providers.parent.view < 0)

    def uuids(mask: Any) -> frozenset[str]:
        rows = np.flatnonzero(mask[: len(roots)] & roots[: len(mask)])
        return frozenset(providers.uuids[row] for row in rows.tolist())

    def roots_with(labels: Any, number: int | None) -> frozenset[str]:
        return frozenset() if number is None else uuids(labels.mask_of(number))

    return PlacementPicture(
        names={providers.uuids[row]: providers.names[row] for row in np.flatnonzero(roots).tolist()},
        members={each: roots_with(state.membership, state.aggregates.id_of(each)) for each in aggregates},
        traits={each: roots_with(state.traits, state.trait_ids.id_of(each)) for each in _TRAITS},
    )


def picture_of_remote(connection: Connection, aggregates: Iterable[str]) -> PlacementPicture:
    """Read another Placement: one request for each aggregate, and a few more.

    Args:
        aggregates: uuids.

    Raises:
        PlacementGone: it does not answer, or refuses the client.
    """

    def roots(**query: str) -> dict[str, str]:
        path = f"/resource_providers?{urlencode(query)}" if query else "/resource_providers"
        listing = part(connection.get(path), "resource_providers")
        return {each["uuid"]: each["name"] for each in listing if not each.get("parent_provider_uuid")}

    # A query for an unknown trait is an error.
    known = part(connection.get(f"/traits?{urlencode({'name': 'in:' + ','.join(_TRAITS)})}"), "traits")
    return PlacementPicture(
        names=roots(),
        members={each: frozenset(roots(member_of=each)) for each in aggregates},
        traits={each: frozenset(roots(required=each)) for each in known},
    )
