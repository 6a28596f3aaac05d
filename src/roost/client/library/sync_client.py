"""The synchronous client."""

import ssl
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Self

import msgspec

from roost.api.v1.schemas.capacity import CapacityBody, CapacityQuery
from roost.api.v1.schemas.decisions import (
    BatchedAnswer,
    DecisionBody,
    DecisionsQuery,
    ExplanationBody,
    InstanceRequestBody,
    NextBody,
    NextStep,
    RefusalsQuery,
    ShownDecision,
    ShownWhy,
    WhyQuery,
)
from roost.api.v1.schemas.hosts import (
    DetailedHost,
    HostsQuery,
    ProvidersQuery,
    ProviderTree,
    ServicePatch,
    ShownHost,
    ShownService,
)
from roost.api.v1.schemas.instances import (
    AcceptedInstances,
    DeleteQuery,
    DetailedInstance,
    InstancesBody,
    InstancesQuery,
    OperationReference,
    ShownInstance,
)
from roost.api.v1.schemas.operations import ListedOperation, OperationQuery, OperationsQuery, ShownOperation
from roost.api.v1.schemas.plans import (
    ApplyBody,
    BalanceBody,
    ConsolidationBody,
    DrainBody,
    DrainPlan,
    HostsDrainBody,
    RehearsedPlan,
    RoomBody,
)
from roost.api.v1.schemas.status import FleetStatus
from roost.client.library.attempts import Retry, wait_for_end
from roost.client.library.calls import decision_calls, fleet_calls, instance_calls
from roost.client.library.calls.instance_calls import Act
from roost.client.library.endpoint import ClientOptions, Login
from roost.client.library.event_lines import Event
from roost.client.library.exchange import Call, T, path_of
from roost.client.library.page_cursor import PageT, Query, next_query
from roost.client.library.session import Session, new_key
from roost.client.library.socket_driver import SocketDriver
from roost.model.documents.request_document import FlavorEntry
from roost.model.evidence.capacity import By, Capacity
from roost.model.evidence.move_plans import BalancePlan, ConsolidationPlan, DrainMoves, RoomPlan
from roost.model.evidence.summary import Summary
from roost.model.flavor import Flavor


