import json
from dataclasses import replace
from random import Random
from urllib.parse import urlencode

import msgspec
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from roost.api.http import Request
from roost.api.placement import candidate_json, candidate_query
from roost.api.placement.candidate_cache import CachedQuery, CandidateCache
from roost.api.placement.candidate_json import form_of
from roost.api.placement.handlers.candidates import _render, _search
from roost.engine.candidates import search
from roost.engine.candidates.picks import find_picks
from roost.engine.candidates.query import compile_query
from roost.engine.columns.apply import apply
from roost.model import writes
from roost.model.placement.microversions import Version
from roost.model.request import CandidateQuery, ResourceGroup
from tests.reference.candidate_answers import answer_of
from tests.reference.candidates import Group, Node, Query, Stock
from tests.support.fleets.forests import CLASSES, forests_with_queries, query_of, random_query, state_of
from tests.support.fleets.state_histories import History, new_state
from tests.support.servers.candidate_urls import Columns, is_expressible, parameters_of, random_url


@settings(max_examples=400, deadline=None)
@given(forests_with_queries(), st.integers(0, 2**32))
def test_candidates_response_matches_slow_dictionaries(question, seed):
    forest, query = question
    assume(is_expressible(query))
    url, version = random_url(query, Random(seed))
    state = state_of(forest)
    assert Columns(state).get(url, version) == (200, answer_of(state, query_of(query), version))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32))
def test_candidates_response_is_right_after_any_writes(seed):
    random = Random(seed)
    state = new_state()
    history, columns = History(state, random), Columns(state)
    history.run(20)
    for _ in range(8):
        history.run(random.choice((0, 1, 5, 20)))
        forest = {f"p{number}": Node(stocks={"VCPU": Stock(1)}) for number in range(9)}
        features = frozenset(random.sample(("plain", "suffixed", "required", "member_of", "root"), 2))
        query = random_query(random, forest, features)
        url, version = random_url(query, random)
        assert columns.get(url, version) == (200, answer_of(state, query_of(query), version))


@settings(max_examples=300, deadline=None)
@given(forests_with_queries(), st.integers(0, 2**32))
def test_repeated_query_is_right_after_claims_and_releases(question, seed):
    forest, query = question
    assume(is_expressible(query))
    random = Random(seed)
    state = state_of(forest)
    history, columns = History(state, random, first=1_000), Columns(state)
    url, version = random_url(query, random)
    limits = random.sample((None, 1, 2, 5), 2) if version >= 16 else [None]
    for _ in range(8):
        limit = random.choice(limits)
        expected = answer_of(state, msgspec.structs.replace(query_of(query), limit=limit), version)
        assert columns.get(f"{url}&limit={limit}" if limit else url, version) == (200, expected)
        write = random.choice((history.claim, history.claim, history.release, history.stock))()
        if write is not None:
            apply(state, write)


def random_contention(random):
    """Return small trees without sharing, and a query of several groups with common classes."""
    forest = {}
    for tree in range(random.randint(1, 3)):
        names = [f"t{tree}", *(f"t{tree}-{at}" for at in range(random.choice((0, 0, 1, 3))))]
        for name in names:
            stocks = {each: Stock(random.choice((2, 4, 8))) for each in CLASSES[:2] if random.random() < 0.8}
            forest[name] = Node(parent=None if name == names[0] else names[0], stocks=stocks or {"VCPU": Stock(4)})
    classes = [random.sample(CLASSES[:2], random.randint(1, 2)) for _ in range(3)]
    groups = [
        Group(suffix, resources={each: random.randint(1, 3) for each in classes[at]})
        for at, suffix in enumerate(random.choice((("_1",), ("_1", "_2"), ("", "_1"), ("", "_1", "_2"), ("",))))
    ]
    return forest, Query(groups=tuple(groups), policy=random.choice(("none", "isolate")))


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from((39, 28, 12)))
def test_repeated_query_with_groups_of_one_class_is_right_after_claims(seed, newest):
    random = Random(seed)
    forest, query = random_contention(random)
    _, oldest = parameters_of(query)
    if newest < 29:
        assume(oldest <= newest)
        query = replace(query, one_provider_a_tree=True)
    state = state_of(forest)
    history, columns = History(state, random, first=1_000), Columns(state)
    parameters, _ = parameters_of(query)
    url, version = f"/allocation_candidates?{urlencode(parameters)}", newest
    for _ in range(12):
        assert columns.get(url, version) == (200, answer_of(state, query_of(query), version))
        write = random.choice((history.claim, history.claim, history.release))()
        if write is not None:
            apply(state, write)


def test_text_cache_replaces_the_entry_of_a_tree(monkeypatch):
    monkeypatch.setattr(candidate_json, "_CACHE_MAX_BYTES", 2_000)
    texts = candidate_json.TextCache()
    one, other = (candidate_json._TreeText("x" * 500, 1, frozenset({1}), limit) for limit in (1, 2))
    for _ in range(9):
        texts.store(1, one)
        texts.store(1, other)
    assert texts.trees == {1: other}
    texts.store(2, one)
    assert texts.trees == {1: other}  # the cache is full


def test_cached_texts_of_a_query_are_dropped_on_inventory_changes():
    state = state_of({"one": Node(stocks={"VCPU": Stock(8)}), "two": Node(stocks={"VCPU": Stock(8)})})
    columns, history = Columns(state), History(state, Random(1), first=1_000)
    for _ in range(3):
        _, answer = columns.get("/allocation_candidates?resources1=VCPU:1")
        cache = CandidateCache.of(columns.current)
        assert len(cache._with_texts) == 1
        assert len(cache._with_texts[0].texts.trees) == len(answer["allocation_requests"])
        apply(state, history.stock())


