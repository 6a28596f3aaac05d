"""Random write histories of an engine state, and its invariants, which are checked by a slow recomputation."""

from random import Random

import msgspec
import numpy as np

from roost.engine.columns.apply import apply, recount_hosts
from roost.engine.columns.state import State
from roost.engine.columns.types import NO_INVENTORY
from roost.model import writes as model_writes
from roost.model.host import HostFacts
from roost.model.writes import CLASS_BITS
from tests.support.fleets.forests import AGGREGATES, CLASSES, TRAITS, new_provider, put_names, random_stock, uuid_of
from tests.support.fleets.forests import inventory_row as row_of_stock

EVERYTHING = frozenset({"units"})


def new_state() -> State:
    """Return a state with all names, and one server group of each policy with places."""
    state = State()
    put_names(state)
    for number, policy in enumerate(("anti-affinity", "affinity"), 1):
        apply(state, model_writes.PutGroup(number, uuid_of(policy).bytes, policy, policy, 1))
    return state


class History:
    """Generates writes that a store could commit next."""

    def __init__(self, state: State, random: Random, *, first: int = 2) -> None:
        self.state = state
        self.random = random
        self._next = first - 1

    def run(self, writes: int) -> None:
        """Draw and apply writes; ``writes`` is the number of draws."""
        for _ in range(writes):
            write = self.draw()
            if write is not None:
                self.apply(write)

    def apply(self, write: model_writes.Write) -> None:
        """Apply a drawn write."""
        apply(self.state, write)

    def number(self) -> int:
        """Return an unused id."""
        self._next += 1
        return self._next

    def draw(self) -> model_writes.Write | None:
        """Return a write of a random kind, or None if that kind has no valid write."""
        kinds = (
            self.create,
            self.create,
            self.rename,
            self.move,
            self.stock,
            self.stock,
            self.traits,
            self.aggregates,
            self.host,
            self.claim,
            self.claim,
            self.claim,
            self.release,
            self.drop,
            self.group,
            self.drop_group,
        )
        return self.random.choice(kinds)()

    def _row(self) -> int | None:
        rows = list(self.state.providers.row_of_id.values())
        return self.random.choice(rows) if rows else None

    def create(self) -> model_writes.Write:
        """Create a provider, somewhere in the forest."""
        above, number = self._row(), self.number()
        parent = None if above is None or self.random.random() < 0.4 else self.state.providers.ids[above]
        return new_provider(self.state, number, f"p{number}", parent_id=parent)

    def _put(self, row: int, parent_row: int, name: str) -> model_writes.Write:
        providers = self.state.providers
        parent_id = None if parent_row < 0 else providers.ids[parent_row]
        root_row = row if parent_row < 0 else int(providers.root.view[parent_row])
        return model_writes.PutProvider(
            id=providers.ids[row],
            uuid=uuid_of(f"p{providers.ids[row]}").bytes,
            name=name,
            parent_id=parent_id,
            root_id=providers.ids[root_row],
            version=providers.versions[row] + 1,
        )

    def rename(self) -> model_writes.Write | None:
        """Rename a provider."""
        row = self._row()
        return None if row is None else self._put(row, int(self.state.providers.parent.view[row]), f"n{self.number()}")

    def move(self) -> model_writes.Write | None:
        """Move a provider and its subtree to another parent; hosts stay."""
        row, above, providers = self._row(), self._row(), self.state.providers
        if row is None or above is None or row in self.state.hosts.row_of_root:
            return None
        if above in providers.subtree(row):
            above = -1
        return self._put(row, above, providers.names[row])

    def stock(self) -> model_writes.Write | None:
        """Replace the inventories of a provider."""
        row, random = self._row(), self.random
        if row is None:
            return None
        used = {  # a class in use is never dropped
            self.state.class_ids.name_of(class_id)
            for class_id, each in self.state.classes.items()
            if each.used.view[row]
        }
        names = [name for name in CLASSES if name in used or random.random() < 0.6]
        stocks = [row_of_stock(name, random_stock(random, EVERYTHING)) for name in names]
        return model_writes.PutInventories(self.state.providers.ids[row], self._generation(row), stocks)

    def _generation(self, row: int) -> int:
        return int(self.state.providers.generation.view[row])

    def traits(self) -> model_writes.Write | None:
        """Replace the traits of a provider."""
        row = self._row()
        if row is None:
            return None
        trait_ids = [number for number in range(1, len(TRAITS) + 1) if self.random.random() < 0.4]
        return model_writes.PutTraits(self.state.providers.ids[row], self._generation(row), trait_ids)

    def aggregates(self) -> model_writes.Write | None:
        """Replace the aggregates of a provider."""
        row = self._row()
        if row is None:
            return None
        aggregate_ids = [number for number in range(1, len(AGGREGATES) + 1) if self.random.random() < 0.4]
        return model_writes.PutMembership(self.state.providers.ids[row], self._generation(row), aggregate_ids)

    def host(self) -> model_writes.Write | None:
        """Register a root as a host."""
        row = self._row()
        if row is None or self.state.providers.parent.view[row] >= 0 or row in self.state.hosts.row_of_root:
            return None
        number, facts = self.number(), msgspec.Raw(msgspec.msgpack.encode(self.facts()))
        return model_writes.PutHost(number, self.state.providers.ids[row], f"host-{number}", f"node-{number}", facts, 0)

    def facts(self) -> HostFacts:
        """Return the facts of a new host."""
        return HostFacts(num_io_ops=3)

    def claim(self) -> model_writes.Write | None:
        """Claim amounts for one or two consumers, some of them instances in groups."""
        state, random = self.state, self.random
        cells = [(row, class_id) for class_id, each in state.classes.items() for row in sorted(each.holders)]
        if not cells:
            return None
        consumers, takes, instances, places = [], [], [], []
        for number in [self.number() for _ in range(random.randint(1, 2))]:
            uuid = uuid_of(f"consumer-{number}").bytes
            consumers.append(model_writes.ConsumerRow(id=number, uuid=uuid, project_id="p", user_id="u"))
            for row, class_id in random.sample(cells, min(len(cells), random.randint(1, 3))):
                takes.append((number, state.providers.ids[row] << CLASS_BITS | class_id, random.randint(1, 3)))
            hosts = [row for row in range(len(state.hosts)) if state.hosts.alive.view[row]]
            if hosts and random.random() < 0.5:
                host_id = state.hosts.ids[random.choice(hosts)]
                groups = state.groups.values()
                rules = [(each.id, *((0, 1) if each.policy == "affinity" else (host_id, 0))) for each in groups]
                place = random.choice([None, *rules])
                group_id, scope, holder = place or (0, 0, 0)
                instances.append(
                    model_writes.InstanceRow(
                        number, host_id, flavor_id=1, group_id=group_id, scope=scope, holder=holder
                    )
                )
                if place is not None:
                    places.append(model_writes.Place(group_id, scope, holder, members=1, limit=9))
        return model_writes.Claim(consumers, takes, instances, places)

    def taking(self, name: str, resource_class: str, amount: int) -> model_writes.Write:
        """Return a claim of one amount for a new consumer."""
        providers, number = self.state.providers, self.number()
        provider_id, class_id = providers.ids[providers.row_of_name[name]], CLASSES.index(resource_class) + 1
        uuid = uuid_of(f"consumer-{number}").bytes
        consumer = model_writes.ConsumerRow(id=number, uuid=uuid, project_id="p", user_id="u")
        return model_writes.Claim([consumer], [(number, provider_id << CLASS_BITS | class_id, amount)])

    def release(self) -> model_writes.Write | None:
        """Release a consumer."""
        holders = list(self.state.holders_by_id.values())
        if not holders:
            return None
        holder = self.random.choice(holders)
        return model_writes.Release([holder.id], [(holder.id, *take) for take in holder.takes])

    def drop(self) -> model_writes.Write | None:
        """Delete a leaf provider that is not in use."""
        row = self._row()
        if row is None or len(self.state.providers.subtree(row)) > 1:
            return None
        if any(each.used.view[row] for each in self.state.classes.values()):
            return None
        host_row = self.state.hosts.row_of_root.get(row)
        if host_row is not None and self.state.hosts.columns["num_instances"].view[host_row]:
            return None
        return model_writes.DropProvider(self.state.providers.ids[row])

    def group(self) -> model_writes.Write | None:
        """Create a server group, if there are few."""
        if len(self.state.groups) > 2:
            return None
        number, policy = 10_000 + self.number(), self.random.choice(("affinity", "anti-affinity"))
        return model_writes.PutGroup(number, uuid_of(f"group-{number}").bytes, f"g{number}", policy, 1)

    def drop_group(self) -> model_writes.Write | None:
        """Delete a server group without members."""
        empty = [group.id for group in self.state.groups.values() if not group.members]
        return model_writes.DropGroup(self.random.choice(empty)) if empty else None


