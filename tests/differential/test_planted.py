"""The comparison finds planted differences."""

import json

import pytest

from tests.differential import reference
from tests.differential.__main__ import replay
from tests.differential.compare import canonical, differences, limited
from tests.differential.differences import RULES, Exchange, excuse
from tests.differential.duel import Duel, Outcome, Side, story
from tests.differential.exchange import Answer, Request
from tests.differential.sequences import sequence
from tests.support.fleets.products import ROOT
from tests.support.missing_programs import skip_test

REQUEST_ID = "req-01234567-89ab-cdef-0123-456789abcdef"
HEADERS = {
    "content-type": "application/json",
    "openstack-api-version": "placement 1.39",
    "vary": "openstack-api-version",
    "x-openstack-request-id": REQUEST_ID,
}


def answer(document=None, status=200, **headers):
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(
        status=status, headers=HEADERS | named, body=b"" if document is None else json.dumps(document).encode()
    )


def problem(detail, status=400):
    return answer({"errors": [{"status": status, "detail": detail, "request_id": REQUEST_ID}]}, status)


def refuse_requests(request):
    raise AssertionError(request)


def exchange(theirs, ours, *, path="/traits", method="GET", headers=(), body=None):
    content = None if body is None else json.dumps(body).encode()
    request = Request(method=method, path=path, headers=headers, body=content)
    return Exchange(request, theirs, ours, differences(theirs, ours), refuse_requests)


def candidates_taking(*choices):
    requests = [{"allocations": {uuid: {"resources": {"VCPU": 1}} for uuid in choice}} for choice in choices]
    return answer({"allocation_requests": requests, "provider_summaries": {}})


@pytest.mark.parametrize(
    ("theirs", "ours", "place"),
    [
        (answer(), answer(status=204), "status"),
        (answer({"a": 1}), answer({"a": 2}), "body.a"),
        (answer({"a": 1}), answer({"a": 1.0}), "body.a"),
        (answer({"a": 1}), answer({"a": True}), "body.a"),
        (answer({"a": None}), answer({}), "body.a"),
        (answer({"a": [1, 2, 2]}), answer({"a": [1, 2]}), "body.a (of 3 and 2)"),
        (problem("No such trait"), problem("No such trait."), "body.errors.0.detail"),
        (answer(), answer(vary="accept"), "header vary"),
        (answer(allow="GET, PUT"), answer(allow="GET"), "header allow"),
        (answer(last_modified="Sat, 21 Nov 2026 20:31:52 GMT"), answer(), "header last-modified"),
        (answer(last_modified="Sat, 21 Nov 2026 20:31:52 GMT"), answer(last_modified="today"), "header last-modified"),
        (
            answer(last_modified="Sat, 21 Nov 2026 20:31:52 GMT"),
            answer(last_modified="Thu, 01 Jan 1970 00:00:00 GMT"),
            "header last-modified",
        ),
        (answer(location="http://a:1/traits/X"), answer(location="http://b:2/traits/Y"), "header location"),
        (answer(), answer(x_openstack_request_id="7"), "header x-openstack-request-id"),
    ],
)
def test_planted_difference_is_found_at_its_place(theirs, ours, place):
    assert [each.place for each in differences(theirs, ours)] == [place]


def test_allowed_variations_are_not_differences():
    theirs = answer({"links": [{"href": "a"}, {"href": "b"}]}, location="http://a:1/x", allow="GET, PUT")
    ours = answer({"links": [{"href": "b"}, {"href": "a"}]}, location="http://b:2/x", allow="PUT,GET")
    assert differences(theirs, ours) == []
    assert canonical({"request_id": REQUEST_ID}) == canonical({"request_id": REQUEST_ID.replace("0", "1")})


def test_limited_answer_must_be_a_subset_of_all_candidates():
    everything = candidates_taking("a", "b", "c")
    assert limited(candidates_taking("b"), everything, 1, "ours") == []
    assert [each.place for each in limited(candidates_taking("d"), everything, 1, "ours")] == ["ours: request"]
    assert [each.place for each in limited(candidates_taking("a"), everything, 2, "ours")] == ["ours: count"]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_each_excuse_has_exactly_one_row_in_the_parity_document(rule):
    rows = [line for line in (ROOT / "docs" / "parity.md").read_text().splitlines() if line.startswith("| ")]
    assert rule.stands_at
    for beginning in rule.stands_at:
        assert [row.startswith(f"| {beginning}") for row in rows].count(True) == 1, beginning


