"""A random fleet of hosts on trees of providers, and random changes of it, applied to a state without a store."""

from random import Random

from roost.engine.columns.apply import apply, recount_hosts
from roost.engine.columns.state import State
from roost.fleet.host_writes import facts_body
from roost.model import writes
from roost.model.host import HostFacts
from roost.model.writes import CLASS_BITS
from tests.support.fleets.forests import (
    AGGREGATES,
    CLASSES,
    inventory_row,
    put_provider,
    random_forest,
    random_stock,
    state_of,
    uuid_of,
)

NOW_S, DOWN_TIME_S, DEFAULT_ZONE = 1_000_000.0, 60.0, "nova"
_FEATURES = frozenset({"units", "use"})
_ZONES = ("", "east", "west", "west,east", "nova", "north,")
_STEPS = ("claim", "claim", "claim", "release", "facts", "membership", "zone", "inventory", "delete", "create")


class ChangingFleet:
    """A state whose position rises with each change."""

    def __init__(self, random: Random, *, providers: int = 8) -> None:
        self.random = random
        self.state: State = state_of(random_forest(random, providers, _FEATURES))
        self._next_id = 1000
        roots = [self.state.providers.ids[row] for row in range(providers) if self.state.providers.parent.view[row] < 0]
        for provider_id in roots:
            if random.random() < 0.8:
                self._put_host(provider_id, provider_id, version=0)
        recount_hosts(self.state)

    def change(self) -> None:
        """Make one random change."""
        getattr(self, f"_{self.random.choice(_STEPS)}")()
        recount_hosts(self.state)
        self.state.position += 1

    def make_quiet_change(self) -> None:
        """Make a change of a host without a new layout: of its use or of its facts, except of rack and node."""
        self.random.choice((self._claim, self._claim, self._release, self._report))()
        recount_hosts(self.state)
        self.state.position += 1

    @property
    def _hosts(self) -> list[int]:
        return [row for row in range(len(self.state.hosts)) if self.state.hosts.alive.view[row]]

    def _new_id(self) -> int:
        self._next_id += 1
        return self._next_id

    def _put_host(self, host_id: int, provider_id: int, *, version: int, **fixed: str) -> None:
        random = self.random
        facts = HostFacts(
            rack=fixed.get("rack", random.choice(("", "r1", "r2", "r10"))),
            is_disabled=random.random() < 0.3,
            is_forced_down=random.random() < 0.2,
            reported_at_s=random.choice((None, NOW_S, NOW_S - 10, NOW_S - 2 * DOWN_TIME_S)),
        )
        node = fixed.get("node", f"node-{host_id}-{random.choice('ab')}")
        apply(
            self.state,
            writes.PutHost(host_id, provider_id, f"host-{host_id}", node, facts_body("", facts), version),
        )

    def _claim(self) -> None:
        state, random = self.state, self.random
        rows = [row for row in range(len(state.providers)) if state.providers.alive.view[row]]
        offers = [
            (state.providers.ids[row], class_id)
            for row in rows
            for class_id, columns in state.classes.items()
            if row in columns.holders
        ]
        number = self._new_id()
        consumer = writes.ConsumerRow(id=number, uuid=uuid_of(f"c{number}").bytes, project_id="p", user_id="u")
        takes = [
            (number, provider_id << CLASS_BITS | class_id, random.randint(1, 3))
            for provider_id, class_id in random.sample(offers, min(len(offers), random.randint(0, 2)))
        ]
        host_ids = [state.hosts.ids[row] for row in self._hosts]
        instances = [writes.InstanceRow(number, random.choice(host_ids), 1)] if host_ids else []
        apply(state, writes.Claim([consumer], takes, instances))

    def _release(self) -> None:
        if self.state.holders_by_id:
            apply(self.state, writes.Release([self.random.choice(list(self.state.holders_by_id))], []))

    def _facts(self) -> None:
        if self._hosts:
            row = self.random.choice(self._hosts)
            hosts, providers = self.state.hosts, self.state.providers
            provider_id = providers.ids[hosts.provider_row.view[row]]
            self._put_host(hosts.ids[row], provider_id, version=hosts.versions[row] + 1)

    def _report(self) -> None:
        if self._hosts:
            row = self.random.choice(self._hosts)
            hosts, providers = self.state.hosts, self.state.providers
            provider_id = providers.ids[hosts.provider_row.view[row]]
            fixed = {"rack": hosts.facts[row].rack, "node": hosts.nodes[row]}
            self._put_host(hosts.ids[row], provider_id, version=hosts.versions[row] + 1, **fixed)

    def _expected(self, provider_id: int) -> int:
        return int(self.state.providers.generation.view[self.state.providers.row_of_id[provider_id]]) + 1000

    def _membership(self) -> None:
        provider_id = self.random.choice(list(self.state.providers.row_of_id))
        labels = [number for number in range(1, len(AGGREGATES) + 1) if self.random.random() < 0.4]
        apply(self.state, writes.PutMembership(provider_id, self._expected(provider_id), labels))

    def _zone(self) -> None:
        number = self.random.randint(1, len(AGGREGATES))
        uuid, version = uuid_of(AGGREGATES[number - 1]).bytes, self.state.aggregate_versions[number] + 1
        metadata = {"availability_zone": self.random.choice(_ZONES)}
        name = self.random.choice(("", "rack", AGGREGATES[number - 1]))
        apply(self.state, writes.PutAggregate(number, uuid, name, metadata, version))

    def _inventory(self) -> None:
        provider_id = self.random.choice(list(self.state.providers.row_of_id))
        stocks = [inventory_row(name, random_stock(self.random, _FEATURES)) for name in CLASSES]
        kept = [each for each in stocks if self.random.random() < 0.8]
        apply(self.state, writes.PutInventories(provider_id, self._expected(provider_id), kept))

    def _delete(self) -> None:
        state = self.state
        users = {
            inventory_id >> CLASS_BITS for holder in state.holders_by_id.values() for inventory_id, _ in holder.takes
        }
        placed = {holder.instance.host_id for holder in state.holders_by_id.values() if holder.instance is not None}
        for provider_id, row in list(state.providers.row_of_id.items()):
            if provider_id not in users and provider_id not in placed and row not in state.providers.children:
                apply(state, writes.DropProvider(provider_id))
                return

    def _create(self) -> None:
        number = self._new_id()
        put_provider(self.state, number, f"new-{number}", None)
        stocks = [inventory_row(name, random_stock(self.random, _FEATURES)) for name in CLASSES[:2]]
        apply(self.state, writes.PutInventories(number, 0, stocks))
        if self.random.random() < 0.8:
            self._put_host(number, number, version=0)
