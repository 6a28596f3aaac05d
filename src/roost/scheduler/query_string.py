"""A candidate query as the Placement API reads it, at microversion 1.36."""

from urllib.parse import urlencode

from roost.model.request import CandidateQuery, ResourceGroup

MICROVERSION = "1.36"


def query_string(query: CandidateQuery) -> str:
    """Return a query as the query string of ``GET /allocation_candidates``, its parameters in alphabetical order.

    Traits of which any one would do cannot be told at this microversion, and a set of them must hold one.

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
        pairs.extend(_of_group(group))
    return urlencode(sorted(pairs), safe=":,!")


def _of_group(group: ResourceGroup) -> list[tuple[str, str]]:
    suffix = group.suffix
    pairs = []
    if group.resources:
        asked = (f"{name}:{amount}" for name, amount in sorted(group.resources.items()))
        pairs.append((f"resources{suffix}", ",".join(asked)))
    if group.required or group.forbidden:
        assert all(len(traits) == 1 for traits in group.required), "a trait at a time"
        required = frozenset(trait for traits in group.required for trait in traits)
        pairs.append((f"required{suffix}", _traits(required, group.forbidden)))
    pairs.extend((f"member_of{suffix}", f"in:{','.join(sorted(uuids))}") for uuids in group.member_of)
    if group.forbidden_aggregates:
        pairs.append((f"member_of{suffix}", f"!in:{','.join(sorted(group.forbidden_aggregates))}"))
    if group.in_tree is not None:
        pairs.append((f"in_tree{suffix}", group.in_tree))
    return pairs


def _traits(required: frozenset[str], forbidden: frozenset[str]) -> str:
    return ",".join([*sorted(required), *(f"!{trait}" for trait in sorted(forbidden))])