def test_rules_excuse_only_their_own_difference():
    assert excuse(exchange(problem("oops", 500), problem("bad"))).name == "no_internal_error"
    assert excuse(exchange(problem("oops", 500), answer())) is None
    assert excuse(exchange(problem("A, B"), problem("B, A"))) is None
    assert excuse(exchange(problem("(sqlite3.Error)", 409), problem("taken", 409))).name == "database_text"
    assert excuse(exchange(problem("(sqlite3.Error)", 409), problem("taken", 400))) is None

    assert excuse(exchange(problem("no Ã\x84"), problem("no Ä"))).name == "path_in_utf8"
    assert excuse(exchange(problem("no Ã\x84"), problem("no A"))) is None
    assert excuse(exchange(answer(), problem("no", 404), path="/traits/A%0A")).name == "newline_in_path"
    assert excuse(exchange(answer(), problem("no", 404), path="/traits/A")) is None
    dated = answer({}, last_modified="Sat, 21 Nov 2026 20:31:52 GMT")
    assert excuse(exchange(answer({}), dated, path="/resource_providers/a", method="PUT")).name == "put_below"
    assert excuse(exchange(answer({}), dated, path="/resource_providers/a")) is None
    assert excuse(exchange(answer({"a": 2.0}), answer({"a": 2}))).name == "whole_number"
    assert excuse(exchange(answer({"a": 2.5}), answer({"a": 2}))) is None
    assert excuse(exchange(answer({"a": 2}), answer({"a": 2.0}))) is None
    ratios = [{"allocation_ratio": value} for value in (2, 2.0, 2.5)]
    assert excuse(exchange(answer(ratios[0]), answer(ratios[1]))).name == "whole_number"
    assert excuse(exchange(answer(ratios[0]), answer(ratios[2]))) is None
    assert excuse(exchange(answer(ratios[1]), answer(ratios[0]))) is None
    short = (("content-length", "short"),)
    assert excuse(exchange(problem("no integer"), answer(), headers=short)) is None
    assert excuse(exchange(problem("no integer"), problem("no HTTP"), headers=short)).name == "not_http"
    assert excuse(exchange(problem("no integer"), problem("no HTTP"))) is None


def test_aggregates_are_excused_only_for_their_spelling():
    one, other = "2f41f7cd-1cdd-4e9c-a824-74872226ff43", "78e51061-7311-48a3-82ce-6f447ed4d57b"

    def exchange_with(*theirs):
        return exchange(answer({"aggregates": theirs}), answer({"aggregates": [one]}))

    assert excuse(exchange_with(one.upper(), one)).name == "aggregate_spelling"
    assert excuse(exchange_with(one.upper(), other)) is None

    def members(uuid):
        found = answer({"resource_providers": [{"uuid": other}]})
        return exchange(answer({"resource_providers": []}), found, path=f"/resource_providers?member_of={uuid}")

    assert excuse(members(one)) is None
    for spelling in (one.upper(), one.replace("-", "")):
        assert excuse(members(spelling)).name == "aggregate_spelling"


def test_a_reshape_is_excused_only_above_the_total():
    def reshape(reserved):
        record = {"total": 4, "reserved": reserved}
        body = {"inventories": {"a": {"inventories": {"VCPU": record}}}, "allocations": {}}
        return exchange(answer(status=204), problem("too much"), path="/reshaper", method="POST", body=body)

    assert excuse(reshape(5)).name == "reshape_over_total"
    assert excuse(reshape(4)) is None


def test_seed_gives_the_same_requests_each_time():
    def requests_of(seed):
        act, requests = sequence(seed, 40), []
        try:
            request = next(act)
            while True:
                requests.append(request)
                request = act.send(answer({}, 204))
        except StopIteration:
            return requests

    assert requests_of(5) == requests_of(5)
    assert requests_of(5) != requests_of(6)


def test_replay_sends_its_steps_whatever_the_answers():
    requests = [Request(method="GET", path=f"/{number}") for number in range(4)]
    act = replay(Outcome(requests=requests), 1, 3)
    assert [next(act), act.send(answer())] == requests[1:3]
    with pytest.raises(StopIteration):
        act.send(answer())


@pytest.mark.differential
def test_a_planted_difference_is_found_and_shortened():
    def alter(request, original):
        if request.method == "GET" and "/traits" in request.path and b"CUSTOM_RED" in original.body:
            return Answer(
                status=original.status,
                headers=original.headers,
                body=original.body.replace(b"CUSTOM_RED", b"CUSTOM_REDDER"),
            )
        return original

    if reference.python() is None:
        skip_test(reference.HOW_TO_INSTALL)
    with reference.Reference() as one, reference.Reference() as other:
        both = Duel(Side(one), Side(other, alter))
        outcome = both.run(sequence(3))
        fault = outcome.faults[0]
        shortest = both.shorten(outcome.requests, fault)
        both.close()
    assert "CUSTOM_REDDER" in story(fault, other.address)
    # Two requests are enough: create the trait, and read it.
    assert [request.method for request in shortest] == ["PUT", "GET"]