def check_state(state: State) -> None:
    """Recompute all derived data of a state from its sources, and compare."""
    recount_hosts(state)
    _check_trees(state)
    _check_amounts(state)
    _check_labels(state)
    _check_hosts(state)
    _check_groups(state)


def _check_trees(state: State) -> None:
    providers = state.providers
    alive = set(np.flatnonzero(providers.alive.view).tolist())
    assert alive == set(providers.row_of_id.values()) == set(providers.row_of_uuid.values())
    assert {providers.names[row]: row for row in alive} == providers.row_of_name
    trees: dict[int, set[int]] = {}
    for row in alive:
        root = row
        while providers.parent.view[root] >= 0:
            root = int(providers.parent.view[root])
        assert providers.root.view[row] == root
        trees.setdefault(root, set()).add(row)
    for root, rows in trees.items():
        assert providers.rows_of_tree(root) == sorted(rows)
    assert set(providers.tree) == {root for root, rows in trees.items() if len(rows) > 1}
    parents = {int(providers.parent.view[row]) for row in alive} - {-1}
    children = {above: [row for row in sorted(alive) if providers.parent.view[row] == above] for above in parents}
    assert providers.children == children


def _check_amounts(state: State) -> None:
    used: dict[tuple[int, int], int] = {}
    for holder in state.holders_by_id.values():
        assert state.holders[holder.uuid] is holder
        for inventory_id, amount in holder.takes:
            key = (state.providers.row_of_id[inventory_id >> CLASS_BITS], inventory_id & (1 << CLASS_BITS) - 1)
            used[key] = used.get(key, 0) + amount
    for class_id, columns in state.classes.items():
        for row in range(len(state.providers)):
            assert columns.used.view[row] == used.get((row, class_id), 0)
            total, ratio = int(columns.total.view[row]), float(columns.ratio.view[row])
            if total == 0:
                assert row not in columns.holders
                assert columns.free.view[row] == NO_INVENTORY
                continue
            assert row in columns.holders
            capacity = int((total - int(columns.reserved.view[row])) * ratio)
            assert columns.free.view[row] == capacity - used.get((row, class_id), 0)


