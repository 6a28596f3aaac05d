"""The intended differences, each with its reason and the narrow condition that excuses it.

An exchange with differences is excused if one rule accepts all of them. A rule about candidates also needs the slow
search to agree with the subject.
"""

import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from roost.model.names import uuid_form
from tests.differential import oracle
from tests.differential.compare import CANDIDATES, Difference, only_in_one, providers_of, total_of
from tests.differential.exchange import Answer, Request
from tests.reference.candidates import SHARES, Forest

METHODS = {"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"}


@dataclass(frozen=True)
class Exchange:
    """A request, both answers and their differences; ``ask`` sends more requests to the subject."""

    request: Request
    reference: Answer
    subject: Answer
    found: list[Difference]
    ask: Callable[[Request], Answer]

    @cached_property
    def world(self) -> Forest:
        """The providers of the subject."""
        return oracle.world_of(self.ask)

    @cached_property
    def objections(self) -> list[Difference]:
        """The slow search's objections to the subject's candidates; empty for other answers."""
        if not _has_candidates(self.subject):
            return []
        return oracle.objections(self.ask, self.world, self.request, self.subject)


@dataclass(frozen=True)
class Rule:
    """An intended difference."""

    name: str
    reason: str
    excuses: Callable[[Exchange], bool]
    stands_at: tuple[str, ...]  # the beginnings of its rows in docs/parity.md
    is_searched: bool = False  # whether the slow search must confirm the subject's candidates


def _no_internal_error(exchange: Exchange) -> bool:
    return exchange.reference.status == 500 and 400 <= exchange.subject.status < 500


def _empty_stranger(exchange: Exchange) -> bool:
    return (
        "emptied_stranger" in exchange.request.marks
        and exchange.reference.status == 409
        and b"consumer generation conflict" in exchange.reference.body
        and exchange.subject.status == 204
    )


def _reshape_over_total(exchange: Exchange) -> bool:
    if not exchange.request.path.startswith("/reshaper") or exchange.subject.status != 400:
        return False
    records = _records(json.loads(exchange.request.body or b"null"))
    return exchange.reference.status != 400 and any(each.get("reserved", 0) > each.get("total", 0) for each in records)


def _wrong_sums(exchange: Exchange) -> bool:
    if not _both_have_candidates(exchange):
        return False
    documents = (exchange.reference.document, exchange.subject.document)
    groups = [_amounts(value) for name, value in _query(exchange).items() if name.startswith("resources")]
    requested = sum(groups, Counter[str]())
    is_wrong = any(total_of(each) != requested for each in exchange.reference.document["allocation_requests"])
    # A candidate with too large a sum may not fit any more, and is then missing.
    is_shared = sum(len(group) for group in groups) > len(requested)
    is_lost = is_shared and not only_in_one(*documents, of="reference")
    return is_wrong or is_lost


def _only_sharing(exchange: Exchange) -> bool:
    query = _query(exchange)
    if "resources" not in query or len([name for name in query if name.startswith("resources")]) < 2:
        return False
    sharing = {uuid for uuid, node in exchange.world.items() if SHARES in node.traits}
    if not _all_touch(exchange, sharing):
        return False
    if only_in_one(exchange.reference.document, exchange.subject.document, of="reference"):
        return False
    mapped = [each["mappings"][""] for each in _single(exchange) if "mappings" in each]
    return all(set(uuids) <= sharing for uuids in mapped)


def _tree_of_bare_group(exchange: Exchange) -> bool:
    query = _query(exchange)
    bare = [name for name in query if name.startswith("in_tree") and name.replace("in_tree", "resources") not in query]
    return bool(bare) and "same_subtree" in query and exchange.reference.status == exchange.subject.status == 200


def _search_error(exchange: Exchange) -> bool:
    path = exchange.request.path.partition("?")[0].lstrip("/")
    if path != CANDIDATES.lstrip("/") or (exchange.reference.status, exchange.subject.status) != (500, 200):
        return False
    return any(SHARES in node.traits and node.parent is not None for node in exchange.world.values())


