"""A report client of any Placement; the test controls time, randomness and the network."""

import json
from collections.abc import Callable
from contextlib import closing, contextmanager
from typing import NamedTuple

from roost.client.report_http import ReportHttp
from roost.compute.report.placement_session import Http
from roost.compute.report.report_client import ReportClient
from roost.errors import PlacementGone
from roost.model.placement.placement_api import Answer
from tests.support.fleets.worlds import FixedClock, uuid_named

PROJECT, USER = "the project", "the user"
VCPU = {"total": 8, "reserved": 0, "min_unit": 1, "max_unit": 8, "step_size": 1, "allocation_ratio": 1.0}
MEMORY = {**VCPU, "total": 1024, "max_unit": 1024}

SERVICE = {"x-auth-token": "admin", "x-roles": "admin,service"}


class SentRequest(NamedTuple):
    """A request, and the status of its reply; None without a reply."""

    method: str
    path: str
    version: str
    body: object
    status: int | None


class Network:
    """A connection to a Placement that records requests and loses replies as a test wants."""

    def __init__(self, inner: Http) -> None:
        self.inner = inner
        self.asked: list[SentRequest] = []
        self._faults: list[tuple[str, str, Callable[[Callable[[], Answer]], Answer]]] = []

    def ask(self, method, path, body=None, *, version):
        """Send a request, unless a fault applies."""
        sent = json.loads(json.dumps(body))
        act = lambda: self.inner.ask(method, path, body, version=version)  # noqa: E731  # a fault may call it, or not
        at = next((n for n, (of, part, _) in enumerate(self._faults) if of == method and part in path), None)
        status = None
        try:
            answer = act() if at is None else self._faults.pop(at)[2](act)
            status = answer.status
        finally:
            self.asked.append(SentRequest(method, path, version, sent, status))
        return answer

    def fault(self, method, part, act):
        """Answer the next request with this method and part of a path by calling ``act`` with the real request."""
        self._faults.append((method, part, act))

    def lose(self, method, part, *, is_done, times=1):
        """Lose replies, before or after the server carries out the request."""

        def lost(act):
            if is_done:
                act()
            raise PlacementGone("the line is cut")

        for _ in range(times):
            self.fault(method, part, lost)

    def first(self, method, part, act):
        """Call ``act`` right before a request arrives."""

        def after(ask):
            act()
            return ask()

        self.fault(method, part, after)

    def paths(self, method):
        """Return the paths of all requests with a method."""
        return [each.path for each in self.asked if each.method == method]


class World:
    """A Placement with names that only this test uses."""

    def __init__(self, inner: Http, name: str = "") -> None:
        self.network = Network(inner)
        self.clock = FixedClock()
        self.pauses: list[float] = []
        self._name = name

    def client(self, **options) -> ReportClient:
        """Return a report client with empty caches; its pauses always have the maximum length."""
        return ReportClient(
            self.network, clock=self.clock, sleep=self.pauses.append, uniform=lambda _, high: high, **options
        )

    def u(self, name):
        """Return the uuid for a name."""
        return uuid_named(f"{self._name} {name}")

    def n(self, name):
        """Return the full name of a provider."""
        return f"{self._name} {name}"

    def ask(self, method, path, body=None, *, version="1.36"):
        """Send a request as another client, which must succeed; return the body of the reply."""
        answer = self.network.inner.ask(method, path, body, version=version)
        assert answer.status < 400, (method, path, answer)
        return answer.body

    def provider(self, name, parent=None, **totals):
        """Create a provider as another client; return its uuid."""
        parent_uuid = {} if parent is None else {"parent_provider_uuid": self.u(parent)}
        self.ask("POST", "/resource_providers", {"name": self.n(name), "uuid": self.u(name), **parent_uuid})
        if totals:
            self.offer(name, **totals)
        return self.u(name)

    def of(self, name, part):
        """Return one part of a provider from Placement."""
        return self.ask("GET", f"/resource_providers/{self.u(name)}/{part}")[part]

    def generation(self, name):
        """Return the generation of a provider."""
        return self.ask("GET", f"/resource_providers/{self.u(name)}")["generation"]

    def totals(self, name):
        """Return the totals of a provider by class."""
        return {each: record["total"] for each, record in self.of(name, "inventories").items()}

    def put(self, name, part, value):
        """Replace inventories, traits or aggregates as another client."""
        body = {part: value, "resource_provider_generation": self.generation(name)}
        self.ask("PUT", f"/resource_providers/{self.u(name)}/{part}", body)

    def offer(self, name, **totals):
        """Replace the inventories of a provider as another client."""
        self.put(
            name, "inventories", {each: {**VCPU, "total": total, "max_unit": 1000} for each, total in totals.items()}
        )

    def children(self, name):
        """Return the names of all providers of a tree, without the prefix of the test."""
        found = self.ask("GET", f"/resource_providers?in_tree={self.u(name)}")["resource_providers"]
        return sorted(each["name"].removeprefix(self.n("")) for each in found)

    def hold(self, consumer, generation=None, **amounts):
        """Set the allocations of a consumer: ``provider={class: amount}``."""
        self.ask("PUT", f"/allocations/{self.u(consumer)}", self.payload(generation, **amounts))

    def payload(self, generation=None, **amounts):
        """Return the request body that sets the allocations of a consumer."""
        held = {self.u(name): {"resources": each} for name, each in amounts.items()}
        return {
            "allocations": held,
            "project_id": PROJECT,
            "user_id": USER,
            "consumer_generation": generation,
        }

    def held(self, consumer):
        """Return the allocations of a consumer by provider uuid."""
        found = self.ask("GET", f"/allocations/{self.u(consumer)}")["allocations"]
        return {uuid: each["resources"] for uuid, each in found.items()}

    def amounts(self, **amounts):
        """Return amounts by provider uuid."""
        return {self.u(name): each for name, each in amounts.items()}

    def rooted(self, client=None, **options):
        """Return a client, and the tree of ``host`` with 8 VCPU and 1024 MEMORY_MB, which Placement has already."""
        client = client or self.client(**options)
        tree = client.get_provider_tree_and_ensure_root(self.u("host"), self.n("host"))
        tree.update_inventory(self.u("host"), {"VCPU": VCPU, "MEMORY_MB": MEMORY})
        client.update_from_provider_tree(tree)
        return client, client.get_provider_tree_and_ensure_root(self.u("host"))


@contextmanager
def world_at(address, name=""):
    """Yield a world on a server."""
    with closing(ReportHttp(address, headers=SERVICE)) as http:
        yield World(http, name)
