"""Check a server's candidates with the slow search, in the world that the same server reports."""

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from math import prod
from typing import Any
from urllib.parse import parse_qsl, urlsplit
from uuid import UUID

from tests.differential.compare import Difference, limit_of, limited, values_differ, without_limit
from tests.differential.exchange import ADMIN_HEADERS, Answer, Request
from tests.differential.routes import minor_of
from tests.reference.candidates import Forest, Group, Node, Query, Result, Stock, all_candidates, anchors_of, root

COMBINATIONS_MAX = 300_000
KEY = re.compile(r"(resources|required|member_of|in_tree)(.*)")

Ask = Callable[[Request], Answer]
# A candidate of an answer: (provider, class, amount), and from 1.34 on the providers of each group.
Shown = tuple[tuple[tuple[str, str, int], ...], tuple[tuple[str, tuple[str, ...]], ...]]


def objections(ask: Ask, world: Forest, request: Request, answer: Answer) -> list[Difference]:
    """Return the differences between a successful answer about candidates and the slow search.

    A query that is too large to search, or that cannot be parsed, is also an objection.
    """
    whole = answer if limit_of(request) is None else ask(without_limit(request))
    if whole.status != 200:
        return [Difference("slow search: without limit", 200, whole.status)]
    limit = limit_of(request)
    found = [] if limit is None else limited(answer, whole, limit, "slow search")
    minor = minor_of(request.header("openstack-api-version"))
    try:
        query = query_of(request.path, minor)
    except ValueError as error:
        return [*found, Difference("slow search: query", f"not understood: {error}", request.path)]
    combinations = combinations_of(world, query)
    if combinations > COMBINATIONS_MAX:
        return [
            *found,
            Difference("slow search: too much", f"{combinations} combinations", f"{COMBINATIONS_MAX} at most"),
        ]
    return found + _compare(world, query, minor or 0, whole.document)


def world_of(ask: Ask) -> Forest:
    """Read the providers of a server by uuid, with all inputs of the candidate search."""

    def get(path: str) -> Any:
        answer = ask(Request(method="GET", path=path, headers=ADMIN_HEADERS))
        assert answer.status == 200, (path, answer)
        return answer.document

    def node(provider: dict[str, Any]) -> Node:
        path = f"/resource_providers/{provider['uuid']}"
        used = get(f"{path}/usages")["usages"]
        stocks = {
            name: Stock(
                total=each["total"],
                reserved=each["reserved"],
                min_unit=each["min_unit"],
                max_unit=each["max_unit"],
                step_size=each["step_size"],
                ratio=each["allocation_ratio"],
                used=used.get(name, 0),
            )
            for name, each in get(f"{path}/inventories")["inventories"].items()
        }
        return Node(
            parent=provider["parent_provider_uuid"],
            stocks=stocks,
            traits=frozenset(get(f"{path}/traits")["traits"]),
            aggregates=frozenset(get(f"{path}/aggregates")["aggregates"]),
        )

    return {each["uuid"]: node(each) for each in get("/resource_providers")["resource_providers"]}


def query_of(path: str, minor: int | None) -> Query:
    """Parse the query of a valid path in a minor version.

    Raises:
        ValueError: the version is unknown, or a part of the query has an unknown form.
    """
    if minor is None:
        raise ValueError("no plain version")
    groups: dict[str, Group] = {}
    query = Query(groups=(), one_provider_a_tree=minor < 29)
    for key, value in parse_qsl(urlsplit(path).query, keep_blank_values=True):
        if match := KEY.fullmatch(key):
            group = groups.get(match[2], Group(suffix=match[2]))
            groups[match[2]] = _add_parameter(group, match[1], value, minor)
        elif key == "root_required":
            required, forbidden = _traits(value)
            query = replace(query, root_required=frozenset().union(*required), root_forbidden=forbidden)
        elif key == "same_subtree":
            suffixes = frozenset(each.strip() for each in value.split(","))
            query = replace(query, same_subtree=(*query.same_subtree, suffixes))
        elif key == "group_policy":
            query = replace(query, policy=value)
        elif key != "limit":
            raise ValueError(key)
    return replace(query, groups=tuple(groups.values()))


def combinations_of(world: Forest, query: Query) -> int:
    """Return an upper bound of the combinations in the slow search."""
    anchors = {name: anchors_of(world, name) | {root(world, name)} for name in world}
    roots = {root(world, name) for name in world}
    return sum(
        prod(_choices(world, group, near) for group in query.groups)
        for near in ([name for name in world if anchor in anchors[name]] for anchor in roots)
    )


