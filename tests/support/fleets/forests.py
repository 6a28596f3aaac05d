"""Engine states from plain forests, and random forests and queries for Hypothesis."""

import uuid
from dataclasses import replace
from random import Random

import msgspec
import numpy as np
from hypothesis import strategies as st

from roost.engine.candidates.query import CompiledQuery, compile_query
from roost.engine.columns.apply import apply, recount_hosts
from roost.engine.columns.state import State
from roost.model import writes
from roost.model.request import CandidateQuery, ResourceGroup
from roost.model.writes import CLASS_BITS
from tests.reference.candidates import SHARES, Forest, Group, Node, Query, Result, Stock, anchors_of, root

CLASSES = ("VCPU", "MEMORY_MB", "DISK_GB", "CUSTOM_DEVICE")
TRAITS = ("CUSTOM_A", "CUSTOM_B", "CUSTOM_C", SHARES)
AGGREGATES = ("agg-1", "agg-2", "agg-3")
NOWHERE = "agg-nowhere"
_NO_FACTS = msgspec.Raw(msgspec.msgpack.encode({}))


def uuid_of(name: str) -> uuid.UUID:
    return uuid.uuid5(uuid.NAMESPACE_OID, name)


def put_names(state: State) -> None:
    """Write all classes, traits and aggregates into a state."""
    for number, name in enumerate(CLASSES, 1):
        apply(state, writes.PutSymbol(kind="resource_class", id=number, name=name))
    for number, name in enumerate(TRAITS, 1):
        apply(state, writes.PutSymbol(kind="trait", id=number, name=name))
    for number, name in enumerate(AGGREGATES, 1):
        apply(state, writes.PutAggregate(id=number, uuid=uuid_of(name).bytes, name=name, metadata={}, version=0))


def put_provider(state: State, provider_id: int, name: str, parent_id: int | None, *, version: int = 0) -> None:
    apply(state, new_provider(state, provider_id, name, parent_id=parent_id, version=version))


def new_provider(
    state: State, provider_id: int, name: str, *, parent_id: int | None, version: int = 0
) -> writes.PutProvider:
    root_id = provider_id
    if parent_id is not None:
        providers = state.providers
        root_id = providers.ids[providers.root.data[providers.row_of_id[parent_id]]]
    return writes.PutProvider(
        id=provider_id, uuid=uuid_of(name).bytes, name=name, parent_id=parent_id, root_id=root_id, version=version
    )


def inventory_row(resource_class: str, stock: Stock) -> writes.InventoryRow:
    return writes.InventoryRow(
        class_id=CLASSES.index(resource_class) + 1,
        total=stock.total,
        reserved=stock.reserved,
        min_unit=stock.min_unit,
        max_unit=stock.max_unit,
        step_size=stock.step_size,
        allocation_ratio=stock.ratio,
    )


def state_of(forest: Forest) -> State:
    """Return a state with the providers of a forest, in the order of the dictionary; parents come first."""
    state = State()
    put_names(state)
    ids = {name: number for number, name in enumerate(forest, 1)}
    for name, node in forest.items():
        put_provider(state, ids[name], name, None if node.parent is None else ids[node.parent])
        stocks = [inventory_row(*item) for item in node.stocks.items()]
        apply(state, writes.PutInventories(provider_id=ids[name], expected=0, inventories=stocks))
        traits = [TRAITS.index(trait) + 1 for trait in node.traits]
        apply(state, writes.PutTraits(provider_id=ids[name], expected=1, trait_ids=traits))
        aggregates = [AGGREGATES.index(aggregate) + 1 for aggregate in node.aggregates]
        apply(state, writes.PutMembership(provider_id=ids[name], expected=2, aggregate_ids=aggregates))
    takes = [
        (ids[name] << CLASS_BITS | CLASSES.index(resource_class) + 1, stock.used)
        for name, node in forest.items()
        for resource_class, stock in node.stocks.items()
        if stock.used
    ]
    for number, (inventory_id, amount) in enumerate(takes, 1):
        consumer = writes.ConsumerRow(id=number, uuid=uuid_of(f"consumer-{number}").bytes, project_id="p", user_id="u")
        apply(state, writes.Claim(consumers=[consumer], takes=[(number, inventory_id, amount)]))
    return state


