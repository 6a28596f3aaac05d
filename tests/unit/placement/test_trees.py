"""Trees that grow, move and shrink are the same in every process, whether it followed the changes or loaded them."""

from collections.abc import Collection
from itertools import islice
from random import Random

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from roost.engine.candidates.search import CompiledQuery, compile_query, search
from roost.engine.columns.state import State
from roost.model.host import HostFacts
from roost.model.names import SHARING_TRAIT, uuid_bytes
from roost.model.request import CandidateQuery, ResourceGroup
from roost.model.writes import (
    CLASS_BITS,
    Claim,
    ConsumerRow,
    DropProvider,
    InventoryRow,
    Item,
    PutAggregate,
    PutHost,
    PutInventories,
    PutMembership,
    PutProvider,
    PutTraits,
    Release,
)
from roost.placement.current import Current
from roost.placement.placement_service import Placement
from roost.store.memory_store import MemoryStore
from tests.support.fleets.worlds import chosen_hosts, digest, hosts, roost_with, small_request, uuid_named

VCPU, MEMORY = 1, 2
QUERIES = (
    CandidateQuery(groups=(ResourceGroup(suffix="", resources={"VCPU": 1, "MEMORY_MB": 1}),)),
    CandidateQuery(
        groups=(
            ResourceGroup(suffix="1", resources={"VCPU": 1}),
            ResourceGroup(suffix="2", resources={"VCPU": 2}),
        ),
        group_policy="isolate",
        same_subtree=(frozenset({"1", "2"}),),
    ),
)


class RandomChanges:
    """Changes providers at random, in a random process."""

    def __init__(self, processes: list[Current], random: Random) -> None:
        self._processes = processes
        self._random = random

    def act(self) -> None:
        """Make one change, which no commit may refuse."""
        current, random = self._random.choice(self._processes), self._random
        current.refresh()
        rows = sorted(current.state.providers.row_of_id.values())
        if not rows or random.random() < 0.3:
            self._create(current, rows)
            return
        acts = (self._move, self._move, self._stock, self._label, self._host, self._claim, self._release, self._drop)
        act = random.choice(acts)
        item = act(current, random.choice(rows), rows)
        if item is not None:
            assert current.commit([item]) == [None]

    def _create(self, current: Current, rows: list[int]) -> None:
        providers = current.state.providers
        above = self._random.choice(rows) if rows and self._random.random() < 0.5 else -1
        with current.reserve_in_order("provider", 1) as number:
            parent_id = None if above < 0 else providers.ids[above]
            root_id = number if above < 0 else providers.ids[providers.root.each[above]]
            name = f"p{number}"
            write = PutProvider(number, uuid_bytes(uuid_named(name)), name, parent_id, root_id, 0)
            inventories = PutInventories(number, 0, _offer(self._random))
            assert current.commit([Item((write, inventories))]) == [None]

    def _move(self, current: Current, row: int, rows: list[int]) -> Item | None:
        providers = current.state.providers
        below = providers.subtree(row)
        above = self._random.choice([-1, *(each for each in rows if each not in below)])
        root = row if above < 0 else providers.root.each[above]
        writes = []
        for each in below:
            parent = above if each == row else providers.parent.each[each]
            writes.append(
                PutProvider(
                    providers.ids[each],
                    uuid_bytes(providers.uuids[each]),
                    providers.names[each],
                    None if parent < 0 else providers.ids[parent],
                    providers.ids[root],
                    providers.versions[each] + 1,
                )
            )
        return Item(tuple(writes))

    def _stock(self, current: Current, row: int, rows: list[int]) -> Item:
        state, providers = current.state, current.state.providers
        inventories = _offer(
            self._random, used=[each for each in (VCPU, MEMORY) if state.inventory(each).used.each[row]]
        )
        return Item((PutInventories(providers.ids[row], providers.generation.each[row], inventories),))

    def _label(self, current: Current, row: int, rows: list[int]) -> Item:
        """Let a provider share with the trees of random aggregates, or of none."""
        providers, sharing = current.state.providers, current.state.trait_ids.id_of(SHARING_TRAIT)
        number, generation = providers.ids[row], providers.generation.each[row]
        aggregates = [each for each in (1, 2) if self._random.random() < 0.5]
        traits = [sharing] if self._random.random() < 0.4 else []
        return Item((PutTraits(number, generation, traits), PutMembership(number, generation + 1, aggregates)))

    def _host(self, current: Current, row: int, rows: list[int]) -> Item | None:
        providers, hosts = current.state.providers, current.state.hosts
        if providers.parent.each[row] >= 0 or row in hosts.row_of_root:
            return None
        facts, name = msgspec.Raw(msgspec.msgpack.encode(HostFacts())), providers.names[row]
        number = max(hosts.ids, default=0) + 1
        return Item((PutHost(number, providers.ids[row], name, name, facts, 0),))

    def _drop(self, current: Current, row: int, rows: list[int]) -> Item | None:
        providers = current.state.providers
        is_used = any(columns.used.each[row] for columns in current.state.classes.values())
        is_needed = is_used or len(providers.subtree(row)) > 1
        return None if is_needed else Item((DropProvider(providers.ids[row]),))

    def _claim(self, current: Current, row: int, rows: list[int]) -> Item | None:
        if not current.state.inventory(VCPU).can_take(row, 1):
            return None
        number = current.new_id("consumer")
        consumer = ConsumerRow(number, uuid_bytes(uuid_named(f"c{number}")), "", "")
        return Item((Claim([consumer], [(number, current.state.providers.ids[row] << CLASS_BITS | VCPU, 1)]),))

    def _release(self, current: Current, row: int, rows: list[int]) -> Item | None:
        holders = sorted(current.state.holders_by_id)
        if not holders:
            return None
        holder = current.state.holders_by_id[self._random.choice(holders)]
        return Item((Release([holder.id], [(holder.id, *take) for take in holder.takes]),))


