"""The report client: all reads and writes of a host in a Placement."""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlencode

from roost.compute.providers import held_allocations
from roost.compute.providers.held_allocations import Allocations, Amounts
from roost.compute.providers.provider_forest import ProviderRecord
from roost.compute.providers.provider_tree import ProviderTree
from roost.compute.report.consumer_records import Consumers
from roost.compute.report.flush import TreeFlush
from roost.compute.report.placement_session import Http, PlacementSession, RetryPolicy, part
from roost.compute.report.provider_cache import Cache
from roost.compute.report.provider_offers import Offers
from roost.compute.report.provider_records import AGGREGATES_VERSION, Providers
from roost.errors import Conflict, InUse, PlacementGone
from roost.observe import log
from roost.ports import Clock

CANDIDATES_VERSION = "1.36"
_USAGES_VERSION = "1.9"
_CORES = ("VCPU", "PCPU")
T = TypeVar("T")


class Candidates(NamedTuple):
    """The response to a candidate query; all fields are None if there was no response."""

    allocation_requests: list[dict[str, Any]] | None = None
    provider_summaries: dict[str, Any] | None = None
    version: str | None = None  # microversion of the requests, for the claim


class ReportClient:
    """Keeps a host's inventories in Placement up to date, and writes the allocations of consumers.

    An unanswered request is repeated a few times, after pauses. Then methods raise PlacementGone, unless stated
    otherwise. They also raise BadRequest for an invalid request, and NotFound. Only one thread at a time may call
    methods for providers; methods for consumers are as thread-safe as ``http``.

    Args:
        http: the transport to the Placement.
        clock: measures the age of cached providers.
        sleep: waits a number of seconds, between attempts.
        uniform: returns a random number between two numbers.
        tries: maximum number of attempts, >= 1.
        refresh_s: age at which a cached provider is read again; 0: never.
        sharing_max: maximum number of aggregates, or traits, in one request, >= 1.
    """

    def __init__(
        self,
        http: Http,
        *,
        clock: Clock,
        sleep: Callable[[float], None],
        uniform: Callable[[float, float], float],
        tries: int = 4,
        refresh_s: float = 300.0,
        sharing_max: int = 200,
    ) -> None:
        self._session = PlacementSession(http, RetryPolicy(sleep=sleep, uniform=uniform, tries=tries))
        self._cache = Cache(elapsed_s=clock.elapsed_s, refresh_s=refresh_s)
        self._providers = Providers(self._session, self._cache, uuids_max=sharing_max)
        self._offers = Offers(self._session, self._cache, names_max=sharing_max)
        self._flush = TreeFlush(self._session, self._cache, providers=self._providers, offers=self._offers)
        self._consumers = Consumers(self._session)
        self._is_away = False

    # --- the tree of a host ---

    def get_provider_tree_and_ensure_root(
        self, uuid: str, name: str | None = None, parent_uuid: str | None = None
    ) -> ProviderTree:
        """Return a copy of the cache, with the tree of a provider; create a missing provider.

        Stale data is read again. Providers that share with the tree are roots beside it.

        Args:
            name: name of a new provider; None: its uuid.

        Raises:
            SyncFailed: another provider has its name.
            Conflict: the provider was deleted meanwhile; try again.
        """
        self._providers.ensure(uuid, name=uuid if name is None else name, parent_uuid=parent_uuid)
        return self._cache.copy_tree()

    def update_from_provider_tree(self, new_tree: ProviderTree, allocations: Allocations | None = None) -> None:
        """Write an edited tree to Placement.

        In this order: create new providers, parents first; with ``allocations``, reshape: replace all inventories and
        these allocations in one request; delete removed providers, children first; write changed inventories,
        aggregates and traits, children first. Only the reshape is atomic. After an error, the next call reads the tree
        again. On return, ``new_tree`` has the generations of its writes.

        Args:
            new_tree: the edited tree.
            allocations: the complete new allocations of some consumers, or an empty mapping; None: do not reshape.

        Raises:
            Conflict: a concurrent change; start again with a new tree, and new allocations.
            ReshapeFailed: the reshape was refused or not answered. After a refusal, its new providers are deleted.
            InUse: an inventory to delete is in use.
            SyncFailed: another request was refused or not answered; completed writes stay.
        """
        self._flush.run(new_tree, allocations)

    def forget(self) -> None:
        """Drop all cached providers."""
        self._cache.forget_trees(self._cache.tree.get_provider_uuids())

    def get_provider_by_name(self, name: str) -> ProviderRecord:
        """Return the provider with a name.

        Raises:
            NotFound: there is none.
        """
        return self._providers.find_by_name(name)

    def delete_resource_provider(self, uuid: str, consumers: Iterable[str] = ()) -> list[str]:
        """Delete the tree of a host, children first; return the providers that are still in use.

        Args:
            consumers: consumers to release first, on all providers: instances of the host, completed evacuations.
        """
        for consumer in consumers:
            self._consumers.drop(consumer)
        tree = ProviderTree()
        tree.populate_from_iterable(self._providers.in_tree(uuid))
        below = tree.get_provider_uuids(uuid) if tree.exists(uuid) else []
        left = []
        for each in reversed(below):
            try:
                self._providers.delete(each)
            except InUse as error:
                log.event("provider_in_use", problem=str(error))
                left.append(each)
        return left

    # --- one provider ---

    def set_inventory_for_provider(self, uuid: str, inventory: Mapping[str, Mapping[str, float]]) -> None:
        """Replace the inventories of a cached provider if they differ; create custom classes.

        Raises:
            InUse: an inventory to delete is in use.
        """
        self._offers.set_inventory(uuid, inventory)

    def set_traits_for_provider(self, uuid: str, traits: Collection[str]) -> None:
        """Replace the traits of a cached provider if they differ; create custom ones."""
        self._offers.set_traits(uuid, traits)

    def set_aggregates_for_provider(
        self, uuid: str, aggregates: Collection[str], *, use_cache: bool = True, generation: int | None = None
    ) -> None:
        """Replace the aggregates of a provider, if the cached ones differ.

        Args:
            use_cache: False: write in any case; the provider need not be cached.
            generation: generation of the provider; required if ``use_cache`` is False.

        Raises:
            ValueError: the generation is missing.
        """
        self._offers.set_aggregates(uuid, aggregates, use_cache=use_cache, generation=generation)

    def aggregate_add_host(self, aggregate_uuid: str, host_name: str) -> None:
        """Add the provider of a host to an aggregate."""
        self._change_aggregates(host_name, lambda found: found | {aggregate_uuid})

    def aggregate_remove_host(self, aggregate_uuid: str, host_name: str) -> None:
        """Remove the provider of a host from an aggregate, if it is a member."""
        self._change_aggregates(host_name, lambda found: found - {aggregate_uuid})

    # --- allocations ---

    def get_allocations_for_provider_tree(self, name: str) -> Allocations:
        """Return all allocations of the consumers of a cached tree, including those on sharing providers.

        The search for consumers covers only the tree itself, since sharing providers also serve other hosts. So it
        misses consumers with allocations only on sharing providers.

        Args:
            name: name or uuid of a provider of the tree.
        """
        return self._consumers.of_providers(self._cache.tree.get_provider_uuids_in_tree(name))

    def get_allocations_for_resource_provider(self, uuid: str) -> dict[str, Any]:
        """Return the allocations on a provider, by consumer.

        Raises:
            NotFound: there is no such provider.
        """
        return self._consumers.of_provider(uuid)

    def get_allocs_for_consumer(self, consumer_uuid: str) -> dict[str, Any]:
        """Return the full response for a consumer; without allocations, it has only an empty ``allocations``."""
        return self._consumers.answer_of(consumer_uuid)

    def get_allocations_for_consumer(self, consumer_uuid: str) -> dict[str, Any] | None:
        """Return the allocations of a consumer, by provider; None: Placement does not answer."""
        found = self._call_or_none(lambda: self._consumers.answer_of(consumer_uuid))
        return None if found is None else part(found, "allocations")

    def claim_resources(
        self,
        consumer_uuid: str,
        allocation_request: Mapping[str, Any],
        *,
        project_id: str,
        user_id: str,
        allocation_request_version: str = CANDIDATES_VERSION,
        consumer_generation: int | None = None,
    ) -> bool:
        """Claim the amounts of a request for a consumer; return whether it succeeded.

        A consumer that already has allocations is moving: it keeps them, and claims the amounts on other providers.

        Args:
            consumer_generation: generation of a consumer that an operator forces to a host; None: the generation that
                Placement has now, if any.

        Raises:
            Conflict: the consumer changed meanwhile.
        """
        return self._consumers.claim(
            consumer_uuid,
            allocation_request,
            project_id=project_id,
            user_id=user_id,
            generation=consumer_generation,
            version=allocation_request_version,
        )

    def put_allocations(self, consumer_uuid: str, payload: Mapping[str, Any]) -> bool:
        """Replace all allocations of a consumer; return whether it succeeded.

        Args:
            payload: the body of the request, with the generation of the consumer, or None for a new consumer.

        Raises:
            Conflict: the consumer changed meanwhile.
        """
        return self._consumers.put(consumer_uuid, payload)

    def add_resources_to_instance_allocation(self, consumer_uuid: str, resources: Amounts) -> None:
        """Claim further amounts for a consumer.

        Args:
            resources: by provider uuid, then by class.

        Raises:
            NotFound: the consumer has no allocations yet.
            Conflict: the amounts do not fit, or every attempt met a concurrent change.
        """
        self._consumers.change(consumer_uuid, lambda held: held_allocations.add(held, resources))

    def remove_resources_from_instance_allocation(self, consumer_uuid: str, resources: Amounts) -> None:
        """Release a part of a consumer's allocations.

        Raises:
            BadRequest: the consumer holds less.
            NotFound: the consumer has no allocations.
            Conflict: every attempt met a concurrent change.
        """
        self._consumers.change(consumer_uuid, lambda held: held_allocations.subtract(held, resources))

    def remove_provider_tree_from_instance_allocation(self, consumer_uuid: str, root_uuid: str) -> bool:
        """Release all allocations of a consumer in a provider's tree; return whether there were any.

        Raises:
            NotFound: the consumer has no allocations at all.
            Conflict: every attempt met a concurrent change.
        """
        within = {each["uuid"] for each in self._providers.in_tree(root_uuid)}
        return self._consumers.change(
            consumer_uuid, lambda held: {uuid: {**each} for uuid, each in held.items() if uuid not in within}
        )

    def remove_providers_from_allocation(
        self, consumer_uuid: str, known: Mapping[str, Any], uuids: Collection[str]
    ) -> bool:
        """Release the allocations of a consumer on some providers; return whether there were any.

        Args:
            known: response of ``get_allocs_for_consumer``.
            uuids: uuids of the providers.

        Raises:
            Conflict: the consumer changed since that response.
        """
        return self._consumers.release_on(consumer_uuid, known, uuids)

    def move_allocations(self, source_uuid: str, target_uuid: str) -> bool:
        """Move the allocations of one consumer to another, in one request; return whether the target has them.

        If only the target has allocations, an earlier call has moved them.

        Raises:
            Conflict: one of the consumers changed meanwhile.
        """
        return self._consumers.move(source_uuid, target_uuid)

    def delete_allocation_for_instance(self, consumer_uuid: str, *, force: bool = False) -> bool:
        """Release all allocations of a consumer; return whether there were any.

        Args:
            force: release them despite concurrent changes.

        Raises:
            Conflict: the consumer changed meanwhile, without ``force``.
        """
        return self._consumers.drop(consumer_uuid) if force else self._consumers.release(consumer_uuid)

    # --- queries ---

    def get_allocation_candidates(self, query: str) -> Candidates:
        """Return the candidates of a query string; empty if Placement does not answer."""
        found = self._call_or_none(
            lambda: self._session.request("GET", f"/allocation_candidates?{query}", version=CANDIDATES_VERSION)
        )
        if found is None:
            return Candidates()
        if found.status != 200:
            log.event("candidates_refused", problem=found.problem)
            return Candidates()
        requests, summaries = part(found.body, "allocation_requests"), part(found.body, "provider_summaries")
        return Candidates(requests, summaries, CANDIDATES_VERSION)

    def get_usages_counts_for_quota(self, project_id: str, user_id: str | None = None) -> dict[str, dict[str, int]]:
        """Return the used ``cores`` and ``ram`` (MiB) of a ``project``, and of a ``user`` in the project."""
        found = {"project": _counts(self._usages(project_id=project_id))}
        if user_id is not None:
            found["user"] = _counts(self._usages(project_id=project_id, user_id=user_id))
        return found

    def get_usages_counts_for_limits(self, project_id: str) -> dict[str, int]:
        """Return the usage of a project, by resource class."""
        return self._usages(project_id=project_id)

    # --- shared ---

    def _usages(self, **query: str) -> dict[str, int]:
        usages: dict[str, int] = part(
            self._session.read(f"/usages?{urlencode(query)}", version=_USAGES_VERSION), "usages"
        )
        return usages

    def _change_aggregates(self, name: str, edit: Callable[[set[str]], set[str]]) -> None:
        uuid = self._providers.find_by_name(name)["uuid"]
        conflict: Conflict | None = None
        for _ in self._session.retries.attempts():
            found = self._session.read(f"/resource_providers/{uuid}/aggregates", version=AGGREGATES_VERSION)
            known, generation = set(part(found, "aggregates")), part(found, "resource_provider_generation")
            aggregates = edit(known)
            if aggregates == known:
                return
            try:
                self._offers.set_aggregates(uuid, aggregates, use_cache=False, generation=generation)
            except Conflict as error:
                conflict = error
            else:
                return
        assert conflict is not None, "there is at least one attempt"
        raise conflict

    def _call_or_none(self, call: Callable[[], T]) -> T | None:
        """Return the result of a call; if Placement does not answer, log it once and return None."""
        try:
            found = call()
        except PlacementGone as error:
            if not self._is_away:
                log.event("placement_away", problem=str(error))
            self._is_away = True
            return None
        self._is_away = False
        return found


def _counts(usages: Mapping[str, int]) -> dict[str, int]:
    return {"cores": sum(usages.get(name, 0) for name in _CORES), "ram": usages.get("MEMORY_MB", 0)}
