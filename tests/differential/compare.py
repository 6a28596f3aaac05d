"""Compare two answers to one request, apart from parts that may differ."""

import json
import re
from collections import Counter
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from tests.differential.exchange import Answer, Request

COMPARED = ("content-type", "openstack-api-version", "vary", "location", "cache-control", "www-authenticate")
MARKED = {
    "x-openstack-request-id": re.compile(r"req-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
    "last-modified": re.compile(r"(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT"),
}
HOST = re.compile(r"https?://[^/\s\"'<>]+")
# The standard names of the reference are as old as its prepared database; those of Roost are as old as the server.
AGE_DIFFERENCE_S_MAX = 3600
# The error of a failed creation contains the uuid that the server chose for the provider.
CHOSEN = re.compile(r'(Unable to create resource provider ".*", )[0-9a-f-]{36}')
CANDIDATES = "/allocation_candidates"


@dataclass(frozen=True)
class Difference:
    """One difference between two answers: a dotted place, and the value of each answer there."""

    place: str
    reference: Any
    subject: Any

    def __str__(self) -> str:
        return f"{self.place}\n    reference  {_brief(self.reference)}\n    subject    {_brief(self.subject)}"


def differences(reference: Answer, subject: Answer) -> list[Difference]:
    """Return the differences between two answers to one request."""
    if reference.status != subject.status:
        # With different statuses, other differences add no information.
        return [Difference("status", reference.status, subject.status)]
    found = _of_headers(reference.headers, subject.headers)
    if reference.document is not None or subject.document is not None:
        found += values_differ("body", canonical(reference.document), canonical(subject.document))
    elif _text(reference) != _text(subject):
        found.append(Difference("body", _text(reference), _text(subject)))
    return found


def canonical(value: Any) -> Any:
    """Return a document with sorted lists, without host names, and with masked request ids."""
    if isinstance(value, dict):
        return {key: _mask(key, canonical(each)) for key, each in value.items()}
    if isinstance(value, list):
        # The lists of this API have no order.
        return sorted((canonical(each) for each in value), key=_key)
    if isinstance(value, str):
        return CHOSEN.sub(r"\1", HOST.sub("", value))
    return value


def limit_of(request: Request) -> int | None:
    """Return the limit of a query for candidates; None: the query has no valid limit."""
    parts = urlsplit(request.path)
    if unquote(parts.path) != CANDIDATES or request.method != "GET":
        return None
    limits = [value for key, value in parse_qsl(parts.query) if key == "limit"]
    return int(limits[0]) if limits and limits[0].isdigit() else None


def without_limit(request: Request) -> Request:
    """Return the same query without its limit."""
    parts = urlsplit(request.path)
    kept = [(key, value) for key, value in parse_qsl(parts.query, keep_blank_values=True) if key != "limit"]
    query = "&".join(f"{quote(key)}={quote(value, safe=':,!')}" for key, value in kept)
    return Request(method="GET", path=f"{parts.path}?{query}", headers=request.headers, marks=request.marks)


def limited(answer: Answer, everything: Answer, limit: int, who: str) -> list[Difference]:
    """Compare a limited answer with the unlimited answer of the reference; return the errors."""
    some, whole = canonical(answer.document), canonical(everything.document)
    found = []
    requests, known = some["allocation_requests"], {_key(each) for each in whole["allocation_requests"]}
    if len(requests) != min(limit, len(whole["allocation_requests"])):
        found.append(Difference(f"{who}: count", len(whole["allocation_requests"]), len(requests)))
    found += [
        Difference(f"{who}: request", "not in the unlimited answer", each)
        for each in requests
        if _key(each) not in known
    ]
    summaries, all_summaries = some["provider_summaries"], whole["provider_summaries"]
    used = {uuid for each in requests for uuid in providers_of(each)}
    roots = {all_summaries.get(uuid, {}).get("root_provider_uuid", uuid) for uuid in used}
    wanted = {uuid: each for uuid, each in all_summaries.items() if each.get("root_provider_uuid", uuid) in roots}
    if not any("root_provider_uuid" in each for each in all_summaries.values()):
        # Before 1.29 the summaries may or may not contain the rest of a tree.
        wanted |= {uuid: each for uuid, each in all_summaries.items() if uuid in summaries}
    return found + values_differ(f"{who}: provider_summaries", wanted, summaries)


def providers_of(request: dict[str, Any]) -> set[str]:
    """Return the providers that an allocation request takes from, in either form."""
    allocations = request["allocations"]
    if isinstance(allocations, dict):
        return set(allocations)
    return {each["resource_provider"]["uuid"] for each in allocations}


def total_of(request: dict[str, Any]) -> dict[str, int]:
    """Return the total amount of each class that an allocation request takes."""
    allocations = request["allocations"]
    total = Counter[str]()
    for each in allocations.values() if isinstance(allocations, dict) else allocations:
        total.update(each["resources"])
    return total


def only_in_one(reference: Any, subject: Any, *, of: str = "either") -> list[dict[str, Any]]:
    """Return the allocation requests that only the reference has (``of="reference"``), or only one of the answers."""
    theirs, ours = (Counter(map(_key, canonical(one)["allocation_requests"])) for one in (reference, subject))
    single = theirs - ours if of == "reference" else (theirs - ours) + (ours - theirs)
    return [json.loads(each) for each in single]


def values_differ(place: str, reference: Any, subject: Any) -> list[Difference]:
    """Return the differences between two values by place; lists are compared without order."""
    if isinstance(reference, dict) and isinstance(subject, dict):
        found = []
        for key in sorted(set(reference) | set(subject)):
            if key not in reference or key not in subject:
                found.append(Difference(f"{place}.{key}", reference.get(key, "(absent)"), subject.get(key, "(absent)")))
            else:
                found += values_differ(f"{place}.{key}", reference[key], subject[key])
        return found
    if isinstance(reference, list) and isinstance(subject, list):
        if len(reference) == len(subject) == 1:
            return values_differ(f"{place}.0", reference[0], subject[0])
        sides = [{_key(each) for each in one} for one in (reference, subject)]
        missing = [each for each in reference if _key(each) not in sides[1]]
        added = [each for each in subject if _key(each) not in sides[0]]
        if missing or added or len(reference) != len(subject):
            return [Difference(f"{place} (of {len(reference)} and {len(subject)})", missing, added)]
        return []
    # True, 1 and 1.0 are different here.
    return [] if _key(reference) == _key(subject) else [Difference(place, reference, subject)]


def _of_headers(reference: dict[str, str], subject: dict[str, str]) -> list[Difference]:
    found = []
    for name in COMPARED:
        pair = [HOST.sub("", each[name]) if name in each else None for each in (reference, subject)]
        if pair[0] != pair[1]:
            found.append(Difference(f"header {name}", *pair))
    methods = [{word.strip() for word in each.get("allow", "").split(",")} for each in (reference, subject)]
    if methods[0] != methods[1]:
        found.append(Difference("header allow", *(sorted(each) for each in methods)))
    for name, form in MARKED.items():
        forms = [_form(form, each.get(name)) for each in (reference, subject)]
        if forms[0] != forms[1]:
            found.append(Difference(f"header {name}", reference.get(name), subject.get(name)))
    if not found and "last-modified" in reference and _seconds_apart(reference, subject) > AGE_DIFFERENCE_S_MAX:
        found.append(Difference("header last-modified", reference["last-modified"], subject["last-modified"]))
    return found


def _seconds_apart(reference: dict[str, str], subject: dict[str, str]) -> float:
    one, other = (parsedate_to_datetime(each["last-modified"]) for each in (reference, subject))
    return abs((one - other).total_seconds())


def _mask(key: str, value: Any) -> Any:
    if key == "request_id" and isinstance(value, str) and MARKED["x-openstack-request-id"].fullmatch(value):
        return "req-"
    return value


def _form(form: re.Pattern[str], value: str | None) -> str:
    return "absent" if value is None else "good" if form.fullmatch(value) else "bad"


def _text(answer: Answer) -> str:
    return HOST.sub("", answer.body.decode("utf-8", "backslashreplace"))


def _key(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _brief(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 1500 else f"{text[:1500]}… ({len(text)} characters)"
