"""A candidate query in the numbers of a state: the input of search, masks and matching."""

from collections.abc import Iterable
from dataclasses import dataclass

from roost.engine.columns.name_table import NameTable
from roost.engine.columns.state import State
from roost.model.request import CandidateQuery, ResourceGroup

Demand = tuple[tuple[int, int], ...]  # resource class id, amount; ascending by class
UNKNOWN_PROVIDER = -1  # in place of a provider row: the named provider does not exist


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownNames:
    """The verdict on a query with undefined classes or traits."""

    resource_classes: tuple[str, ...] = ()  # sorted
    traits: tuple[str, ...] = ()  # sorted


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupNeeds:
    """The needs of one group. Equal for groups that differ only in their suffix."""

    resources: Demand
    required: tuple[frozenset[int], ...] = ()  # every set: at least one of its traits
    forbidden: frozenset[int] = frozenset()
    member_of: tuple[frozenset[int], ...] = ()  # every set: at least one of its aggregates
    forbidden_aggregates: frozenset[int] = frozenset()
    in_tree: int | None = None  # row of any provider of the tree, UNKNOWN_PROVIDER, or None: any tree

    @property
    def is_empty(self) -> bool:
        """Whether the group needs nothing."""
        return self == GroupNeeds(resources=())


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CompiledQuery:
    """A query, compiled against one state.

    It stays valid for that state, and for forks of it, until ``changes.epoch`` moves, since a named
    aggregate or provider may exist by then.
    """

    plain: GroupNeeds | None  # the group without a suffix
    kinds: tuple[GroupNeeds, ...]  # distinct needs of groups with a suffix
    kind_of: dict[str, int]  # suffix -> position in kinds, in the order of the query
    suffixes: tuple[str, ...]  # of all groups, in the order of the query
    is_isolated: bool
    root_required: frozenset[int]
    root_forbidden: frozenset[int]
    subtrees: tuple[frozenset[str], ...]
    limit: int | None
    is_possible: bool  # False: the query has no candidates, regardless of inventories
    is_one_provider_per_tree: bool
    # Whether the options of picks combine freely: no class is requested twice, and nothing else links picks.
    are_picks_free: bool


def compile_query(
    state: State, query: CandidateQuery, *, is_one_provider_per_tree: bool = False
) -> CompiledQuery | UnknownNames:
    """Translate the names of a query into the numbers of a state.

    An unknown aggregate or provider matches nothing. A suffixed group without resources needs a required trait or
    ``member_of``, or it matches nothing. A group without suffix and without resources matches nothing if it has
    other needs, and is ignored if it has none.

    Args:
        is_one_provider_per_tree: drop candidates with two providers of one tree, as the Placement API does
            before version 1.29.

    Source:
        placement/objects/research_context.py, RequestGroupSearchContext; here, unlike in Placement, in_tree also
        applies to a group without resources.
    """
    unknown = _find_unknown_names(state, query)
    if unknown is not None:
        return unknown
    plain: GroupNeeds | None = None
    is_possible = True
    kinds: dict[GroupNeeds, int] = {}
    kind_of: dict[str, int] = {}
    suffixes = []
    for group in query.groups:
        needs = _compile_group(state, group)
        if group.suffix == "":
            if needs.is_empty:
                continue
            plain = needs
        else:
            kind_of[group.suffix] = kinds.setdefault(needs, len(kinds))
        suffixes.append(group.suffix)
        is_possible = is_possible and _is_possible(group, needs)
    are_subtrees_trivial = all(len(suffixes) < 2 for suffixes in query.same_subtree)
    return CompiledQuery(
        plain=plain,
        kinds=tuple(kinds),
        kind_of=kind_of,
        suffixes=tuple(suffixes),
        is_isolated=query.group_policy == "isolate",
        root_required=_find_ids(state.trait_ids, query.root_required),
        root_forbidden=_find_ids(state.trait_ids, query.root_forbidden),
        subtrees=tuple(query.same_subtree),
        limit=query.limit,
        is_possible=is_possible,
        is_one_provider_per_tree=is_one_provider_per_tree,
        are_picks_free=not is_one_provider_per_tree
        and are_subtrees_trivial
        and not (query.group_policy == "isolate" and len(kind_of) > 1)
        and (plain is None or not plain.required)
        and _are_classes_distinct(query),
    )


def _are_classes_distinct(query: CandidateQuery) -> bool:
    classes = [name for group in query.groups for name in group.resources]
    return len(set(classes)) == len(classes)


def _find_unknown_names(state: State, query: CandidateQuery) -> UnknownNames | None:
    classes = {name for group in query.groups for name in group.resources}
    traits = set(query.root_required | query.root_forbidden)
    for group in query.groups:
        traits.update(group.forbidden, *group.required)
    missing_classes, missing_traits = state.class_ids.find_missing(classes), state.trait_ids.find_missing(traits)
    if not missing_classes and not missing_traits:
        return None
    return UnknownNames(resource_classes=tuple(missing_classes), traits=tuple(missing_traits))


def _compile_group(state: State, group: ResourceGroup) -> GroupNeeds:
    resources = [(state.class_ids.id_of(name), amount) for name, amount in group.resources.items()]
    in_tree = None
    if group.in_tree is not None:
        in_tree = state.providers.row_of_uuid.get(group.in_tree, UNKNOWN_PROVIDER)
    return GroupNeeds(
        resources=tuple(sorted((class_id, amount) for class_id, amount in resources if class_id is not None)),
        required=tuple(_find_ids(state.trait_ids, names) for names in group.required),
        forbidden=_find_ids(state.trait_ids, group.forbidden),
        member_of=tuple(_find_ids(state.aggregates, uuids) for uuids in group.member_of),
        forbidden_aggregates=_find_ids(state.aggregates, group.forbidden_aggregates),
        in_tree=in_tree,
    )


def _is_possible(group: ResourceGroup, needs: GroupNeeds) -> bool:
    if needs.in_tree == UNKNOWN_PROVIDER or not all(needs.member_of) or not all(needs.required):
        return False
    if needs.resources:
        return True
    return group.suffix != "" and bool(needs.required or needs.member_of)


def _find_ids(table: NameTable, names: Iterable[str]) -> frozenset[int]:
    return frozenset(number for name in names if (number := table.id_of(name)) is not None)