def _offer(random: Random, *, used: Collection[int] = ()) -> list[InventoryRow]:
    classes = [each for each in (VCPU, MEMORY) if each in used or random.random() < 0.7]
    return [InventoryRow(each, random.randint(1, 3), 0, 1, 3, 1, 1.0) for each in classes]


def summary(state: State) -> dict[str, object]:
    """Return the tree of providers, and the candidates in their order."""
    providers = state.providers
    ids, alive = providers.ids, sorted(providers.row_of_id.values())
    candidates = []
    for query in QUERIES:
        compiled = compile_query(state, query)
        assert isinstance(compiled, CompiledQuery)
        candidates.append(
            [
                [(ids[row], class_id, amount) for row, class_id, amount in each.takes]
                for each in islice(search(state, compiled), 200)
            ]
        )
    living = {state.hosts.nodes[row] for row in range(len(state.hosts)) if state.hosts.alive.view[row]}
    whole = digest(state)
    for part in ("columns", "best"):
        whole[part] = {key: value for key, value in whole[part].items() if living.intersection(key)}
    return {
        "providers": [
            (
                ids[row],
                providers.names[row],
                providers.parent.each[row] >= 0 and ids[providers.parent.each[row]],
                ids[providers.root.each[row]],
            )
            for row in alive
        ],
        "children": {ids[row]: [ids[each] for each in below] for row, below in providers.children.items()},
        "trees": {ids[row]: [ids[each] for each in tree] for row, tree in providers.tree.items()},
        "candidates": candidates,
        "digest": whole,
    }


def test_host_moved_into_another_tree_offers_its_inventory_there():
    store = MemoryStore()
    roost = roost_with(hosts(2, VCPU=2), store=store)
    current, providers = roost._current, roost.state.providers
    move = PutProvider(providers.ids[0], uuid_bytes(providers.uuids[0]), "h0", providers.ids[1], providers.ids[1], 1)
    assert current.commit([Item((move,))]) == [None]
    decisions = roost.work([small_request(memory_mb=0)] * 5)
    assert [chosen_hosts(decision) for decision in decisions] == [["h1"]] * 4 + [[]]
    assert digest(roost.state) == digest(Current(store.peer()).state)
    move_back = PutProvider(providers.ids[0], move.uuid, "h0", None, providers.ids[0], 2)
    assert current.commit([Item((move_back,))]) == [None]
    assert digest(roost.state) == digest(Current(store.peer()).state)
    assert roost.state.hosts.column("vcpus_used").tolist() == [2, 2]


@settings(max_examples=60)
@given(st.integers(0, 2**32), st.integers(2, 50))
def test_trees_and_candidates_are_equal_in_every_process(seed, acts):
    store = MemoryStore()
    processes = [Current(store), Current(store.peer())]
    Placement(processes[0])
    aggregates = [PutAggregate(each, uuid_bytes(uuid_named(f"a{each}")), f"a{each}", {}, 0) for each in (1, 2)]
    processes[0].write(aggregates)
    changes = RandomChanges(processes, Random(seed))
    for _ in range(2):
        for _ in range(acts):
            changes.act()
        for each in processes:
            each.refresh()
        living, following, loaded = (summary(each.state) for each in (*processes, Current(store.peer())))
        assert living == following == loaded
        assert summary(processes[0].state.fork()) == loaded