def _choices(world: Forest, group: Group, near: list[str]) -> int:
    if group.suffix:
        return sum(1 for name in near if group.resources.keys() <= world[name].stocks.keys())
    return prod(sum(1 for name in near if each in world[name].stocks) for each in group.resources)


def _add_parameter(group: Group, key: str, value: str, minor: int) -> Group:
    """Return a group with one more parameter; of parameters that cannot repeat, the last one counts."""
    if key == "resources":
        amounts = (part.split(":") for part in value.split(","))
        return replace(group, resources={name: int(amount) for name, amount in amounts})
    if key == "in_tree":
        return replace(group, in_tree=str(UUID(value.strip())))
    if key == "required":
        required, forbidden = _traits(value)
        if minor < 39:
            return replace(group, required=required, forbidden=forbidden)
        return replace(group, required=(*group.required, *required), forbidden=group.forbidden | forbidden)
    uuids = frozenset(str(UUID(each)) for each in value.removeprefix("!").removeprefix("in:").split(","))
    if value.startswith("!"):
        return replace(group, forbidden_aggregates=group.forbidden_aggregates | uuids)
    return replace(group, member_of=(*group.member_of, uuids))


def _traits(value: str) -> tuple[tuple[frozenset[str], ...], frozenset[str]]:
    names = [each.strip() for each in value.removeprefix("in:").split(",")]
    if value.startswith("in:"):
        return (frozenset(names),), frozenset()
    required = tuple(frozenset({name}) for name in names if not name.startswith("!"))
    return required, frozenset(name.lstrip("!") for name in names if name.startswith("!"))


def _compare(world: Forest, query: Query, minor: int, document: Any) -> list[Difference]:
    results = all_candidates(world, query)
    # Before 1.34, candidates that differ only in their mappings appear as duplicates.
    wanted = Counter(_from_search(result, is_mapped=minor >= 34) for result in results)
    given = Counter(_from_answer(each, minor) for each in document["allocation_requests"])
    found = []
    if wanted != given:
        sides = (sorted((one - other).elements()) for one, other in ((wanted, given), (given, wanted)))
        found.append(Difference("slow search: allocation_requests", *sides))
    summaries = {
        uuid: each | {"traits": sorted(each["traits"])} if "traits" in each else each
        for uuid, each in document["provider_summaries"].items()
    }
    return found + values_differ("slow search: provider_summaries", _summaries(world, query, minor, results), summaries)


def _from_search(result: Result, *, is_mapped: bool) -> Shown:
    takes, mappings = result
    return tuple(sorted(takes)), tuple(
        sorted((suffix, tuple(sorted(names))) for suffix, names in mappings if is_mapped)
    )


def _from_answer(request: dict[str, Any], minor: int) -> Shown:
    allocations = request["allocations"]
    pairs = (
        [(each["resource_provider"]["uuid"], each["resources"]) for each in allocations]
        if minor < 12
        else [(uuid, each["resources"]) for uuid, each in allocations.items()]
    )
    takes = sorted((uuid, name, amount) for uuid, resources in pairs for name, amount in resources.items())
    mappings = request.get("mappings", {}).items()
    return tuple(takes), tuple(sorted((suffix, tuple(sorted(uuids))) for suffix, uuids in mappings))


def _summaries(world: Forest, query: Query, minor: int, results: set[Result]) -> dict[str, Any]:
    shown = {name for takes, _ in results for name, _, _ in takes}
    if minor >= 29:
        roots = {root(world, name) for name in shown}
        shown = {name for name in world if root(world, name) in roots}
    requested = {name for group in query.groups for name in group.resources}
    return {name: _summary(world, name, minor, world[name].stocks if minor >= 27 else requested) for name in shown}


def _summary(world: Forest, name: str, minor: int, classes: Any) -> dict[str, Any]:
    node = world[name]
    value: dict[str, Any] = {
        "resources": {
            each: {"capacity": stock.capacity, "used": stock.used}
            for each, stock in node.stocks.items()
            if each in classes
        }
    }
    if minor >= 17:
        value["traits"] = sorted(node.traits)
    if minor >= 29:
        value |= {"parent_provider_uuid": node.parent, "root_provider_uuid": root(world, name)}
    return value