def query_of(query: Query) -> CandidateQuery:
    """Convert a plain query to the product's type."""
    groups = tuple(
        ResourceGroup(
            suffix=group.suffix,
            resources=group.resources,
            required=group.required,
            forbidden=group.forbidden,
            member_of=tuple(frozenset(str(uuid_of(name)) for name in names) for names in group.member_of),
            forbidden_aggregates=frozenset(str(uuid_of(name)) for name in group.forbidden_aggregates),
            in_tree=None if group.in_tree is None else str(uuid_of(group.in_tree)),
        )
        for group in query.groups
    )
    return CandidateQuery(
        groups=groups,
        group_policy="isolate" if query.policy == "isolate" else "none",
        root_required=query.root_required,
        root_forbidden=query.root_forbidden,
        same_subtree=query.same_subtree,
    )


def compiled_of(state: State, query: Query) -> CompiledQuery:
    compiled = compile_query(state, query_of(query), is_one_provider_per_tree=query.one_provider_a_tree)
    assert isinstance(compiled, CompiledQuery)
    return compiled


def result_of(state: State, found) -> Result:
    """Convert a candidate to the names of the forest."""
    names = state.providers.names
    takes = frozenset((names[row], state.class_ids.name_of(class_id), amount) for row, class_id, amount in found.takes)
    assert len(takes) == len(found.takes)
    assert list(found.takes) == sorted(found.takes)
    return takes, frozenset((suffix, frozenset(names[row] for row in rows)) for suffix, rows in found.mappings)


# --- random forests and queries --------------------------------------------------------------------------------------
#
# Hypothesis draws the size, the features and a seed, so it can shrink to few providers and few features. The seed
# generates the rest, which makes thousands of examples affordable.

FEATURES = (
    "plain",
    "suffixed",
    "required",
    "any_of",
    "forbidden",
    "member_of",
    "forbidden_aggregates",
    "in_tree",
    "root",
    "isolate",
    "same_subtree",
    "resourceless",
    "units",
    "use",
    "one_provider_a_tree",
)


def random_stock(random: Random, features: frozenset[str]) -> Stock:
    total = random.choice((1, 2, 4, 8, 8))
    stock = Stock(total=total)
    if "units" in features and random.random() < 0.25:
        stock = Stock(
            total=total,
            reserved=random.randint(0, min(total, 2)),
            min_unit=random.choice((1, 1, 2)),
            max_unit=random.choice((1, 2, 3, 9)),
            step_size=random.choice((1, 1, 2)),
            ratio=random.choice((1.0, 0.5, 1.5, 2.0, 16.0)),
        )
    if "use" in features and random.random() < 0.25:
        stock = replace(stock, used=random.randint(0, total + 1))
    return stock


def random_forest(random: Random, providers: int, features: frozenset[str]) -> Forest:
    """Return several trees, up to three levels deep; some providers share their inventory."""
    depths: list[int] = []
    forest: Forest = {}
    nesting, sharing = random.choice((0.0, 0.6, 0.9)), random.choice((0.0, 0.2, 0.4))
    for number in range(providers):
        parents = [at for at in range(number) if depths[at] < 2]
        above = random.choice(parents) if parents and random.random() < nesting else -1
        depths.append(0 if above < 0 else depths[above] + 1)
        traits = {trait for trait in TRAITS[:3] if random.random() < 0.4}
        if random.random() < sharing:
            traits.add(SHARES)
        forest[f"p{number}"] = Node(
            parent=None if above < 0 else f"p{above}",
            stocks={name: random_stock(random, features) for name in CLASSES if random.random() < 0.8},
            traits=frozenset(traits),
            aggregates=frozenset(name for name in AGGREGATES if random.random() < 0.3),
        )
    return forest


