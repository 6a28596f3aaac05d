"""The query string of ``GET /allocation_candidates``; its checks run in the order of OpenStack Placement."""

import re
from collections.abc import Iterable, Sequence
from functools import cache

import msgspec

from roost.api.placement import query_params
from roost.api.placement.candidate_schemas import schema_of, suffix_pattern
from roost.errors import BadRequest
from roost.model.names import AMOUNT_MAX
from roost.model.placement import microversions
from roost.model.placement.microversions import Version
from roost.model.request import CandidateQuery, ResourceGroup

# Further digits of a limit are ignored: the number is larger than any number of candidates anyway.
_LIMIT_DIGITS = 18

Pairs = Sequence[tuple[str, str]]


class _Draft(msgspec.Struct):
    """A request group in progress."""

    suffix: str
    resources: dict[str, int] = {}
    required: tuple[frozenset[str], ...] = ()
    forbidden: frozenset[str] = frozenset()
    member_of: tuple[frozenset[str], ...] = ()
    forbidden_aggregates: frozenset[str] = frozenset()
    in_tree: str | None = None


def parse(pairs: Pairs, version: Version, *, groups_max: int) -> CandidateQuery:
    """Parse a query string in a version.

    Args:
        pairs: decoded names and values, in order.
        groups_max: maximum number of request groups.

    Raises:
        BadRequest: the query is invalid; reports the first error.
    """
    values = dict(pairs)
    _check(values, version)
    limit = _limit(pairs, values, version)
    root_required, root_forbidden = _root_traits(pairs, version)
    subtrees = _subtrees(pairs)
    drafts = _drafts(pairs, version)
    if len(drafts) > groups_max:
        raise BadRequest(f"The query has {len(drafts)} groups, and may have {groups_max} (limit placement.groups_max).")
    if version < microversions.SAME_SUBTREE:
        _check_orphans(drafts)
    else:
        _check_resourceless(drafts, subtrees)
    _check_conflicts(drafts)
    if sum(1 for draft in drafts if draft.suffix) > 1 and "group_policy" not in values:
        raise BadRequest(
            'The "group_policy" parameter is required when specifying more than one "resources{N}" parameter.'
        )
    return CandidateQuery(
        groups=tuple(_group(draft) for draft in drafts),
        group_policy="isolate" if _first(pairs, "group_policy") == "isolate" else "none",
        root_required=root_required,
        root_forbidden=root_forbidden,
        same_subtree=subtrees,
        limit=limit,
    )


def _check(values: dict[str, str], version: Version) -> None:
    problem = schema_of(version).problem(values)
    if problem is not None:
        raise BadRequest(f"Invalid query string parameters: {problem}")


def _limit(pairs: Pairs, values: dict[str, str], version: Version) -> int | None:
    """Return the first limit; the caller has checked only the last one, so a different first limit is checked here."""
    first = next((value for key, value in pairs if key == "limit"), None)
    if first is None:
        return None
    if first != values["limit"]:
        _check({**values, "limit": first}, version)
    return min(int(first[:_LIMIT_DIGITS]), AMOUNT_MAX)


def _first(pairs: Pairs, name: str) -> str | None:
    return next((value for key, value in pairs if key == name), None)


def _root_traits(pairs: Pairs, version: Version) -> tuple[frozenset[str], frozenset[str]]:
    values = [value for key, value in pairs if key == "root_required"]
    if len(values) > 1:
        raise BadRequest(
            "Query parameter 'root_required' may be specified only once.", code="placement.query.duplicate_key"
        )
    # ``root_required`` does not support alternatives, even in versions with alternatives in groups.
    sets, forbidden = query_params.traits(values, min(version, microversions.RE_PARENTING))
    required = frozenset[str]().union(*sets)
    conflicts = sorted(required & forbidden)
    if conflicts:
        raise BadRequest(
            f"Conflicting required and forbidden traits found in root_required: {', '.join(conflicts)}",
            code="placement.query.bad_value",
        )
    return required, forbidden


def _subtrees(pairs: Pairs) -> tuple[frozenset[str], ...]:
    sets = [frozenset(suffix.strip() for suffix in value.split(",")) for key, value in pairs if key == "same_subtree"]
    if any("" in suffixes for suffixes in sets):
        raise BadRequest(
            "Empty string (unsuffixed group) can not be specified in `same_subtree` ",
            code="placement.query.bad_value",
        )
    return tuple(sets)


