"""A candidate query in the form of the Placement API, at microversion 1.36, or 1.39 if necessary."""

from urllib.parse import urlencode

from roost.model.placement.microversions import SAME_SUBTREE
from roost.model.request import CandidateQuery, ResourceGroup

MICROVERSION = str(SAME_SUBTREE)


def needs_any(query: CandidateQuery) -> bool:
    """Return whether a query requires one of several traits, which needs microversion 1.39."""
    return any(len(traits) > 1 for group in query.groups for traits in group.required)


def query_string(query: CandidateQuery) -> str:
    """Return the query string for ``GET /allocation_candidates``, parameters in alphabetical order.

    Source:
        nova/scheduler/utils.py, ResourceRequest.to_querystring.
    """
    pairs: list[tuple[str, str]] = []
    if query.limit is not None:
        pairs.append(("limit", str(query.limit)))
    if query.group_policy == "isolate" or sum(1 for group in query.groups if group.suffix) > 1:
        pairs.append(("group_policy", query.group_policy))
    if query.root_required or query.root_forbidden:
        pairs.append(("root_required", _traits(query.root_required, query.root_forbidden)))
    pairs.extend(("same_subtree", ",".join(sorted(suffixes))) for suffixes in query.same_subtree)
    for group in query.groups:
        pairs.extend(_group_pairs(group))
    return urlencode(sorted(pairs), safe=":,!")


def _group_pairs(group: ResourceGroup) -> list[tuple[str, str]]:
    suffix = group.suffix
    pairs = []
    if group.resources:
        amounts = (f"{name}:{amount}" for name, amount in sorted(group.resources.items()))
        pairs.append((f"resources{suffix}", ",".join(amounts)))
    required = frozenset(trait for traits in group.required if len(traits) == 1 for trait in traits)
    if required or group.forbidden:
        pairs.append((f"required{suffix}", _traits(required, group.forbidden)))
    several = (traits for traits in group.required if len(traits) > 1)
    pairs.extend((f"required{suffix}", f"in:{','.join(sorted(traits))}") for traits in several)
    pairs.extend((f"member_of{suffix}", f"in:{','.join(sorted(uuids))}") for uuids in group.member_of)
    if group.forbidden_aggregates:
        pairs.append((f"member_of{suffix}", f"!in:{','.join(sorted(group.forbidden_aggregates))}"))
    if group.in_tree is not None:
        pairs.append((f"in_tree{suffix}", group.in_tree))
    return pairs


def _traits(required: frozenset[str], forbidden: frozenset[str]) -> str:
    return ",".join([*sorted(required), *(f"!{trait}" for trait in sorted(forbidden))])