def test_only_changed_trees_are_searched_again(monkeypatch):
    forest = {}
    for host in ("one", "two", "three"):
        forest[host] = Node(stocks={"VCPU": Stock(8)})
        forest |= {f"{host}-{at}": Node(parent=host, stocks={"CUSTOM_DEVICE": Stock(1)}) for at in range(2)}
    state, searched = state_of(forest), []
    columns, history = Columns(state), History(state, Random(1), first=1_000)

    def record_search(state, compiled, anchor, **options):
        searched.append(state.providers.names[anchor])
        return find_picks(state, compiled, anchor, **options)

    monkeypatch.setattr(search, "find_picks", record_search)

    def ask(groups):
        searched.clear()
        _, answer = columns.get(f"/allocation_candidates?{groups}")
        return len(answer["allocation_requests"]), list(searched)

    free, bound = (
        "resources=VCPU:4&resources1=CUSTOM_DEVICE:1",
        "&".join([f"resources{at}=CUSTOM_DEVICE:1" for at in (1, 2)] + ["group_policy=isolate"]),
    )
    for groups in (free, bound):
        assert ask(groups) == (6, ["one", "two", "three"])
        assert ask(groups) == (6, [])
    apply(state, history.taking("one", "VCPU", 1))
    assert ask(free) == (6, [])
    apply(state, history.taking("two-1", "CUSTOM_DEVICE", 1))
    assert ask(free) == (5, ["two"])
    assert ask(bound) == (4, [])  # the mask already refuses the second host
    apply(state, history.taking("three", "VCPU", 5))
    assert ask(free) == (3, [])
    assert ask(f"{free}&limit=2") == (2, ["one"])
    assert ask(f"{free}&limit=2") == (2, [])


@given(forests_with_queries())
def test_query_string_parses_to_the_intended_query(question):
    _, query = question
    assume(is_expressible(query))
    pairs, oldest = parameters_of(query)
    for version in (oldest, 39):
        parsed = candidate_query.parse(pairs, Version(1, version), groups_max=10)
        wanted = query_of(query)
        assert sorted(parsed.groups, key=str) == sorted(wanted.groups, key=str)
        assert (parsed.group_policy, parsed.root_required, parsed.root_forbidden) == (
            wanted.group_policy,
            wanted.root_required,
            wanted.root_forbidden,
        )
        assert set(wanted.same_subtree) <= set(parsed.same_subtree)


@pytest.mark.parametrize("version", [30, 39])
@pytest.mark.parametrize("policy", ["isolate", "none"])
def test_combinations_of_last_picks_are_listed_one_by_one(version, policy):
    forest = {}
    for host in ("one", "two"):
        forest[host] = Node(stocks={"VCPU": Stock(8)})
        forest |= {f"{host}-{at}": Node(parent=host, stocks={"CUSTOM_DEVICE": Stock(1)}) for at in range(5)}
    state = state_of(forest)
    groups = tuple(ResourceGroup(suffix=f"_{at}", resources={"CUSTOM_DEVICE": 1}) for at in range(4))
    query = CandidateQuery(groups=groups, group_policy=policy)
    wanted = answer_of(state, query, version)
    assert len(wanted["allocation_requests"]) == 2 * 5 * 4 * 3 * 2
    cached = CachedQuery(
        query, compile_query(state, query), form_of(Version(1, version), [CLASSES.index("CUSTOM_DEVICE") + 1]), 0
    )
    for limit in (None, 239, 100, 34, 33, 32, 1):
        cached.query = msgspec.structs.replace(query, limit=limit)
        cache, request = CandidateCache(state), Request(method="GET", path="", headers={})
        matches = _search(cache, cached, request.options)
        body = json.loads(_render(cache, cached, matches, request=request))
        assert body["allocation_requests"] == wanted["allocation_requests"][:limit]
        hosts = 1 if limit in {1, 32, 33, 34, 100} else 2
        assert len(body["provider_summaries"]) == 6 * hosts


def test_flat_hosts_are_rewritten_only_when_the_passing_hosts_change(monkeypatch):
    state = state_of({name: Node(stocks={"VCPU": Stock(8)}) for name in ("one", "two", "three")})
    columns, history, written = Columns(state), History(state, Random(1), first=1_000), []
    write_fan = candidate_json.Requests._write_fan

    def record_fan(self, fan, limit):
        written.append(len(fan.rows))
        return write_fan(self, fan, limit)

    monkeypatch.setattr(candidate_json.Requests, "_write_fan", record_fan)

    def ask(query):
        written.clear()
        status, answer = columns.get(f"/allocation_candidates?{query}")
        used = sum(each["resources"]["VCPU"]["used"] for each in answer["provider_summaries"].values())
        return status, len(answer["allocation_requests"]), used, list(written)

    assert ask("resources=VCPU:4") == (200, 3, 0, [3])
    apply(state, history.taking("one", "VCPU", 1))
    assert ask("resources=VCPU:4") == (200, 3, 1, [])
    apply(state, history.taking("two", "VCPU", 5))
    assert ask("resources=VCPU:4") == (200, 2, 1, [2])
    assert ask("resources=VCPU:4&limit=1") == (200, 1, 1, [1])
    assert ask("resources=VCPU:4&limit=1") == (200, 1, 1, [])
    (holder,) = [each for each in state.holders_by_id.values() if each.takes[0][1] == 5]
    apply(state, writes.Release([holder.id], [(holder.id, *take) for take in holder.takes]))
    assert ask("resources=VCPU:4") == (200, 3, 1, [3])
