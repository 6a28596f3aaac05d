"""Checks of the names in candidate queries."""

from collections.abc import Iterable, Iterator

from roost.engine.candidates.query import UnknownNames, compile_query
from roost.engine.candidates.search import search
from roost.engine.columns.name_table import NameTable
from roost.engine.columns.state import State
from roost.engine.columns.types import Mask
from roost.errors import BadRequest
from roost.model.request import CandidateQuery, ResourceGroup


def check_names(state: State, query: CandidateQuery) -> None:
    """Refuse a query with unknown classes or traits, unless an earlier part of the query excludes all candidates.

    Raises:
        BadRequest: a name is unknown.
    """
    _check_traits(state, sorted(query.root_required | query.root_forbidden))
    if (query.root_required or query.root_forbidden) and not _has_root(state, query):
        return
    for group in query.groups:
        for name in group.resources:
            if name not in state.class_ids:
                raise BadRequest(f"Invalid resource class in resources parameter: No such resource class {name}.")
        if not all(state.membership.mask_of_any(_find_aggregates(state, each)).any() for each in group.member_of):
            return
        for names in group.required:
            _check_traits(state, sorted(names))
        _check_traits(state, sorted(group.forbidden))
        if not _is_served(state, query, group):
            return


def _check_traits(state: State, names: Iterable[str]) -> None:
    for name in names:
        if name not in state.trait_ids:
            raise BadRequest(f"No such trait(s): {name}.")


def _has_root(state: State, query: CandidateQuery) -> bool:
    roots: Mask = state.providers.alive.view & (state.providers.parent.view < 0)
    for name in query.root_required:
        roots &= state.traits.mask_of(_number(state.trait_ids, name))
    for name in query.root_forbidden:
        roots &= ~state.traits.mask_of(_number(state.trait_ids, name))
    return bool(roots.any())


def _number(table: NameTable, name: str) -> int:
    number = table.id_of(name)
    assert number is not None, name
    return number


def _find_aggregates(state: State, uuids: Iterable[str]) -> Iterator[int]:
    return (number for uuid in uuids if (number := state.aggregates.id_of(uuid)) is not None)


def _is_served(state: State, query: CandidateQuery, group: ResourceGroup) -> bool:
    """Return whether a group alone has a candidate, given the traits of the root; True for one without resources."""
    if not group.resources:
        return True
    alone = CandidateQuery(
        groups=(group,), root_required=query.root_required, root_forbidden=query.root_forbidden, limit=1
    )
    compiled = compile_query(state, alone)
    return not isinstance(compiled, UnknownNames) and next(search(state, compiled), None) is not None