def random_group(
    random: Random, forest: Forest, near: list[str], *, suffix: str, features: frozenset[str], empty: bool
) -> Group:
    """Return a group that one of the providers in ``near`` can probably serve."""
    witness = forest[random.choice(near)]
    offered = sorted({name for each in near for name in forest[each].stocks} if suffix == "" else witness.stocks)
    offered = offered or list(CLASSES)
    classes = random.sample(offered, min(len(offered), random.choice((1, 2, 3) if suffix == "" else (1, 1, 2))))
    places = sorted(witness.aggregates) or [*AGGREGATES, NOWHERE]
    own_traits = sorted(witness.traits) or list(TRAITS)

    def has(feature: str) -> bool:
        return feature in features and random.random() < 0.25

    required: list[frozenset[str]] = []
    if has("required") or empty:
        required.append(frozenset({random.choice(own_traits)}))
    if has("any_of"):
        required.append(frozenset(random.sample(TRAITS, 2)))
    member_of: list[frozenset[str]] = []
    if has("member_of"):
        member_of.append(frozenset({random.choice(places), random.choice((*AGGREGATES, NOWHERE))}))
        if random.random() < 0.3:
            member_of.append(frozenset({random.choice(places)}))
    if empty and member_of and random.random() < 0.5:
        required = []
    if empty and random.random() < 0.1:
        required, member_of = [], []
    return Group(
        suffix=suffix,
        resources={} if empty else {name: random.choice((1, 1, 1, 1, 2, 2, 3)) for name in classes},
        required=tuple(required),
        forbidden=frozenset({random.choice(TRAITS)}) if has("forbidden") else frozenset(),
        member_of=tuple(member_of),
        forbidden_aggregates=frozenset({random.choice((*AGGREGATES, NOWHERE))})
        if has("forbidden_aggregates")
        else frozenset(),
        in_tree=f"p{random.randint(0, len(forest))}" if has("in_tree") and random.random() < 0.5 else None,
    )


def random_query(random: Random, forest: Forest, features: frozenset[str]) -> Query:
    suffixes = ["_1", "_2", "_3", "_4"][: random.randint(1, 4)] if "suffixed" in features else []
    focus = random.choice([name for name, node in forest.items() if node.parent is None])
    near = [name for name in forest if root(forest, name) == focus or focus in anchors_of(forest, name)]
    drawn: list[Group] = []
    if not suffixes or "plain" in features:
        drawn.append(random_group(random, forest, near, suffix="", features=features, empty=False))
    for suffix in suffixes:
        if drawn and drawn[-1].suffix != "" and random.random() < 0.4:
            drawn.append(replace(drawn[-1], suffix=suffix))  # Equal groups are common in practice.
        else:
            empty = bool(drawn) and "resourceless" in features and random.random() < 0.4
            drawn.append(random_group(random, forest, near, suffix=suffix, features=features, empty=empty))
    subtrees = []
    if len(suffixes) > 1 and "same_subtree" in features:
        subtrees = [frozenset(random.sample(suffixes, random.randint(2, len(suffixes)))) for _ in range(2)]
        subtrees = subtrees[: random.randint(1, 2)]
    random.shuffle(drawn)
    root_traits = random.sample(TRAITS, 2)
    kind = random.randint(0, 2) if "root" in features else 3
    return Query(
        groups=tuple(drawn),
        policy="isolate" if "isolate" in features else "none",
        root_required=frozenset(root_traits[:1]) if kind in {0, 2} else frozenset(),
        root_forbidden=frozenset(root_traits[1:]) if kind in {1, 2} else frozenset(),
        same_subtree=tuple(subtrees),
        one_provider_a_tree="one_provider_a_tree" in features and random.random() < 0.5,
    )


@st.composite
def forests_with_queries(draw, most: int = 7) -> tuple[Forest, Query]:
    flags = draw(st.lists(st.booleans(), min_size=len(FEATURES), max_size=len(FEATURES)))
    features = frozenset(name for name, flag in zip(FEATURES, flags, strict=True) if flag)
    providers = draw(st.integers(1, most) | st.just(most))
    random = Random(draw(st.integers(0, 2**32)))
    forest = random_forest(random, providers, features)
    return forest, random_query(random, forest, features)


def put_hosts(state: State, random: Random) -> None:
    """Put a host on every root, or on most of them."""
    share_without_host = random.choice((0.0, 0.0, 0.3))
    roots = np.flatnonzero(state.providers.parent.view < 0).tolist()
    random.shuffle(roots)
    for row in roots:
        if random.random() >= share_without_host:
            number, name = state.providers.ids[row], state.providers.names[row]
            apply(state, writes.PutHost(number, number, name, name, _NO_FACTS, 0))
    recount_hosts(state)
