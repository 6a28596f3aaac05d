"""The slow search that checks Roost's candidates: it reads worlds and queries correctly, and rules cannot bypass it."""

import json
from dataclasses import replace
from random import Random

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.differential import oracle
from tests.differential.compare import differences
from tests.differential.differences import Exchange, excuse
from tests.differential.duel import Duel
from tests.differential.exchange import Answer, Request
from tests.differential.routes import minor_of
from tests.reference.candidates import SHARES, Node, Stock
from tests.support.fleets.forests import forests_with_queries, state_of, uuid_of
from tests.support.servers.candidate_urls import Columns, is_expressible, random_url


class Subject:
    """Roost's API over a forest; ``alter`` can change its answers about candidates."""

    def __init__(self, forest):
        self._columns = Columns(state_of(forest))
        self.alter = None

    def ask(self, request):
        """Answer a request."""
        response = self._columns.response(request.path, minor_of(request.header("openstack-api-version")))
        is_altered = self.alter is not None and request.path.startswith("/allocation_candidates")
        document = json.loads(response.body)
        body = self.alter(document) if is_altered else document
        return Answer(status=response.status, headers=dict(response.headers), body=json.dumps(body).encode())


def get_request(url, minor=39):
    return Request(method="GET", path=url, headers=(("openstack-api-version", f"placement 1.{minor}"),))


def objections(subject, request):
    return oracle.objections(subject.ask, oracle.world_of(subject.ask), request, subject.ask(request))


@settings(max_examples=300, deadline=None)
@given(forests_with_queries(most=6), st.integers(0, 2**32))
def test_oracle_reads_worlds_and_queries_correctly(question, seed):
    forest, query = question
    assume(is_expressible(query))
    subject, (url, minor) = Subject(forest), random_url(query, Random(seed))
    assert objections(subject, get_request(url, minor)) == []
    if minor >= 16:
        assert objections(subject, get_request(f"{url}&limit={Random(seed).randint(1, 3)}", minor)) == []


@pytest.mark.parametrize(
    ("query", "minor", "groups"),
    [
        ("required=A&required=B,!C", 38, {"required": ({"B"},), "forbidden": {"C"}}),
        ("required=A&required=in:B,C", 39, {"required": ({"A"}, {"B", "C"})}),
        ("resources=VCPU:1&resources=VCPU:2,VGPU:3", 39, {"resources": {"VCPU": 2, "VGPU": 3}}),
        ("member_of=!in:{0},{1}&member_of={0}", 39, {"forbidden_aggregates": {"{0}", "{1}"}, "member_of": ({"{0}"},)}),
        ("member_of=in:{0},{1}", 24, {"member_of": ({"{0}", "{1}"},)}),
    ],
)
def test_repeated_parameters_follow_the_rules_of_the_version(query, minor, groups):
    uuids = [str(uuid_of(name)) for name in ("one", "other")]
    (group,) = oracle.query_of(f"/allocation_candidates?{query.format(*uuids)}", minor).groups
    for name, value in groups.items():
        sets = value if isinstance(value, tuple) else (value,)
        read = getattr(group, name) if isinstance(value, tuple) else (getattr(group, name),)
        assert [each if isinstance(each, dict) else set(each) for each in read] == [
            each if isinstance(each, dict) else {word.format(*uuids) for word in each} for each in sets
        ]


def test_unknown_or_too_large_query_is_an_objection(monkeypatch):
    subject = Subject({"one": Node(stocks={"VCPU": Stock(8)})})
    url = "/allocation_candidates?resources=VCPU:1"
    odd = Request(method="GET", path=url, headers=(("openstack-api-version", "placement 1.4, placement 1.5"),))
    answer = subject.ask(get_request(url))
    assert [each.place for each in oracle.objections(subject.ask, {}, odd, answer)] == ["slow search: query"]
    monkeypatch.setattr(oracle, "COMBINATIONS_MAX", 0)
    assert [each.place for each in objections(subject, get_request(url))] == ["slow search: too much"]


# --- planted next to excused differences ------------------------------------------------------------------------------

STOCKS = {"VCPU": Stock(8), "MEMORY_MB": Stock(8)}
IN_AGGREGATE = frozenset({"agg-1"})
TREES = {
    "one": Node(stocks=STOCKS),
    "one-child": Node(parent="one", stocks=STOCKS, traits=frozenset({"CUSTOM_A"})),
    "two": Node(stocks=STOCKS),
    "two-child": Node(parent="two", stocks=STOCKS, traits=frozenset({"CUSTOM_A"})),
}
SHARED = {
    "one": Node(stocks={"VCPU": Stock(8)}, aggregates=IN_AGGREGATE),
    "two": Node(stocks={"VCPU": Stock(8)}, aggregates=IN_AGGREGATE),
    "disks": Node(stocks={"DISK_GB": Stock(8)}, traits=frozenset({SHARES}), aggregates=IN_AGGREGATE),
}
SHARED_BY_A_CHILD = (
    {"holder": Node(stocks={"CUSTOM_DEVICE": Stock(1)})} | SHARED | {"disks": replace(SHARED["disks"], parent="holder")}
)


def too_much(document):
    """Return an answer of the reference when several groups request one class: it has too large an amount."""
    amounts = next(iter(document["allocation_requests"][0]["allocations"].values()))["resources"]
    amounts["VCPU"] += 1
    return document


def fewer(document):
    return document | {"allocation_requests": document["allocation_requests"][1:]}


def failed(_document):
    return {"errors": [{"status": 500, "detail": "1"}]}


def another_amount(document):
    *_, last = document["allocation_requests"]
    resources = next(iter(last["allocations"].values()))["resources"]
    resources[next(iter(resources))] += 1
    return document


