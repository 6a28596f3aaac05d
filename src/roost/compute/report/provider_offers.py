"""Writes of a provider's inventories, traits and aggregates, if they differ from the cache."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any
from urllib.parse import quote

from roost.compute.report.placement_session import PlacementSession, part, refusal
from roost.compute.report.provider_cache import Cache
from roost.compute.report.provider_records import AGGREGATES_VERSION, INVENTORY_VERSION, TRAITS_VERSION, chunks
from roost.errors import Conflict, InUse
from roost.model.placement.placement_api import INVENTORY_CODE

_CLASSES_VERSION = "1.7"
_CUSTOM = "CUSTOM_"


class Offers:
    """Inventories and labels of the providers of a Placement.

    Each ``set_…`` method writes only if the cache differs. The request names the given generation, or the cached one
    if none is given. The method returns the new generation, or the given one if it wrote nothing.
    After a lost race it drops the tree from the cache, and raises Conflict.
    """

    def __init__(self, session: PlacementSession, cache: Cache, *, names_max: int) -> None:
        self._session = session
        self._cache = cache
        self._names_max = names_max

    def set_inventory(
        self, uuid: str, inventory: Mapping[str, Mapping[str, float]], *, generation: int | None = None
    ) -> int | None:
        """Replace all inventories of a provider.

        Raises:
            InUse: an inventory to delete is in use.
            BadRequest: a name or a record is invalid.
            Conflict, NotFound, PlacementGone: see ``refusal``. Every method below raises them, too.
        """
        tree = self._cache.tree
        if not tree.has_inventory_changed(uuid, inventory):
            return generation
        self.ensure_classes(inventory)
        body = {"inventories": {name: {**record} for name, record in inventory.items()}}
        found = self._put(uuid, "inventories", body, generation=generation, version=INVENTORY_VERSION)
        tree.update_inventory(uuid, part(found, "inventories"), _generation(found))
        return _generation(found)

    def set_traits(self, uuid: str, traits: Collection[str], *, generation: int | None = None) -> int | None:
        """Replace all traits of a provider."""
        tree = self._cache.tree
        if not tree.have_traits_changed(uuid, traits):
            return generation
        self.ensure_traits(traits)
        found = self._put(uuid, "traits", {"traits": sorted(traits)}, generation=generation, version=TRAITS_VERSION)
        tree.update_traits(uuid, part(found, "traits"), _generation(found))
        return _generation(found)

    def set_aggregates(
        self, uuid: str, aggregates: Collection[str], *, use_cache: bool = True, generation: int | None = None
    ) -> int | None:
        """Replace all aggregates of a provider.

        Args:
            use_cache: whether to write nothing if the cached aggregates are equal.

        Raises:
            ValueError: there is no generation, and the cache must not be used.
        """
        tree = self._cache.tree
        if use_cache and not tree.have_aggregates_changed(uuid, aggregates):
            return generation
        if not use_cache and generation is None:
            raise ValueError("a write of aggregates without the cache needs the generation of the provider")
        body = {"aggregates": sorted(aggregates)}
        found = self._put(uuid, "aggregates", body, generation=generation, version=AGGREGATES_VERSION)
        if tree.exists(uuid):
            tree.update_aggregates(uuid, part(found, "aggregates"), _generation(found))
        return _generation(found)

    def ensure_classes(self, resource_classes: Iterable[str]) -> None:
        """Create the missing custom classes."""
        for name in sorted(resource_classes):
            if name.startswith(_CUSTOM):
                self._ensure(f"/resource_classes/{quote(name)}", version=_CLASSES_VERSION)

    def ensure_traits(self, traits: Iterable[str]) -> None:
        """Create the missing traits."""
        for batch in chunks(sorted(traits), self._names_max):
            found = self._session.read(f"/traits?name=in:{quote(','.join(batch), safe=',')}", version=TRAITS_VERSION)
            present = part(found, "traits")
            for name in batch:
                if name not in present:
                    self._ensure(f"/traits/{quote(name)}", version=TRAITS_VERSION)

    def _ensure(self, path: str, *, version: str) -> None:
        answer = self._session.request("PUT", path, version=version)
        if answer.status not in {201, 204}:
            raise refusal("PUT", path, answer)

    def _put(
        self, uuid: str, name: str, body: dict[str, Any], *, generation: int | None, version: str
    ) -> dict[str, Any]:
        path = f"/resource_providers/{uuid}/{name}"
        if generation is None:
            generation = self._cache.tree.data(uuid).generation
        body["resource_provider_generation"] = generation
        answer = self._session.request("PUT", path, body, version=version)
        if answer.status == 200 and isinstance(answer.body, dict):
            return answer.body
        if answer.status == 409 and answer.code == INVENTORY_CODE:
            raise InUse(f"the {name} of provider {uuid} cannot be replaced: {answer.problem}")
        error = refusal("PUT", path, answer)
        if isinstance(error, Conflict):
            self._cache.forget_trees([uuid])
        raise error


def _generation(found: Mapping[str, Any]) -> int:
    generation: int = part(found, "resource_provider_generation")
    return generation
