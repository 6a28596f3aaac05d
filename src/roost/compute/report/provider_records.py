"""Reads, creates and deletes providers, and reads their inventories, aggregates and traits."""

from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import quote

from roost.compute.providers.provider_forest import ProviderRecord
from roost.compute.report.placement_session import PlacementSession, part, refusal
from roost.compute.report.provider_cache import Cache
from roost.errors import Conflict, InUse, NotFound, SyncFailed
from roost.model.names import SHARING_TRAIT

AGGREGATES_VERSION = "1.19"
INVENTORY_VERSION = "1.26"
TRAITS_VERSION = "1.6"
_CREATE_VERSION = "1.20"
_SHARING_VERSION = "1.18"
_TREE_VERSION = "1.14"
# Only this text distinguishes a used name from a used uuid.
_NAME_IS_TAKEN = "Conflicting resource provider name:"


class Providers:
    """The providers of a Placement, read into a cache.

    Args:
        uuids_max: maximum number of aggregates in one request, >= 1.
    """

    def __init__(self, session: PlacementSession, cache: Cache, *, uuids_max: int) -> None:
        self._session = session
        self._cache = cache
        self._uuids_max = uuids_max

    def ensure(self, uuid: str, *, name: str, parent_uuid: str | None) -> None:
        """Read the tree of a provider; create a missing provider.

        Raises:
            SyncFailed: another provider has its name.
            Conflict: the cached provider no longer exists, and was dropped from the cache.
            PlacementGone: Placement does not answer. Every method below raises it, too.
        """
        tree = self._cache.tree
        if tree.exists(uuid):
            for each in tree.get_provider_uuids_in_tree(uuid):
                if self._cache.is_stale(each):
                    self.refresh(each)
            return
        records = self.in_tree(uuid)
        if not records:
            self.create(uuid, name=name, parent_uuid=parent_uuid)
            return
        tree.populate_from_iterable(records)
        for record in records:
            self.refresh(record["uuid"])

    def create(self, uuid: str, *, name: str, parent_uuid: str | None) -> bool:
        """Create a provider; return False if a provider with its uuid exists already."""
        body = {"name": name, "uuid": uuid} | ({} if parent_uuid is None else {"parent_provider_uuid": parent_uuid})
        answer = self._session.request("POST", "/resource_providers", body, version=_CREATE_VERSION)
        if answer.status == 200:
            self._cache.tree.populate_from_iterable([_record(answer.body)])
            self._cache.note_read(uuid)  # It has no inventories yet.
            return True
        if answer.status != 409:
            raise refusal("POST", "/resource_providers", answer)
        # The name may be in use because an earlier attempt succeeded.
        if answer.is_repeated or _NAME_IS_TAKEN not in answer.problem:
            records = self.in_tree(uuid)
            if records:
                self._cache.tree.populate_from_iterable(records)
                for record in records:
                    self.refresh(record["uuid"])
                return False
        raise SyncFailed(f"provider {name} cannot be created with uuid {uuid}: {answer.problem}")

    def delete(self, uuid: str) -> None:
        """Delete a provider, if it exists, and drop it from the cache.

        Raises:
            InUse: the provider has allocations or children.
        """
        path = f"/resource_providers/{uuid}"
        answer = self._session.request("DELETE", path, version=_TREE_VERSION)
        if answer.status == 409:
            raise InUse(f"provider {uuid} cannot be deleted: {answer.problem}")
        if answer.status not in {204, 404}:
            raise refusal("DELETE", path, answer)
        self._cache.forget(uuid)

    def in_tree(self, uuid: str) -> list[ProviderRecord]:
        """Return the providers of a provider's whole tree, sorted by uuid; empty if the provider does not exist."""
        return self._list_pages(f"in_tree={uuid}", version=_TREE_VERSION)

    def find_by_name(self, name: str) -> ProviderRecord:
        """Return the provider with a name.

        Raises:
            NotFound: there is none.
        """
        found = self._list_pages(f"name={quote(name, safe='')}", version=_TREE_VERSION)
        if not found:
            raise NotFound("provider", name)
        return found[0]

    def refresh(self, uuid: str) -> None:
        """Read the data of a provider, and the providers that share with it."""
        aggregates = self._refresh_one(uuid)
        for batch in chunks(sorted(aggregates), self._uuids_max):
            query = f"member_of=in:{','.join(batch)}&required={SHARING_TRAIT}"
            for record in self._list_pages(query, version=_SHARING_VERSION):
                if not self._cache.tree.exists(record["uuid"]):
                    self._cache.tree.new_root(record["name"], record["uuid"], record["generation"])
                if self._cache.is_stale(record["uuid"]):
                    self._refresh_one(record["uuid"])

    def refresh_inventory(self, uuid: str) -> int:
        """Read the inventories of a provider, and return its generation."""
        found = self._read(uuid, "inventories", version=INVENTORY_VERSION)
        generation: int = part(found, "resource_provider_generation")
        self._cache.tree.update_inventory(uuid, part(found, "inventories"), generation)
        return generation

    def _refresh_one(self, uuid: str) -> list[str]:
        """Read the data of a provider, and return its aggregates.

        The cached generation is that of the first response: if the provider changes before the last one, the next write
        is refused, and no change is overwritten.
        """
        self.refresh_inventory(uuid)
        aggregates = part(self._read(uuid, "aggregates", version=AGGREGATES_VERSION), "aggregates")
        traits = part(self._read(uuid, "traits", version=TRAITS_VERSION), "traits")
        self._cache.tree.update_aggregates(uuid, aggregates)
        self._cache.tree.update_traits(uuid, traits)
        self._cache.note_read(uuid)
        found: list[str] = aggregates
        return found

    def _read(self, uuid: str, name: str, *, version: str) -> dict[str, Any]:
        try:
            return self._session.read(f"/resource_providers/{uuid}/{name}", version=version)
        except NotFound as error:
            self._cache.forget_trees([uuid])
            raise Conflict(f"provider {uuid} is gone: read its tree again") from error

    def _list_pages(self, query: str, *, version: str) -> list[ProviderRecord]:
        found = part(self._session.read(f"/resource_providers?{query}", version=version), "resource_providers")
        # The order of a list differs between servers.
        return sorted(map(_record, found), key=lambda record: record["uuid"])


def chunks(names: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    """Yield names in order, in chunks of limited size."""
    for start in range(0, len(names), size):
        yield names[start : start + size]


def _record(found: Any) -> ProviderRecord:
    return ProviderRecord(
        uuid=part(found, "uuid"),
        name=part(found, "name"),
        generation=part(found, "generation"),
        parent_provider_uuid=part(found, "parent_provider_uuid"),
    )