class Client:
    """A synchronous client of Roost's own API; see docs/how-to/place-from-a-program.md.

    Every write has an idempotency key: that of the caller, or a new one. So a retry has no second effect. Errors of all
    calls are those of ``roost.client.library.api_error``.

    Args:
        url: of the server, without ``/v1``.
        token: of the client; empty: the login has one.
        login: credentials that expire, such as ``KeystoneLogin``; None: none.
        options: limits of time and connections; None: the defaults.
        retry: limits of retries; None: the defaults.
        tls: certificates for https; None: those of this machine.

    Raises:
        BadRequest: the URL or the token is invalid.
    """

    def __init__(
        self,
        url: str,
        *,
        token: str = "",
        login: Login | None = None,
        options: ClientOptions | None = None,
        retry: Retry | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._driver = SocketDriver(Session(url, token=token, login=login, options=options, retry=retry, tls=tls))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._driver.close()

    # --- decisions

    def decide(self, body: DecisionBody, *, idempotency_key: str = "", timeout_s: float | None = None) -> ShownDecision:
        """Choose hosts for identical instances and claim their resources; with ``dry_run``, only choose.

        A refusal is a decision, too: its ``outcome`` is "refused", and ``reason`` states what the hosts lack.
        """
        return self._ask(decision_calls.decide(body, key=idempotency_key or new_key()), timeout_s=timeout_s)

    def decide_batch(
        self, bodies: Sequence[InstanceRequestBody], *, idempotency_keys: Sequence[str] = ()
    ) -> list[BatchedAnswer]:
        """Decide up to 256 independent requests in one call; return an answer for each, a decision or a problem.

        An answer with the status 503 is safe to repeat with its key.

        Args:
            idempotency_keys: one for each request; empty: new ones.
        """
        keys = idempotency_keys or [new_key() for _ in bodies]
        return (self._ask(decision_calls.decide_batch(bodies, keys=keys))).answers

    def decision(self, uuid: str) -> ShownDecision:
        """Return a stored decision."""
        return self._ask(decision_calls.show(uuid))

    def decisions(self, query: DecisionsQuery | None = None) -> Iterator[ShownDecision]:
        """Yield stored decisions, newest first."""
        for page in self._pages(decision_calls.list_page, query or DecisionsQuery()):
            yield from page.decisions

    def next_alternate(self, uuid: str, body: NextBody, *, idempotency_key: str = "") -> NextStep:
        """After a failed build: move the claim of an instance to the next alternate of its decision."""
        return self._ask(decision_calls.advance(uuid, body, key=idempotency_key or new_key()))

    def why(self, uuid: str, *, plans: bool = False) -> ShownWhy:
        """Explain a stored decision; with ``plans``, also look for moves that make room."""
        return self._ask(decision_calls.why(uuid, WhyQuery(plans=plans)))

    def explain(self, body: ExplanationBody) -> ShownWhy:
        """Explain what a request would get now; nothing is claimed."""
        return self._ask(decision_calls.explain(body))

    def refusals(self, *, since: float = 0.0) -> Summary:
        """Count refusals by reason and by request, from a time on, in seconds since the epoch."""
        return self._ask(decision_calls.count_refusals(RefusalsQuery(since=since)))

    # --- instances and operations

    def boot(self, body: InstancesBody, *, idempotency_key: str = "") -> AcceptedInstances:
        """Boot identical instances on hosts with agents."""
        return self._ask(instance_calls.boot(body, key=idempotency_key or new_key()))

    def instance(self, uuid: str) -> DetailedInstance:
        """Return an instance with its history."""
        return self._ask(instance_calls.show(uuid))

    def instances(self, query: InstancesQuery | None = None) -> Iterator[ShownInstance]:
        """Yield instances, and claims for instances of other systems; leave ``fields`` of the query empty."""
        for page in self._pages(instance_calls.list_page, query or InstancesQuery()):
            yield from page.instances

    def change_instance(
        self, uuid: str, act: Act, body: msgspec.Struct | None = None, *, idempotency_key: str = ""
    ) -> OperationReference:
        """Begin an operation on an instance, such as "stop" or "resize" with a ``ResizeBody``."""
        return self._ask(instance_calls.change(uuid, act, body, key=idempotency_key or new_key()))

    def delete_instance(
        self, uuid: str, *, force: bool = False, idempotency_key: str = ""
    ) -> OperationReference | None:
        """Delete an instance, or release the claim of one that another system runs; None: released at once."""
        query = DeleteQuery(force=force)
        return self._ask(instance_calls.delete(uuid, query, key=idempotency_key or new_key()))

    def operation(self, uuid: str) -> ShownOperation:
        """Return an operation and its progress."""
        return self._ask(instance_calls.show_operation(uuid, OperationQuery()))

    def operations(self, query: OperationsQuery | None = None) -> Iterator[ListedOperation]:
        """Yield operations, in order of their requests."""
        for page in self._pages(instance_calls.list_operations, query or OperationsQuery()):
            yield from page.operations

    def wait(
        self, uuid: str, *, limit_s: float = 600.0, on_progress: Callable[[ShownOperation], None] | None = None
    ) -> ShownOperation:
        """Wait until an operation ends; its ``outcome`` is then "done" or "failed".

        Args:
            limit_s: limit of the wait, in seconds.
            on_progress: receives each new state.

        Raises:
            OperationOpen: the limit is over.
        """
        session = self._driver.session
        return self._driver.run(
            wait_for_end(
                lambda wait_s: instance_calls.show_operation(uuid, OperationQuery(wait_s=wait_s)),
                session.conditions,
                timeout_s=session.timeout_s(None),
                limit_s=limit_s,
                on_progress=on_progress,
            )
        )

    def cancel(self, uuid: str) -> None:
        """Cancel a drain or an applied plan; moves in progress complete."""
        self._ask(instance_calls.cancel(uuid))

    def pause(self, uuid: str) -> None:
        """Pause a drain or an applied plan; moves in progress complete."""
        self._ask(instance_calls.pause(uuid))

    def resume(self, uuid: str) -> None:
        """Resume a paused drain or plan."""
        self._ask(instance_calls.resume(uuid))

    # --- hosts and capacity

    def hosts(self, query: HostsQuery | None = None) -> Iterator[ShownHost]:
        """Yield hosts, in order of registration; leave ``fields`` of the query empty."""
        for page in self._pages(fleet_calls.list_page, query or HostsQuery()):
            yield from page.hosts

    def host(self, name: str) -> DetailedHost:
        """Return a host, by the name of its node or service."""
        return self._ask(fleet_calls.show(name))

    def providers(self, host: str, *, holders: int = 1_000) -> ProviderTree:
        """Return the provider tree of a host, with at most this number of holders of its resources."""
        return self._ask(fleet_calls.show_providers(host, ProvidersQuery(holders=holders)))

    def change_service(self, host: str, body: ServicePatch) -> ShownService:
        """Disable, enable or force down a service."""
        return self._ask(fleet_calls.change_service(host, body))

    def drain(
        self, host: str, body: DrainBody | None = None, *, idempotency_key: str = ""
    ) -> DrainPlan | OperationReference:
        """Drain a host; with ``dry_run`` in the body, return the plan of its moves."""
        return self._ask(fleet_calls.drain(host, body or DrainBody(), key=idempotency_key or new_key()))

    def capacity(self, flavor: str, *, by: By | None = None, limit: int | None = None) -> Capacity:
        """Count how many more instances of a stored flavor fit."""
        return self._ask(decision_calls.count_capacity(CapacityQuery(flavor=flavor, by=by, limit=limit)))

    def capacity_of(self, body: CapacityBody) -> Capacity:
        """Count how many more instances of a request fit, also on a changed fleet."""
        return self._ask(decision_calls.count_capacity_of_request(body))

    def flavors(self) -> list[Flavor]:
        """Return the stored flavors, ordered by name."""
        return (self._ask(fleet_calls.list_flavors())).flavors

    def store_flavor(self, name: str, body: FlavorEntry) -> Flavor:
        """Create or replace a stored flavor."""
        return self._ask(fleet_calls.store_flavor(name, body))

    def status(self) -> FleetStatus:
        """Return the state of the fleet in numbers."""
        return self._ask(fleet_calls.show_status())

    # --- plans

    def plan_room(self, body: RoomBody) -> RoomPlan:
        """Plan the fewest moves to make room for a request."""
        return self._ask(decision_calls.plan_room(body))

    def plan_consolidation(self, body: ConsolidationBody | None = None) -> ConsolidationPlan:
        """Plan moves to empty as many hosts as possible."""
        return self._ask(decision_calls.plan_consolidation(body or ConsolidationBody()))

    def plan_drain(self, body: HostsDrainBody) -> DrainMoves:
        """Plan moves to empty given hosts."""
        return self._ask(decision_calls.plan_drain(body))

    def plan_balance(self, body: BalanceBody | None = None) -> BalancePlan:
        """Plan moves to make the used shares of hosts more equal."""
        return self._ask(decision_calls.plan_balance(body or BalanceBody()))

    def apply_plan(self, body: ApplyBody, *, idempotency_key: str = "") -> RehearsedPlan | OperationReference:
        """Make the moves of a plan; with ``dry_run`` in the body, rehearse them."""
        return self._ask(decision_calls.apply_plan(body, key=idempotency_key or new_key()))

    # --- events

    def events(self, *, after: str = "") -> Iterator[Event]:
        """Yield notifications without end, across lost connections.

        Args:
            after: id of the newest known event; empty: begin with the next one.
        """
        return self._driver.events(path_of("events"), after=after)

    def _ask(self, call: Call[T], *, timeout_s: float | None = None) -> T:
        return self._driver.ask(call, timeout_s=timeout_s)

    def _pages(self, list_page: Callable[[Query], Call[PageT]], query: Query) -> Iterator[PageT]:
        following: Query | None = query
        while following is not None:
            page = self._ask(list_page(following))
            yield page
            following = next_query(following, page)
