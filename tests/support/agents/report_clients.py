"""A report client at a Placement of some kind, with time, chance and the network in the test's hands."""

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


class Asked(NamedTuple):
    """A question, and the status of its answer; None: it got none."""

    method: str
    path: str
    version: str
    body: object
    status: int | None


class Network:
    """A way to a Placement that writes down what is asked, and where answers get lost as tests want it."""

    def __init__(self, inner: Http) -> None:
        self.inner = inner
        self.asked: list[Asked] = []
        self._faults: list[tuple[str, str, Callable[[Callable[[], Answer]], Answer]]] = []

    def ask(self, method, path, body=None, *, version):
        """Ask, unless a fault stands in between."""
        sent = json.loads(json.dumps(body))
        act = lambda: self.inner.ask(method, path, body, version=version)  # noqa: E731  # a fault may call it, or not
        at = next((n for n, (of, part, _) in enumerate(self._faults) if of == method and part in path), None)
        status = None
        try:
            answer = act() if at is None else self._faults.pop(at)[2](act)
            status = answer.status
        finally:
            self.asked.append(Asked(method, path, version, sent, status))
        return answer

    def fault(self, method, part, act):
        """Let the next question of a method, with a part of a path, be answered by an act; it is given the question."""
        self._faults.append((method, part, act))

    def lose(self, method, part, *, is_done, times=1):
        """Let answers get lost: after the question was carried out, or before."""

        def lost(act):
            if is_done:
                act()
            raise PlacementGone("the line is cut")

        for _ in range(times):
            self.fault(method, part, lost)

    def first(self, method, part, act):
        """Let something happen right before a question arrives."""

        def after(ask):
            act()
            return ask()

        self.fault(method, part, after)

    def paths(self, method):
        """Give the paths of all questions of a method."""
        return [each.path for each in self.asked if each.method == method]


class World:
    """A Placement, with names of its own for this test."""

    def __init__(self, inner: Http, name: str = "") -> None:
        self.network = Network(inner)
        self.clock = FixedClock()
        self.pauses: list[float] = []
        self._name = name

    def client(self, **options) -> ReportClient:
        """Give a report client that knows nothing yet; pauses are the longest that may be."""
        return ReportClient(
            self.network, clock=self.clock, sleep=self.pauses.append, uniform=lambda _, high: high, **options
        )

    def u(self, name):
        """Give the uuid of a name."""
        return uuid_named(f"{self._name} {name}")

    def n(self, name):
        """Give the name of a provider."""
        return f"{self._name} {name}"

    def ask(self, method, path, body=None, *, version="1.36"):
        """Ask something as somebody else, who is answered; give the body."""
        answer = self.network.inner.ask(method, path, body, version=version)
        assert answer.status < 400, (method, path, answer)
        return answer.body

    def provider(self, name, parent=None, **totals):
        """Let somebody else create a provider; give its uuid."""
        parent_uuid = {} if parent is None else {"parent_provider_uuid": self.u(parent)}
        self.ask("POST", "/resource_providers", {"name": self.n(name), "uuid": self.u(name), **parent_uuid})
        if totals:
            self.offer(name, **totals)
        return self.u(name)

    def of(self, name, part):
        """Give what Placement has of a provider."""
        return self.ask("GET", f"/resource_providers/{self.u(name)}/{part}")[part]

    def generation(self, name):
        """Give the generation of a provider."""
        return self.ask("GET", f"/resource_providers/{self.u(name)}")["generation"]

    def totals(self, name):
        """Give the totals of a provider, by class."""
        return {each: record["total"] for each, record in self.of(name, "inventories").items()}

    def put(self, name, part, value):
        """Let somebody else replace inventories, traits or aggregates."""
        body = {part: value, "resource_provider_generation": self.generation(name)}
        self.ask("PUT", f"/resource_providers/{self.u(name)}/{part}", body)

    def offer(self, name, **totals):
        """Let somebody else set the inventories of a provider."""
        self.put(
            name, "inventories", {each: {**VCPU, "total": total, "max_unit": 1000} for each, total in totals.items()}
        )

    def children(self, name):
        """Give the names of all providers of a tree, without that of the test."""
        found = self.ask("GET", f"/resource_providers?in_tree={self.u(name)}")["resource_providers"]
        return sorted(each["name"].removeprefix(self.n("")) for each in found)

    def hold(self, consumer, generation=None, **amounts):
        """Let a consumer hold amounts: ``provider={class: amount}``."""
        self.ask("PUT", f"/allocations/{self.u(consumer)}", self.payload(generation, **amounts))

    def payload(self, generation=None, **amounts):
        """Give what is put to let a consumer hold amounts."""
        held = {self.u(name): {"resources": each} for name, each in amounts.items()}
        return {
            "allocations": held,
            "project_id": PROJECT,
            "user_id": USER,
            "consumer_generation": generation,
        }

    def held(self, consumer):
        """Give what a consumer holds, by the uuids of providers."""
        found = self.ask("GET", f"/allocations/{self.u(consumer)}")["allocations"]
        return {uuid: each["resources"] for uuid, each in found.items()}

    def amounts(self, **amounts):
        """Give amounts by the uuids of providers."""
        return {self.u(name): each for name, each in amounts.items()}

    def rooted(self, client=None, **options):
        """Give a client and the tree of ``host``, of 8 VCPU and 1024 MEMORY_MB, in Placement already."""
        client = client or self.client(**options)
        tree = client.get_provider_tree_and_ensure_root(self.u("host"), self.n("host"))
        tree.update_inventory(self.u("host"), {"VCPU": VCPU, "MEMORY_MB": MEMORY})
        client.update_from_provider_tree(tree)
        return client, client.get_provider_tree_and_ensure_root(self.u("host"))


@contextmanager
def world_at(address, name=""):
    """Give a world at a server."""
    with closing(ReportHttp(address, headers=SERVICE)) as http:
        yield World(http, name)
