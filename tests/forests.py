"""States of the engine built from plain forests, and forests and queries as Hypothesis draws them."""

import uuid

from hypothesis import strategies as st

from roost.engine.apply import apply
from roost.engine.query import Compiled, compile_query
from roost.engine.state import State
from roost.model import journal
from roost.model.journal import CLASS_BITS
from roost.model.request import CandidateQuery, ResourceGroup
from tests.reference.candidates import SHARES, Forest, Group, Node, Query, Result, Stock

CLASSES = ("VCPU", "MEMORY_MB", "DISK_GB", "CUSTOM_DEVICE")
TRAITS = ("CUSTOM_A", "CUSTOM_B", "CUSTOM_C", SHARES)
AGGREGATES = ("agg-1", "agg-2", "agg-3")
NOWHERE = "agg-nowhere"


def uuid_of(name: str) -> uuid.UUID:
    return uuid.uuid5(uuid.NAMESPACE_OID, name)


def symbols(state: State) -> None:
    """Let a state know all classes, traits and aggregates."""
    for number, name in enumerate(CLASSES, 1):
        apply(state, journal.PutSymbol(kind="resource_class", id=number, name=name))
    for number, name in enumerate(TRAITS, 1):
        apply(state, journal.PutSymbol(kind="trait", id=number, name=name))
    for number, name in enumerate(AGGREGATES, 1):
        apply(
            state, journal.PutAggregate(id=number, uuid=uuid_of(name).bytes, name=name, metadata={}, version=0)
        )


def put_provider(state: State, provider_id: int, name: str, parent_id: int | None, *, version: int = 0) -> None:
    root_id = provider_id
    if parent_id is not None:
        providers = state.providers
        root_id = providers.ids[providers.root.data[providers.row_of_id[parent_id]]]
    apply(
        state,
        journal.PutProvider(
            id=provider_id, uuid=uuid_of(name).bytes, name=name, parent_id=parent_id, root_id=root_id, version=version
        ),
    )


def inventory_row(resource_class: str, stock: Stock) -> journal.InventoryRow:
    return journal.InventoryRow(
        class_id=CLASSES.index(resource_class) + 1, total=stock.total, reserved=stock.reserved,
        min_unit=stock.min_unit, max_unit=stock.max_unit, step_size=stock.step_size, allocation_ratio=stock.ratio,
    )  # fmt: skip


def state_of(forest: Forest) -> State:
    """Write a forest into a new state, in the order of the dictionary; parents come first."""
    state = State()
    symbols(state)
    ids = {name: number for number, name in enumerate(forest, 1)}
    for name, node in forest.items():
        put_provider(state, ids[name], name, None if node.parent is None else ids[node.parent])
        stocks = [inventory_row(*item) for item in node.stocks.items()]
        apply(state, journal.PutInventories(provider_id=ids[name], expected=0, inventories=stocks))
        traits = [TRAITS.index(trait) + 1 for trait in node.traits]
        apply(state, journal.PutTraits(provider_id=ids[name], expected=1, trait_ids=traits))
        aggregates = [AGGREGATES.index(aggregate) + 1 for aggregate in node.aggregates]
        apply(state, journal.PutMembership(provider_id=ids[name], expected=2, aggregate_ids=aggregates))
    takes = [
        (ids[name] << CLASS_BITS | CLASSES.index(resource_class) + 1, stock.used)
        for name, node in forest.items()
        for resource_class, stock in node.stocks.items()
        if stock.used
    ]
    for number, (inventory_id, amount) in enumerate(takes, 1):
        consumer = journal.ConsumerRow(id=number, uuid=uuid_of(f"consumer-{number}").bytes, project_id="", user_id="")
        apply(state, journal.Claim(consumers=[consumer], takes=[(number, inventory_id, amount)]))
    return state


def query_of(query: Query) -> CandidateQuery:
    """Say a plain query in the engine's nouns."""
    groups = tuple(
        ResourceGroup(
            suffix=group.suffix, resources=group.resources, required=group.required, forbidden=group.forbidden,
            member_of=tuple(frozenset(str(uuid_of(name)) for name in names) for names in group.member_of),
            forbidden_aggregates=frozenset(str(uuid_of(name)) for name in group.forbidden_aggregates),
            in_tree=None if group.in_tree is None else str(uuid_of(group.in_tree)),
        )
        for group in query.groups
    )  # fmt: skip
    return CandidateQuery(
        groups=groups, group_policy="isolate" if query.policy == "isolate" else "none",
        root_required=query.root_required, root_forbidden=query.root_forbidden, same_subtree=query.same_subtree,
    )  # fmt: skip


def compiled_of(state: State, query: Query) -> Compiled:
    compiled = compile_query(state, query_of(query), is_one_provider_a_tree=query.one_provider_a_tree)
    assert isinstance(compiled, Compiled)
    return compiled


def result_of(state: State, found) -> Result:
    """Say a candidate in the names of the forest."""
    names = state.providers.names
    takes = frozenset((names[row], state.class_ids.name_of(class_id), amount) for row, class_id, amount in found.takes)
    assert len(takes) == len(found.takes)
    assert list(found.takes) == sorted(found.takes)
    return takes, frozenset((suffix, frozenset(names[row] for row in rows)) for suffix, rows in found.mappings)


