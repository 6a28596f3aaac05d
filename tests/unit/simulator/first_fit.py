"""A small real scheduler: it takes the first host that fits and tracks capacity by provider."""

from collections.abc import Sequence
from itertools import count

import numpy as np

from roost.engine.columns.state import State
from roost.model.evidence.decision import Decision, Pick
from roost.model.fleet import Departure, Fleet
from roost.model.provider import ProviderSpec
from roost.model.request import Request, ResourceGroup

Claim = dict[str, dict[str, int]]


class FirstFit:
    """Implements ``Scheduling`` for flavors, resource groups, required traits and isolation."""

    def __init__(self):
        self.state = State()  # has only the limit of searches
        self.chunks: list[int] = []
        self.claims: dict[str, Claim] = {}
        self.free: Claim = {}
        self._serial = count()

    def install(self, fleet: Fleet) -> None:
        """Store the fleet, with all capacity free."""
        self.fleet = fleet
        self.free = {p.uuid: {c: i.capacity for c, i in p.inventories.items()} for p in fleet.providers}
        self.trees: dict[str, list[ProviderSpec]] = {}
        for provider in fleet.providers:
            self.trees.setdefault(provider.parent_uuid or provider.uuid, []).append(provider)

    def work(self, acts: Sequence[Request | Departure]) -> list[Decision | None]:
        """Perform the acts in order."""
        self.chunks.append(len(acts))
        return [self._leave(act) if isinstance(act, Departure) else self._decide(act) for act in acts]

    def utilisation(self) -> dict[str, tuple[int, int]]:
        """Return used amount and capacity of each class."""
        totals: dict[str, tuple[int, int]] = {}
        for provider in self.fleet.providers:
            for name, inventory in provider.inventories.items():
                used, capacity = totals.get(name, (0, 0))
                mine = inventory.capacity - self.free[provider.uuid][name]
                totals[name] = used + mine, capacity + inventory.capacity
        return totals

    def free_by_provider(self, resource_class: str) -> np.ndarray:
        """Return the free amount of each provider with the class."""
        uuids = [p.uuid for p in self.fleet.providers if resource_class in p.inventories]
        return np.array([self.free[uuid][resource_class] for uuid in uuids], dtype=np.int64)

    def _leave(self, departure: Departure) -> None:
        for instance in departure.instance_uuids:
            self._release(self.claims.pop(instance, {}))

    def _release(self, claim: Claim) -> None:
        for provider, amounts in claim.items():
            for name, amount in amounts.items():
                self.free[provider][name] += amount

    def _decide(self, request: Request) -> Decision:
        picks: list[Pick] = []
        for instance in request.instance_uuids:
            pick = self._pick(request, instance)
            if pick is None:
                for placed in picks:
                    self._release(self.claims.pop(placed.instance_uuid))
                reason = f"0 of {len(self.trees):,} hosts: {len(self.trees):,} lack room for {request.flavor.name}"
                return self._decision("refused", reason=reason)
            picks.append(pick)
        return self._decision("granted", picks=picks)

    def _decision(self, outcome, **facts) -> Decision:
        times = {"search_s": 0.001, "rank_s": 0.0005}
        return Decision(uuid=str(next(self._serial)), decided_at_s=0.0, outcome=outcome, request_id=1, **times, **facts)

    def _pick(self, request: Request, instance: str) -> Pick | None:
        for host in self.fleet.hosts:
            claim = self._fit(request, self.trees[host.provider_uuid])
            if claim is None:
                continue
            self.claims[instance] = claim
            return Pick(host.host, host.node, "", instance, claim)
        return None

    def _fit(self, request: Request, tree: list[ProviderSpec]) -> Claim | None:
        flavor = request.flavor
        own = {"VCPU": flavor.vcpus, "MEMORY_MB": flavor.memory_mb, "DISK_GB": flavor.root_gb}
        single = [ResourceGroup(resources={name: amount}) for name, amount in own.items() if amount]
        is_isolated = flavor.extra_specs.get("group_policy") == "isolate"
        claim: Claim = {}
        busy: set[str] = set()
        for group in (*single, *request.groups):
            for provider in tree:
                if (is_isolated and provider.uuid in busy) or not self._serves(provider, group):
                    continue
                for name, amount in group.resources.items():
                    self.free[provider.uuid][name] -= amount
                    sums = claim.setdefault(provider.uuid, {})
                    sums[name] = sums.get(name, 0) + amount
                if group.suffix:
                    busy.add(provider.uuid)
                break
            else:
                self._release(claim)
                return None
        return claim

    def _serves(self, provider: ProviderSpec, group: ResourceGroup) -> bool:
        free = self.free[provider.uuid]
        has_room = all(free.get(name, 0) >= amount for name, amount in group.resources.items())
        return has_room and all(provider.traits & any_of for any_of in group.required)
