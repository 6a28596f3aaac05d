"""A slow, obvious candidate search with the semantics of the Placement API, on plain dictionaries.

It builds every combination and then checks it. It shares no code with the engine.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product

SHARES = "MISC_SHARES_VIA_AGGREGATE"


@dataclass(frozen=True)
class Stock:
    """The inventory of one class on a provider, and the used amount."""

    total: int
    reserved: int = 0
    min_unit: int = 1
    max_unit: int = 2_147_483_647
    step_size: int = 1
    ratio: float = 1.0
    used: int = 0

    @property
    def capacity(self) -> int:
        """The upper limit of all allocations together."""
        return int((self.total - self.reserved) * self.ratio)

    def serves(self, amount: int) -> bool:
        """Return whether one allocation of this amount fits now."""
        roomy = self.used + amount <= (self.total - self.reserved) * self.ratio
        return roomy and self.min_unit <= amount <= self.max_unit and amount % self.step_size == 0


@dataclass(frozen=True)
class Node:
    """A provider."""

    parent: str | None = None
    stocks: dict[str, Stock] = field(default_factory=dict)
    traits: frozenset[str] = frozenset()
    aggregates: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Group:
    """A resource group; several providers can serve the group with the empty suffix."""

    suffix: str = ""
    resources: dict[str, int] = field(default_factory=dict)
    required: tuple[frozenset[str], ...] = ()
    forbidden: frozenset[str] = frozenset()
    member_of: tuple[frozenset[str], ...] = ()
    forbidden_aggregates: frozenset[str] = frozenset()
    in_tree: str | None = None


@dataclass(frozen=True)
class Query:
    """A query."""

    groups: tuple[Group, ...]
    policy: str = "none"
    root_required: frozenset[str] = frozenset()
    root_forbidden: frozenset[str] = frozenset()
    same_subtree: tuple[frozenset[str], ...] = ()
    one_provider_a_tree: bool = False


Forest = dict[str, Node]
# The choice for one group: class -> provider, and its providers; a group without resources has only the latter.
Choice = tuple[dict[str, str], frozenset[str]]
Result = tuple[frozenset[tuple[str, str, int]], frozenset[tuple[str, frozenset[str]]]]


def all_candidates(forest: Forest, query: Query) -> set[Result]:
    """Return the candidates of all anchors, without duplicates."""
    return {result for name in forest for result in candidates_at(forest, query, name)}


def candidates_at(forest: Forest, query: Query, anchor: str) -> set[Result]:
    """Return all candidates at one anchor."""
    node = forest[anchor]
    if node.parent is not None:
        return set()
    if not query.root_required <= node.traits or query.root_forbidden & node.traits:
        return set()
    choices = []
    for group in query.groups:
        search = spread_choices if group.suffix == "" else single_choices
        choices.append(list(search(forest, group, anchor)))
    found = set()
    for combination in product(*choices):
        result = judge(forest, query, combination)
        if result is not None:
            found.add(result)
    return found


def spread_choices(forest: Forest, group: Group, anchor: str) -> Iterator[Choice]:
    """Yield the ways to spread the group without suffix over a tree and its sharing providers."""
    if not group.resources:
        return
    if group.in_tree is not None and (group.in_tree not in forest or root(forest, group.in_tree) != anchor):
        return
    offers = []
    for resource_class, amount in group.resources.items():
        rows = []
        for name, node in forest.items():
            is_own = root(forest, name) == anchor
            if not is_own:
                if group.in_tree is not None or anchor not in anchors_of(forest, name):
                    continue
                if not is_member(node, group.member_of):
                    continue
            if resource_class not in node.stocks or not node.stocks[resource_class].serves(amount):
                continue
            # An aggregate on the root spans the tree.
            if not (is_member(node, group.member_of) or is_member(forest[anchor], group.member_of)):
                continue
            if (node.aggregates | forest[anchor].aggregates) & group.forbidden_aggregates:
                continue
            rows.append(name)
        offers.append(rows)
    for names in product(*offers):
        traits = frozenset().union(*(forest[name].traits for name in names))
        if traits & group.forbidden or not all(traits & wanted for wanted in group.required):
            continue
        yield dict(zip(group.resources, names, strict=True)), frozenset(names)


def single_choices(forest: Forest, group: Group, anchor: str) -> Iterator[Choice]:
    """Yield the single providers that can serve a group with a suffix at an anchor."""
    if not group.resources and not group.required and not group.member_of:
        return  # As upstream: only forbidden traits, or only a tree, match nothing.
    for name, node in forest.items():
        if root(forest, name) != anchor and anchor not in anchors_of(forest, name):
            continue
        if not all(
            resource_class in node.stocks and node.stocks[resource_class].serves(amount)
            for resource_class, amount in group.resources.items()
        ):
            continue
        if not all(node.traits & wanted for wanted in group.required) or node.traits & group.forbidden:
            continue
        if not is_member(node, group.member_of) or node.aggregates & group.forbidden_aggregates:
            continue
        trees = {root(forest, other) for other in forest if other == group.in_tree}
        if group.in_tree is not None and root(forest, name) not in trees:
            continue
        yield dict.fromkeys(group.resources, name), frozenset({name})


def judge(forest: Forest, query: Query, combination: tuple[Choice, ...]) -> Result | None:
    """Combine one choice of every group into a candidate; return None if it is invalid."""
    providers = dict(zip((group.suffix for group in query.groups), (names for _, names in combination), strict=True))
    suffixed = [name for suffix, names in providers.items() if suffix != "" for name in names]
    if query.policy == "isolate" and len(set(suffixed)) < len(suffixed):
        return None
    for suffixes in query.same_subtree:
        names = frozenset().union(*(providers.get(suffix, frozenset()) for suffix in suffixes))
        if names and not any(all(name in [each, *above(forest, each)] for each in names) for name in names):
            return None
    sums: dict[tuple[str, str], int] = {}
    for group, (provider_of, _) in zip(query.groups, combination, strict=True):
        for resource_class, name in provider_of.items():
            key = (name, resource_class)
            sums[key] = sums.get(key, 0) + group.resources[resource_class]
    for (name, resource_class), amount in sums.items():
        stock = forest[name].stocks[resource_class]
        if stock.used + amount > stock.capacity or amount > stock.max_unit:
            return None
    if query.one_provider_a_tree:
        givers = {name for name, _ in sums}
        if len({root(forest, name) for name in givers}) < len(givers):
            return None
    return frozenset((*key, amount) for key, amount in sums.items()), frozenset(providers.items())


def above(forest: Forest, name: str) -> Iterator[str]:
    """Yield the ancestors of a provider, the nearest first."""
    parent = forest[name].parent
    while parent is not None:
        yield parent
        parent = forest[parent].parent


def root(forest: Forest, name: str) -> str:
    """Return the root of a provider's tree."""
    return [name, *above(forest, name)][-1]


def anchors_of(forest: Forest, name: str) -> set[str]:
    """Return the roots of the trees that a sharing provider serves, including its own root."""
    if SHARES not in forest[name].traits:
        return set()
    connected = {root(forest, other) for other, node in forest.items() if node.aggregates & forest[name].aggregates}
    return connected | {root(forest, name)}


def is_member(node: Node, member_of: tuple[frozenset[str], ...]) -> bool:
    """Return whether a provider is itself in the required aggregates."""
    return all(node.aggregates & wanted for wanted in member_of)