# --- what Hypothesis draws ---------------------------------------------------------------------------------------------

amounts = st.sampled_from((1, 1, 1, 2, 2, 3))
few_traits = st.sets(st.sampled_from(TRAITS[:3]), max_size=2).map(frozenset)


@st.composite
def stocks(draw) -> Stock:
    if draw(st.booleans()):  # plain devices are what most of the world is made of
        total = draw(st.integers(1, 4))
        return Stock(total=total, used=draw(st.integers(0, total)) if draw(st.booleans()) else 0)
    total = draw(st.integers(1, 8))
    return Stock(
        total=total, reserved=draw(st.integers(0, min(total, 2))), min_unit=draw(st.sampled_from((1, 1, 2))),
        max_unit=draw(st.sampled_from((1, 2, 3, 8))), step_size=draw(st.sampled_from((1, 1, 2))),
        ratio=draw(st.sampled_from((1.0, 0.5, 1.5, 2.0))), used=draw(st.integers(0, 4)),
    )  # fmt: skip


@st.composite
def forests(draw, most: int = 7, shares: bool = True) -> Forest:
    """Several trees, up to three levels deep; some providers share what they have."""
    depths: list[int] = []
    forest: Forest = {}
    for number in range(draw(st.integers(1, most))):
        above = draw(st.sampled_from([-1, *(at for at in range(number) if depths[at] < 2)]))
        depths.append(0 if above < 0 else depths[above] + 1)
        traits = draw(few_traits)
        if shares and draw(st.integers(0, 4)) == 0:
            traits |= {SHARES}
        forest[f"p{number}"] = Node(
            parent=None if above < 0 else f"p{above}",
            stocks=draw(st.dictionaries(st.sampled_from(CLASSES), stocks(), max_size=3)),
            traits=traits,
            aggregates=draw(st.sets(st.sampled_from(AGGREGATES), max_size=2).map(frozenset)),
        )
    return forest


@st.composite
def groups(draw, suffix: str, providers: int, is_resourceless: bool = False) -> Group:
    resources: dict[str, int] = {}
    if not is_resourceless:
        most = 3 if suffix == "" else 2
        resources = draw(st.dictionaries(st.sampled_from(CLASSES), amounts, min_size=1, max_size=most))
    rarely = st.integers(0, 5).map(lambda number: number == 0)
    some = st.sets(st.sampled_from(TRAITS), min_size=1, max_size=2).map(frozenset)
    places = st.sets(st.sampled_from((*AGGREGATES, NOWHERE)), min_size=1, max_size=2).map(frozenset)
    return Group(
        suffix=suffix,
        resources=resources,
        required=tuple(draw(st.lists(some, min_size=1, max_size=2))) if is_resourceless or draw(rarely) else (),
        forbidden=draw(few_traits) if draw(rarely) else frozenset(),
        member_of=tuple(draw(st.lists(places, min_size=1, max_size=2))) if draw(rarely) else (),
        forbidden_aggregates=draw(places) if draw(rarely) else frozenset(),
        in_tree=f"p{draw(st.integers(0, providers))}" if draw(rarely) else None,
    )


@st.composite
def queries(draw, providers: int, most: int = 3) -> Query:
    """Questions with all features; ``providers`` is how many the forest has."""
    suffixes = ["_1", "_2", "_3", "_4"][: draw(st.integers(0, most))]
    drawn = [draw(groups("", providers))] if not suffixes or draw(st.booleans()) else []
    for number, suffix in enumerate(suffixes):
        if number and drawn[-1].suffix != "" and draw(st.booleans()):
            twin = drawn[-1]  # equal groups are the usual case
            drawn.append(
                Group(suffix, twin.resources, twin.required, twin.forbidden, twin.member_of,
                      twin.forbidden_aggregates, twin.in_tree)
            )  # fmt: skip
        else:
            is_resourceless = bool(drawn) and draw(st.integers(0, 4)) == 0
            drawn.append(draw(groups(suffix, providers, is_resourceless)))
    subtrees = []
    if len(suffixes) > 1 and draw(st.booleans()):
        sets = st.sets(st.sampled_from(suffixes), min_size=1).map(frozenset)
        subtrees = draw(st.lists(sets, min_size=1, max_size=2))
    rarely = st.integers(0, 5).map(lambda number: number == 0)
    order = draw(st.permutations(drawn)) if len(drawn) > 1 else drawn
    return Query(
        groups=tuple(order),
        policy=draw(st.sampled_from(("none", "isolate"))),
        root_required=draw(few_traits) if draw(rarely) else frozenset(),
        root_forbidden=draw(few_traits) if draw(rarely) else frozenset(),
        same_subtree=tuple(subtrees),
        one_provider_a_tree=draw(st.integers(0, 7)) == 0,
    )


@st.composite
def questions(draw, most: int = 7, shares: bool = True) -> tuple[Forest, Query]:
    forest = draw(forests(most, shares))
    return forest, draw(queries(len(forest)))