def _not_http(exchange: Exchange) -> bool:
    length = exchange.request.header("content-length")
    is_http = exchange.request.method in METHODS and (length is None or length.isdecimal())
    return not is_http and exchange.reference.status // 100 == exchange.subject.status // 100 == 4


def _path_in_utf8(exchange: Exchange) -> bool:
    return all(
        each.place.endswith(".detail")
        and each.subject == each.reference.encode("latin-1", "ignore").decode("utf-8", "ignore")
        for each in exchange.found
    )


def _newline_in_path(exchange: Exchange) -> bool:
    path = exchange.request.path.partition("?")[0]
    is_nothing = exchange.subject.status in {400, 404} or exchange.subject.document == {"allocations": {}}
    return path.endswith("%0A") and exchange.request.method == "GET" and is_nothing


def _aggregate_spelling(exchange: Exchange) -> bool:
    if exchange.reference.status != exchange.subject.status or exchange.subject.status != 200:
        return False
    if all(each.place.startswith("body.aggregates") for each in exchange.found):
        reference, subject = (each.document["aggregates"] for each in (exchange.reference, exchange.subject))
        return set(map(uuid_form, reference)) == set(subject)
    wanted = [value for name, value in parse_qsl(urlsplit(exchange.request.path).query) if name.startswith("member_of")]
    uuids = re.findall(r"[0-9A-Fa-f-]{32,36}", ",".join(wanted))
    return any(uuid != uuid_form(uuid) for uuid in uuids)


def _whole_number(exchange: Exchange) -> bool:
    def is_same(found: Difference) -> bool:
        kinds = (int, float) if found.place.endswith(".allocation_ratio") else (float, int)
        return (type(found.reference), type(found.subject)) == kinds and found.reference == found.subject

    return all(is_same(each) for each in exchange.found)


def _put_below(exchange: Exchange) -> bool:
    places = [each.place for each in exchange.found]
    return (
        exchange.request.method == "PUT"
        and exchange.request.path.startswith("/resource_providers/")
        and places == ["header last-modified"]
        and "last-modified" not in exchange.reference.headers
    )


def _database_text(exchange: Exchange) -> bool:
    return all(each.place.endswith(".detail") and "sqlite3." in str(each.reference) for each in exchange.found)