@cache
def _key_pattern(version: Version) -> re.Pattern[str]:
    suffix = suffix_pattern(version)
    # ``$`` permits a trailing newline, as in the schema.
    return re.compile(
        f"^(resources|required|member_of|in_tree)({suffix})?$" if suffix else "^(resources|required|member_of)()$"
    )


def _drafts(pairs: Pairs, version: Version) -> list[_Draft]:
    """Parse the parameters of all groups, in order of first mention."""
    pattern = _key_pattern(version)
    drafts: dict[str, _Draft] = {}
    merged: set[str] = set()
    for key, value in pairs:
        match = pattern.match(key)
        if match is None:
            continue
        suffix = match[2] or ""
        draft = drafts.setdefault(suffix, _Draft(suffix))
        if match[1] == "resources":
            draft.resources = query_params.amounts(value)
        elif match[1] == "in_tree":
            draft.in_tree = query_params.tree(value)
        elif key not in merged:
            # All values of these parameters are joined at the position of the first.
            merged.add(key)
            _read_labels(draft, match[1], [each for other, each in pairs if other == key], version=version)
    return list(drafts.values())


def _read_labels(draft: _Draft, name: str, values: list[str], *, version: Version) -> None:
    if name == "required":
        draft.required, draft.forbidden = query_params.traits(values, version)
    else:
        key = f"member_of{draft.suffix}"
        draft.member_of, draft.forbidden_aggregates = query_params.aggregates(values, version, key=key)


def _check_orphans(drafts: Iterable[_Draft]) -> None:
    """Refuse groups without resources, as versions before 1.36 do."""
    orphans = [draft for draft in drafts if not draft.resources]
    traits = [f"required{draft.suffix}" for draft in orphans if draft.required]
    if traits:
        raise BadRequest(
            "All traits parameters must be associated with resources.  "
            f"Found the following orphaned traits keys: {', '.join(traits)}"
        )
    members = [f"member_of{draft.suffix}" for draft in orphans if draft.member_of or draft.forbidden_aggregates]
    if members:
        raise BadRequest(
            "All member_of parameters must be associated with resources. "
            f"Found the following orphaned member_of keys: {', '.join(members)}"
        )
    if not drafts:
        raise BadRequest("At least one request group (`resources` or `resources{$S}`) is required.")
    if orphans:
        raise BadRequest("All request groups must specify resources.")


def _check_resourceless(drafts: list[_Draft], subtrees: tuple[frozenset[str], ...]) -> None:
    """Refuse a group that has no resources and is in no subtree, and a subtree with an unknown group."""
    if not any(draft.resources for draft in drafts):
        raise BadRequest(
            "There must be at least one resources or resources[$S] parameter.", code="placement.query.missing_value"
        )
    joined = frozenset[str]().union(*subtrees)
    loose = sorted(draft.suffix for draft in drafts if not draft.resources and draft.suffix not in joined)
    if loose:
        raise BadRequest(
            "Resourceless suffixed group request should be specified in `same_subtree` query param: "
            f"bad group(s) - {loose}.",
            code="placement.query.bad_value",
        )
    suffixes = [draft.suffix for draft in drafts]
    unknown = sorted(joined.difference(suffixes))
    if unknown:
        raise BadRequest(
            f"Real suffixes should be specified in `same_subtree`: {unknown} not found in {suffixes}.",
            code="placement.query.bad_value",
        )


def _check_conflicts(drafts: Iterable[_Draft]) -> None:
    conflicts = [
        f"required{draft.suffix}: ({', '.join(sorted(names))})"
        for draft in drafts
        for names in draft.required
        if names <= draft.forbidden
    ]
    if conflicts:
        raise BadRequest(
            "Conflicting required and forbidden traits found in the following traits keys: "
            f"{', '.join(sorted(conflicts))}"
        )


def _group(draft: _Draft) -> ResourceGroup:
    resources, member_of = draft.resources, draft.member_of
    if any(amount > AMOUNT_MAX for amount in resources.values()):
        # No inventory has this amount: an empty set of aggregates excludes all providers.
        resources = {name: min(amount, AMOUNT_MAX) for name, amount in resources.items()}
        member_of = (*member_of, frozenset())
    return ResourceGroup(
        suffix=draft.suffix,
        resources=resources,
        required=tuple(dict.fromkeys(draft.required)),
        forbidden=draft.forbidden,
        member_of=member_of,
        forbidden_aggregates=draft.forbidden_aggregates,
        in_tree=draft.in_tree,
    )