def another_mapping(document):
    *_, last = document["allocation_requests"]
    suffix = max(last["mappings"])
    last["mappings"][suffix] = [str(uuid_of("nobody"))]
    return document


def no_last(document):
    return document | {"allocation_requests": document["allocation_requests"][:-1]}


def last_twice(document):
    return document | {"allocation_requests": [*document["allocation_requests"], document["allocation_requests"][-1]]}


def another_capacity(document):
    summary = next(iter(document["provider_summaries"].values()))
    next(iter(summary["resources"].values()))["capacity"] += 1
    return document


SITUATIONS = {
    "wrong_sums": (TREES, "resources1=VCPU:2&resources2=VCPU:1&group_policy=none", too_much),
    "only_sharing": (SHARED, "resources=DISK_GB:1&resources1=VCPU:1", fewer),
    "tree_of_bare_group": (
        TREES,
        f"resources1=VCPU:1&required2=CUSTOM_A&in_tree2={uuid_of('one')}&same_subtree=1,2&group_policy=none",
        fewer,
    ),
    "search_error": (SHARED_BY_A_CHILD, "resources=VCPU:1,DISK_GB:1", failed),
    "aggregate_spelling": (SHARED, f"resources=VCPU:1&member_of={str(uuid_of('agg-1')).upper()}", fewer),
}
PLANTED = (another_amount, another_mapping, no_last, last_twice, another_capacity)


def exchange_of(rule, *, planted=None, query="", minor=39):
    """Return an exchange that a rule excuses, optionally with a planted error in Roost's answer."""
    forest, parameters, theirs_of = SITUATIONS[rule]
    subject, request = Subject(forest), get_request(f"/allocation_candidates?{parameters}{query}", minor)
    ours = subject.ask(request)
    document = theirs_of(ours.document)
    subject.alter = planted
    return between(subject, request, document, subject.ask(request))


def between(subject, request, document, ours):
    """Return an exchange with a document as the reference's answer."""
    status = 500 if "errors" in document else 200
    theirs = Answer(status=status, headers=ours.headers, body=json.dumps(document).encode())
    return Exchange(request, theirs, ours, differences(theirs, ours), subject.ask)


@pytest.mark.parametrize("query", ["", "&limit=1000"])
@pytest.mark.parametrize("rule", SITUATIONS)
def test_difference_confirmed_by_slow_search_is_excused(rule, query):
    assert excuse(exchange_of(rule, query=query)).name == rule


@pytest.mark.parametrize("planted", PLANTED)
@pytest.mark.parametrize("rule", SITUATIONS)
def test_wrong_candidate_is_not_excused_next_to_an_intended_difference(rule, planted):
    assert excuse(exchange_of(rule, planted=planted)) is None


def test_the_slow_search_alone_excuses_nothing():
    def exchange_with(forest, parameters, theirs_of):
        subject, request = Subject(forest), get_request(f"/allocation_candidates?{parameters}")
        ours = subject.ask(request)
        return between(subject, request, theirs_of(ours.document), ours)

    for forest, parameters, theirs_of in (
        (TREES, "resources=VCPU:1", fewer),
        (TREES, "resources=VCPU:1&resources1=MEMORY_MB:1", fewer),  # no sharing provider
        (SHARED, "resources=DISK_GB:1&resources1=VCPU:1", last_twice),
        (TREES, "resources1=VCPU:1&resources2=VCPU:1&group_policy=none", last_twice),
        (TREES, f"resources1=VCPU:1&in_tree1={uuid_of('one')}", fewer),
        (SHARED, f"resources=VCPU:1&member_of={uuid_of('agg-1')}", fewer),
        (SHARED, "resources=VCPU:1,DISK_GB:1", failed),  # the sharing provider is a root
    ):
        exchange = exchange_with(forest, parameters, theirs_of)
        assert exchange.found
        assert exchange.objections == []
        assert excuse(exchange) is None, parameters


@pytest.mark.parametrize("planted", [another_amount, no_last, last_twice])
def test_wrong_candidate_is_not_excused_in_versions_without_mappings(planted):
    assert excuse(exchange_of("wrong_sums", minor=33)).name == "wrong_sums"
    assert excuse(exchange_of("wrong_sums", planted=planted, minor=33)) is None


@pytest.mark.parametrize("planted", [another_amount, no_last, last_twice])
def test_wrong_limited_answer_is_found_next_to_an_intended_difference(planted):
    theirs, ours = Subject(TREES), Subject(TREES)
    theirs.alter = too_much
    duel, request = Duel(theirs, ours), get_request(f"/allocation_candidates?{SITUATIONS['wrong_sums'][1]}&limit=2")
    assert duel.ask(request)[1] == "wrong_sums"
    ours.alter = lambda document: planted(document) if len(document["allocation_requests"]) == 2 else document
    exchange, rule = duel.ask(request)
    assert rule is None
    assert any(each.place.startswith("subject") for each in exchange.found)


def test_fault_includes_the_objections_of_the_slow_search():
    theirs, ours = Subject(TREES), Subject(TREES)
    ours.alter = no_last
    exchange, rule = Duel(theirs, ours).ask(get_request("/allocation_candidates?resources=VCPU:1"))
    assert rule is None
    assert "slow search: allocation_requests" in {each.place for each in exchange.found}


def test_wrong_header_is_not_excused_next_to_intended_candidates():
    exchange = exchange_of("wrong_sums")
    exchange.found.extend(differences(exchange.subject, Answer(status=200, headers={}, body=exchange.subject.body)))
    assert excuse(exchange) is None
