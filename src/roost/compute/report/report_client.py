"""The report client: all that a host asks of a Placement, and all that it writes there."""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlencode

from roost.compute.providers import held_allocations as amounts
from roost.compute.providers.held_allocations import Allocations, Amounts
from roost.compute.providers.provider_forest import ProviderRecord
from roost.compute.providers.provider_tree import ProviderTree
from roost.compute.report.consumer_records import Consumers
from roost.compute.report.flush import Flushing
from roost.compute.report.placement_session import Asking, Http, Patience, part
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
    """Ways to hold what was asked, as Placement says them; all None: it did not say."""

    allocation_requests: list[dict[str, Any]] | None = None
    provider_summaries: dict[str, Any] | None = None
    version: str | None = None  # of the requests, for the claim


class ReportClient:
    """Keeps what a Placement has of a host equal to what the host offers, and writes what consumers hold.

    A question without an answer is asked again, a few times, after pauses; then PlacementGone is raised, by every
    method. Other errors mean what they mean elsewhere: BadRequest, mend what was asked; Conflict, somebody was faster,
    read again; InUse, release first; NotFound. One thread at a time may use what is about providers; what is about
    consumers may be used by as many as may use ``http``.

    Args:
        http: the way to the Placement.
        clock: what is known of providers grows stale by it.
        sleep: waits so many seconds, between tries.
        uniform: gives a random number between two.
        tries: of everything that is tried again, >= 1.
        refresh_s: after which what is known of a provider is read again; 0: never.
        sharing_max: how many aggregates, or traits, one question names, >= 1.
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
        self._asking = Asking(http, Patience(sleep=sleep, uniform=uniform, tries=tries))
        self._cache = Cache(elapsed_s=clock.elapsed_s, refresh_s=refresh_s)
        self._providers = Providers(self._asking, self._cache, most_uuids=sharing_max)
        self._offers = Offers(self._asking, self._cache, most_names=sharing_max)
        self._flushing = Flushing(self._asking, self._cache, providers=self._providers, offers=self._offers)
        self._consumers = Consumers(self._asking)
        self._is_away = False

    # --- the tree of a host ---

    def get_provider_tree_and_ensure_root(
        self, uuid: str, name: str | None = None, parent_uuid: str | None = None
    ) -> ProviderTree:
        """Return a copy of all that is known, with the tree of a provider, which is created where there is none.

        What is known is read again where it is stale. Providers that share with the tree are roots beside it.

        Args:
            name: of the provider if it is new; None: its uuid.

        Raises:
            SyncFailed: another provider has its name.
            Conflict: the provider was deleted meanwhile; ask again.
        """
        self._providers.ensure(uuid, name=uuid if name is None else name, parent_uuid=parent_uuid)
        return self._cache.lend()

    def update_from_provider_tree(self, new_tree: ProviderTree, allocations: Allocations | None = None) -> None:
        """Bring an edited tree to Placement.

        In this order: create what is new, parents first; with allocations, replace all inventories and these
        allocations in one request; delete what was removed, children first; write inventories, aggregates and
        traits that differ, children first. Only the one request is atomic. After an error the tree is read anew next
        time. The tree learns the generations that come of its writes.

        Args:
            allocations: all that each of these consumers holds afterwards; an empty one is a reshape too. None: none.

        Raises:
            Conflict: somebody wrote meanwhile; begin again with a new tree, and new allocations.
            ReshapeFailed: the one request was refused or not answered. Where it was refused, what it created is
                deleted again.
            InUse: an inventory is to go of which something is held.
            SyncFailed: something else was refused, or not answered; what was written stays.
        """
        self._flushing.run(new_tree, allocations)

    def forget(self) -> None:
        """Forget all that is known of providers, so that it is read again."""
        self._cache.forget_trees(self._cache.tree.get_provider_uuids())

    def get_provider_by_name(self, name: str) -> ProviderRecord:
        """Return the provider of a name.

        Raises:
            NotFound: there is none.
        """
        return self._providers.find_by_name(name)

    def delete_resource_provider(self, uuid: str, consumers: Iterable[str] = ()) -> list[str]:
        """Delete the tree of a host, children first; return the providers that are still in use.

        Args:
            consumers: which are dropped first, whatever they hold: instances of the host, evacuations that ended.
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

    # --- what one provider offers ---

    def set_inventory_for_provider(self, uuid: str, inventory: Mapping[str, Mapping[str, float]]) -> None:
        """Replace the inventories of a provider of a known tree, where they differ; custom classes are created.

        Raises:
            InUse: a class is to go of which something is held.
        """
        self._offers.set_inventory(uuid, inventory)

    def set_traits_for_provider(self, uuid: str, traits: Collection[str]) -> None:
        """Replace the traits of a provider of a known tree, where they differ; custom ones are created."""
        self._offers.set_traits(uuid, traits)

    def set_aggregates_for_provider(
        self, uuid: str, aggregates: Collection[str], *, use_cache: bool = True, generation: int | None = None
    ) -> None:
        """Replace the aggregates of a provider, of a known tree where they differ.

        Args:
            use_cache: False: they are written in any case, and the provider need not be known.
            generation: of the provider; without the cache there must be one.

        Raises:
            ValueError: there is none.
        """
        self._offers.set_aggregates(uuid, aggregates, use_cache=use_cache, generation=generation)

    def aggregate_add_host(self, aggregate_uuid: str, host_name: str) -> None:
        """Put the provider of a host into an aggregate, beside those it is in."""
        self._change_aggregates(host_name, lambda found: found | {aggregate_uuid})

    def aggregate_remove_host(self, aggregate_uuid: str, host_name: str) -> None:
        """Take the provider of a host out of an aggregate, if it is in it."""
        self._change_aggregates(host_name, lambda found: found - {aggregate_uuid})

    # --- what is held ---

    def get_allocations_for_provider_tree(self, name: str) -> Allocations:
        """Return all that the consumers of a known tree hold, on providers that share with it too.

        Consumers are found by the providers of the tree itself, since on those that share there are other hosts'
        too. So who holds something only there is missed.

        Args:
            name: or uuid, of a provider of the tree.
        """
        return self._consumers.of_providers(self._cache.tree.get_provider_uuids_in_tree(name))

    def get_allocations_for_resource_provider(self, uuid: str) -> dict[str, Any]:
        """Return what is held of a provider, by consumer.

        Raises:
            NotFound: there is no such provider.
        """
        return self._consumers.of_provider(uuid)

    def get_allocs_for_consumer(self, consumer_uuid: str) -> dict[str, Any]:
        """Return all that is answered of a consumer; of one that holds nothing its empty allocations alone."""
        return self._consumers.answer_of(consumer_uuid)

    def get_allocations_for_consumer(self, consumer_uuid: str) -> dict[str, Any] | None:
        """Return what a consumer holds, by provider; None: Placement does not answer."""
        found = self._unless_away(lambda: self._consumers.answer_of(consumer_uuid))
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
        """Let a consumer take what a request says; say whether it did.

        One that holds something is moved: it keeps that, and takes what the request says of other providers.

        Args:
            consumer_generation: of a consumer that is forced to a host; None: it is new, or as it is now.

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
        """Replace all that a consumer holds; say whether that was done.

        Args:
            payload: the body of the request, with the generation of the consumer, None for a new one.

        Raises:
            Conflict: the consumer changed meanwhile.
        """
        return self._consumers.put(consumer_uuid, payload)

    def add_resources_to_instance_allocation(self, consumer_uuid: str, resources: Amounts) -> None:
        """Let a consumer take more.

        Args:
            resources: by the uuid of the provider, then by class.

        Raises:
            NotFound: it holds nothing yet.
            Conflict: it does not fit, or others were faster in every try.
        """
        self._consumers.change(consumer_uuid, lambda held: amounts.add(held, resources))

    def remove_resources_from_instance_allocation(self, consumer_uuid: str, resources: Amounts) -> None:
        """Let a consumer give back a part.

        Raises:
            BadRequest: it does not hold as much.
            NotFound: it holds nothing.
            Conflict: others were faster in every try.
        """
        self._consumers.change(consumer_uuid, lambda held: amounts.subtract(held, resources))

    def remove_provider_tree_from_instance_allocation(self, consumer_uuid: str, root_uuid: str) -> bool:
        """Let a consumer give back all it holds in the tree of a provider; say whether that was anything.

        Raises:
            NotFound: it holds nothing at all.
            Conflict: others were faster in every try.
        """
        within = {each["uuid"] for each in self._providers.in_tree(root_uuid)}
        return self._consumers.change(
            consumer_uuid, lambda held: {uuid: {**each} for uuid, each in held.items() if uuid not in within}
        )

    def remove_providers_from_allocation(
        self, consumer_uuid: str, known: Mapping[str, Any], uuids: Collection[str]
    ) -> bool:
        """Let a consumer give back what it holds of some providers; say whether that was anything.

        Args:
            known: what ``get_allocs_for_consumer`` told of it.
            uuids: of the providers.

        Raises:
            Conflict: it changed since then.
        """
        return self._consumers.leave(consumer_uuid, known, uuids)

    def move_allocations(self, source_uuid: str, target_uuid: str) -> bool:
        """Let one consumer hold what another one held, in one request; say whether it does.

        It does too where it holds something and the other one nothing: then that was done before.

        Raises:
            Conflict: one of them changed meanwhile.
        """
        return self._consumers.move(source_uuid, target_uuid)

    def delete_allocation_for_instance(self, consumer_uuid: str, *, force: bool = False) -> bool:
        """Let a consumer give back all it holds; say whether that was anything.

        Args:
            force: whatever happens to it meanwhile.

        Raises:
            Conflict: it changed meanwhile, and is not forced.
        """
        return self._consumers.drop(consumer_uuid) if force else self._consumers.release(consumer_uuid)

    # --- what is asked ---

    def get_allocation_candidates(self, query: str) -> Candidates:
        """Return ways to hold what a query string asks for; none of them where Placement does not answer it."""
        found = self._unless_away(
            lambda: self._asking.ask("GET", f"/allocation_candidates?{query}", version=CANDIDATES_VERSION)
        )
        if found is None:
            return Candidates()
        if found.status != 200:
            log.event("candidates_refused", problem=found.problem)
            return Candidates()
        requests, summaries = part(found.body, "allocation_requests"), part(found.body, "provider_summaries")
        return Candidates(requests, summaries, CANDIDATES_VERSION)

    def get_usages_counts_for_quota(self, project_id: str, user_id: str | None = None) -> dict[str, dict[str, int]]:
        """Return the cores and the memory in MiB, as ``ram``, of a ``project``, and of a ``user`` in it."""
        found = {"project": _counts(self._usages(project_id=project_id))}
        if user_id is not None:
            found["user"] = _counts(self._usages(project_id=project_id, user_id=user_id))
        return found

    def get_usages_counts_for_limits(self, project_id: str) -> dict[str, int]:
        """Return what a project holds in sum, by resource class."""
        return self._usages(project_id=project_id)

    # --- what they share ---

    def _usages(self, **query: str) -> dict[str, int]:
        usages: dict[str, int] = part(
            self._asking.read(f"/usages?{urlencode(query)}", version=_USAGES_VERSION), "usages"
        )
        return usages

    def _change_aggregates(self, name: str, new: Callable[[set[str]], set[str]]) -> None:
        uuid = self._providers.find_by_name(name)["uuid"]
        lost: Conflict | None = None
        for _ in self._asking.patience.turns():
            found = self._asking.read(f"/resource_providers/{uuid}/aggregates", version=AGGREGATES_VERSION)
            known, generation = set(part(found, "aggregates")), part(found, "resource_provider_generation")
            wanted = new(known)
            if wanted == known:
                return
            try:
                self._offers.set_aggregates(uuid, wanted, use_cache=False, generation=generation)
            except Conflict as error:
                lost = error
            else:
                return
        assert lost is not None, "patience tries at least once"
        raise lost

    def _unless_away(self, act: Callable[[], T]) -> T | None:
        """Return what an act gives; None, and told in the log once, where Placement does not answer."""
        try:
            found = act()
        except PlacementGone as error:
            if not self._is_away:
                log.event("placement_away", problem=str(error))
            self._is_away = True
            return None
        self._is_away = False
        return found


def _counts(usages: Mapping[str, int]) -> dict[str, int]:
    return {"cores": sum(usages.get(name, 0) for name in _CORES), "ram": usages.get("MEMORY_MB", 0)}