def _check_labels(state: State) -> None:
    for labels in (state.traits, state.membership):
        for label in range(1, 5):
            assert labels.mask_of(label).tolist() == [
                label in labels.labels_of(row) for row in range(len(state.providers))
            ]


def _check_hosts(state: State) -> None:
    hosts, providers = state.hosts, state.providers
    for host_row in range(len(hosts)):
        root = int(hosts.provider_row.view[host_row])
        assert hosts.alive.view[host_row] == providers.alive.view[root] == (hosts.row_of_root.get(root) == host_row)
        if not hosts.alive.view[host_row]:
            continue
        rows = providers.rows_of_tree(root)
        for number, name in enumerate(CLASSES, 1):
            free = [int(state.inventory(number).free.view[row]) for row in rows]
            assert state.best_free(number)[host_row] == max(free)
            used = sum(int(state.inventory(number).used.view[row]) for row in rows)
            stocks = state.inventory(number)
            total = sum(int(stocks.total.view[row] - stocks.reserved.view[row]) for row in rows)
            if name == "MEMORY_MB":
                assert hosts.column("used_ram_mb")[host_row] == used
                assert hosts.column("free_ram_mb")[host_row] == total - used
            elif name == "DISK_GB":
                assert hosts.column("free_disk_mb")[host_row] == 1024 * (total - used)
            elif name == "VCPU":
                assert hosts.column("vcpus_used")[host_row] == used


def _check_groups(state: State) -> None:
    assert {group.uuid: group for group in state.groups.values()} == state.groups_by_uuid
    instances = [holder.instance for holder in state.holders_by_id.values() if holder.instance is not None]
    for host_row, host_id in enumerate(state.hosts.ids):
        here = [instance for instance in instances if instance.host_id == host_id]
        assert state.hosts.column("num_instances")[host_row] == len(here)
        for group in state.groups.values():
            assert group.members.get(host_row, 0) == sum(instance.group_id == group.id for instance in here)
    for group in state.groups.values():
        places: dict[int, int] = {}
        for instance in instances:
            if instance.group_id == group.id:
                places[instance.scope] = places.get(instance.scope, 0) + 1
        assert {scope: members for scope, (_, members) in group.places.items()} == places


def state_content(state: State) -> dict[str, object]:
    """Return the content of a state as comparable values, without its change counters."""
    recount_hosts(state)
    providers, hosts = state.providers, state.hosts
    generation = providers.generation.view.tolist()
    best = {class_id: state.best_free(class_id).tolist() for class_id in range(1, len(CLASSES) + 1)}
    return {
        "providers": (providers.ids, providers.names, providers.parent.view.tolist(), generation),
        "trees": (dict(providers.row_of_id), dict(providers.row_of_name)),
        "rows": {root: list(rows) for root, rows in providers.tree.items()},
        "amounts": {
            class_id: (columns.free.view.tolist(), columns.used.view.tolist(), columns.total.view.tolist())
            for class_id, columns in state.classes.items()
        },
        "labels": (list(state.traits.of_row), list(state.membership.of_row)),
        "hosts": (list(hosts.names), {name: hosts.column(name).tolist() for name in hosts.columns}),
        "groups": {group.id: (dict(group.members), dict(group.places)) for group in state.groups.values()},
        "holders": sorted(state.holders_by_id),
        "best": best,
    }
