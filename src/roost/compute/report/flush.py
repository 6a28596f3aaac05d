"""Writes an edited tree to Placement, with its allocations if they move: start with ``TreeFlush.run``."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

from roost.compute.providers.held_allocations import Allocations, amounts_of, holdings_of
from roost.compute.providers.provider_tree import ProviderTree
from roost.compute.report.placement_session import PlacementSession
from roost.compute.report.provider_cache import Cache
from roost.compute.report.provider_offers import Offers
from roost.compute.report.provider_records import Providers
from roost.errors import Conflict, InUse, PlacementGone, ReshapeFailed, RoostError, SyncFailed
from roost.model.placement.placement_api import GENERATION_CODE, Answer

RESHAPE_VERSION = "1.30"
_RESHAPER = "/reshaper"


class TreeFlush:
    """Writes the differences between the cache and an edited tree."""

    def __init__(self, session: PlacementSession, cache: Cache, *, providers: Providers, offers: Offers) -> None:
        self._session = session
        self._cache = cache
        self._providers = providers
        self._offers = offers

    def run(self, tree: ProviderTree, allocations: Allocations | None) -> None:
        """Create new providers, reshape, delete removed ones, and write changed inventories and labels, in this order.

        See ``ReportClient.update_from_provider_tree``.
        """
        self._check_parents(tree)
        removed = self._cache.find_removed(tree)
        created: list[str] = []
        try:
            self._create(tree, created)
            if allocations is not None:
                self._ensure_classes(tree)
        except RoostError as error:
            if allocations is not None:
                self._undo(created, error)
            raise
        if allocations is not None:
            self._reshape(tree, allocations, created=created, removed=removed)
        for uuid in reversed(removed):
            with self._syncing(tree, uuid):
                self._delete(uuid)
        for uuid in reversed(tree.get_provider_uuids()):
            with self._syncing(tree, uuid):
                self._offer(tree, uuid)

    def _check_parents(self, tree: ProviderTree) -> None:
        known = self._cache.tree
        for uuid in tree.get_provider_uuids():
            if known.exists(uuid) and known.data(uuid).parent_uuid != tree.data(uuid).parent_uuid:
                raise SyncFailed(
                    f"provider {uuid} cannot move below another parent: remove it, and add one with a new uuid and name"
                )

    # --- the steps ---

    def _create(self, tree: ProviderTree, created: list[str]) -> None:
        for uuid in tree.get_provider_uuids():
            if self._cache.tree.exists(uuid):
                continue
            edited = tree.data(uuid)
            with self._syncing(tree, uuid):
                if self._providers.create(uuid, name=edited.name, parent_uuid=edited.parent_uuid):
                    created.append(uuid)
            # Keep a generation from the driver: with it, Placement refuses the write if the provider has changed since.
            if edited.generation is None or uuid in created:
                _set_generation(tree, uuid, self._cache.tree.data(uuid).generation)
        self._cache.note_flushed(tree)

    def _ensure_classes(self, tree: ProviderTree) -> None:
        uuids = tree.get_provider_uuids()
        with self._syncing(tree, *uuids):
            self._offers.ensure_classes({name for uuid in uuids for name in tree.data(uuid).inventory})

    def _reshape(
        self, tree: ProviderTree, allocations: Allocations, *, created: Sequence[str], removed: Sequence[str]
    ) -> None:
        """Replace inventories and allocations in one request."""
        moved = [uuid for uuid in tree.get_provider_uuids() if not self._is_unchanged_shared(tree, uuid)]
        body = {
            "inventories": {uuid: self._inventories(tree, uuid) for uuid in moved}
            | {
                uuid: {"inventories": {}, "resource_provider_generation": self._cache.tree.data(uuid).generation}
                for uuid in removed
            },
            "allocations": _allocations_body(allocations),
        }
        try:
            answer = self._session.request("POST", _RESHAPER, body, version=RESHAPE_VERSION)
        except PlacementGone as error:
            # The request may have succeeded, so nothing is undone.
            self._cache.forget_trees(tree.get_provider_uuids())
            problem = f"the reshape was not answered, and may have been carried out: {error}"
            raise ReshapeFailed(_node_of(tree), problem) from error
        if answer.status != 204:
            self._refuse(tree, created, answer)
        for uuid in moved:
            with self._syncing(tree, uuid):
                _set_generation(tree, uuid, self._providers.refresh_inventory(uuid))

    def _delete(self, uuid: str) -> None:
        try:
            self._providers.delete(uuid)
        except InUse as error:
            raise SyncFailed(str(error)) from error

    def _offer(self, tree: ProviderTree, uuid: str) -> None:
        edited = tree.data(uuid)
        generation = self._offers.set_inventory(uuid, edited.inventory, generation=edited.generation)
        generation = self._offers.set_aggregates(uuid, edited.aggregates, generation=generation)
        _set_generation(tree, uuid, self._offers.set_traits(uuid, edited.traits, generation=generation))

    # --- shared ---

    def _refuse(self, tree: ProviderTree, created: Sequence[str], answer: Answer) -> NoReturn:
        self._cache.forget_trees(tree.get_provider_uuids())
        is_race = answer.status == 409 and answer.code == GENERATION_CODE
        problem = f"the reshape is refused: {answer.problem}"
        refused = Conflict(problem, code=answer.code) if is_race else ReshapeFailed(_node_of(tree), problem)
        # If an unanswered attempt succeeded, its repetition conflicts with it; then nothing may be undone.
        if not (is_race and answer.is_repeated):
            self._undo(created, refused)
        raise refused

    def _is_unchanged_shared(self, tree: ProviderTree, uuid: str) -> bool:
        """Return whether a sharing provider is unchanged; a reshape omits it, since other hosts write it, too."""
        return self._cache.is_shared(uuid) and not self._cache.tree.has_inventory_changed(
            uuid, tree.data(uuid).inventory
        )

    def _inventories(self, tree: ProviderTree, uuid: str) -> dict[str, Any]:
        edited = tree.data(uuid)
        generation = self._cache.tree.data(uuid).generation if edited.generation is None else edited.generation
        return {"inventories": edited.inventory, "resource_provider_generation": generation}

    def _undo(self, created: Sequence[str], error: RoostError) -> None:
        """Delete the new providers of a failed reshape; add remaining ones to the message of the error."""
        remaining = []
        for uuid in reversed(created):
            try:
                self._providers.delete(uuid)
            except RoostError:
                remaining.append(uuid)
        if remaining:
            error.args = (f"{error}; new providers that could not be deleted: {', '.join(remaining)}",)

    @contextmanager
    def _syncing(self, tree: ProviderTree, *uuids: str) -> Iterator[None]:
        """After an error, drop the providers' trees from the cache, and raise it again.

        Raises:
            Conflict, InUse, SyncFailed: the error itself; SyncFailed also in place of any other error.
        """
        try:
            yield
        except RoostError as error:
            around = [each for uuid in uuids if tree.exists(uuid) for each in tree.get_provider_uuids_in_tree(uuid)]
            self._cache.forget_trees([*uuids, *around])
            if isinstance(error, (Conflict, InUse, SyncFailed)):
                raise
            raise SyncFailed(f"Placement has only a part of the host's resources: {error}") from error


def _set_generation(tree: ProviderTree, uuid: str, generation: int | None) -> None:
    tree.update_traits(uuid, tree.data(uuid).traits, generation)


def _allocations_body(allocations: Allocations) -> dict[str, Any]:
    """Return allocations in the form of the reshaper: without provider generations and empty allocations."""
    return {
        consumer: {
            "allocations": holdings_of(amounts_of(record["allocations"])),
            "project_id": record["project_id"],
            "user_id": record["user_id"],
            "consumer_generation": record["consumer_generation"],
        }
        for consumer, record in allocations.items()
    }


def _node_of(tree: ProviderTree) -> str:
    """Return the name of the node, which is the first root of the tree; sharing providers follow."""
    return tree.data(tree.get_provider_uuids()[0]).name