RULES = (
    Rule(
        "no_internal_error",
        "The reference fails with an internal error on some bad input; Roost returns a 4xx with the reason.",
        _no_internal_error,
        (
            "an unexpected error",
            "a body nested thousands deep",
            "`resources=VCPU:N` from 2⁶³ on",
            "`allocation_ratio` NaN or −Infinity",
            "in `PUT …/inventories`, a record under an invalid class name",
            "`POST /resource_classes` of a name with a line break",
            "in a reshape, a record under an invalid class name",
            "several `limit`",
        ),
    ),
    Rule(
        "emptied_stranger",
        "In Roost an unknown consumer is still new after its allocations are emptied; the reference keeps a row of"
        " generation 0.",
        _empty_stranger,
        ("empty allocations for an unknown consumer",),
    ),
    Rule(
        "reshape_over_total",
        "A reshape that reserves more than the total is refused, like in the inventory routes.",
        _reshape_over_total,
        ("a reshape that reserves more than the total",),
    ),
    Rule(
        "wrong_sums",
        "When several groups request one class, the reference may sum up more than the request, and return that or"
        " omit candidates that fit; in Roost each candidate has the requested amounts.",
        _wrong_sums,
        ("two groups that take the same class", "`group_policy=isolate` and sharing providers"),
        is_searched=True,
    ),
    Rule(
        "only_sharing",
        "With suffixed groups, sharing providers alone may serve the unsuffixed group at each of their anchors; the"
        " reference finds only some of these candidates.",
        _only_sharing,
        ("the group without suffix, served by sharing providers alone",),
        is_searched=True,
    ),
    Rule(
        "tree_of_bare_group",
        "Roost applies in_tree of a group without resources.",
        _tree_of_bare_group,
        ("`in_tree` of a group without resources",),
        is_searched=True,
    ),
    Rule(
        "search_error",
        "Some searches with sharing providers that have a parent fail with an internal error in the reference, and"
        " succeed in Roost.",
        _search_error,
        ("sharing providers that have a parent",),
        is_searched=True,
    ),
    Rule(
        "not_http",
        "Invalid HTTP, such as an invalid length or an unknown method, is refused before it reaches the API.",
        _not_http,
        ("invalid HTTP",),
    ),
    Rule(
        "path_in_utf8",
        "Roost decodes paths as UTF-8 in its messages; the reference shows each byte as a character.",
        _path_in_utf8,
        ("non-ASCII characters of a path",),
    ),
    Rule(
        "newline_in_path",
        "A newline at the end of a name or uuid in the path is invalid; the reference ignores it.",
        _newline_in_path,
        ("a name or uuid that ends with a line break, in a path",),
    ),
    Rule(
        "aggregate_spelling",
        "All spellings of a uuid are one aggregate, in lower case with dashes; in the reference each is another one.",
        _aggregate_spelling,
        ("uuids in `member_of` and `in_tree`", "a uuid in capitals, without dashes or in braces"),
        is_searched=True,
    ),
    Rule(
        "whole_number",
        "Roost returns amounts as integers and ratios as floats; the reference repeats the form of the request.",
        _whole_number,
        ("an amount written as `2.0`, or a ratio as `2`",),
    ),
    Rule(
        "put_below",
        "PUT of a provider always returns last-modified; the reference omits it for a provider with a parent.",
        _put_below,
        ("`last-modified` of `PUT`",),
    ),
    Rule(
        "database_text",
        "The reference returns the database's error with statement and values; Roost returns its own message.",
        _database_text,
        ("`POST` of a class that exists in the inventory",),
    ),
)


def excuse(exchange: Exchange) -> Rule | None:
    """Return the first rule that excuses an exchange, or None."""
    return next((rule for rule in RULES if rule.excuses(exchange) and _is_confirmed(exchange, rule)), None)


def _is_confirmed(exchange: Exchange, rule: Rule) -> bool:
    """Return whether a rule is not about candidates, or no headers differ and the slow search has no objections."""
    if not rule.is_searched:
        return True
    return not any(each.place.startswith("header") for each in exchange.found) and not exchange.objections


def _query(exchange: Exchange) -> dict[str, str]:
    parts = urlsplit(exchange.request.path)
    return dict(parse_qsl(parts.query)) if unquote(parts.path) == CANDIDATES else {}


def _amounts(value: str) -> Counter[str]:
    return Counter({key: int(amount) for key, _, amount in (each.partition(":") for each in value.split(","))})


def _all_touch(exchange: Exchange, providers: set[str]) -> bool:
    """Return whether two lists of candidates differ only in candidates that take from these providers."""
    single = _single(exchange)
    return bool(single) and all(providers_of(each) & providers for each in single)


def _single(exchange: Exchange) -> list[dict[str, Any]]:
    """Return the candidates that are in only one of the answers."""
    if not _both_have_candidates(exchange):
        return []
    return only_in_one(exchange.reference.document, exchange.subject.document)


def _both_have_candidates(exchange: Exchange) -> bool:
    return _has_candidates(exchange.reference) and _has_candidates(exchange.subject)


def _has_candidates(answer: Answer) -> bool:
    return isinstance(answer.document, dict) and "allocation_requests" in answer.document


def _records(value: Any) -> list[dict[str, Any]]:
    try:
        found = [each for one in value["inventories"].values() for each in one["inventories"].values()]
    except (AttributeError, KeyError, TypeError):
        return []
    return [
        each
        for each in found
        if isinstance(each, dict) and all(type(each.get(n, 0)) is int for n in ("total", "reserved"))
    ]
