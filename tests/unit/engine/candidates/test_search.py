from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
from hypothesis import given, settings

from roost.engine.candidates.anchors import find_anchors
from roost.engine.candidates.search import (
    CompiledQuery,
    UnknownNames,
    compile_query,
    has_candidate,
    search,
    to_candidate,
)
from roost.engine.candidates.sharing_providers import SharingProviders
from roost.engine.feasibility.claim import check_claim
from roost.model.request import CandidateQuery, ResourceGroup
from tests.reference.candidates import SHARES, Group, Node, Query, Stock, all_candidates, candidates_at
from tests.support.fleets.forests import compiled_of, forests_with_queries, query_of, result_of, state_of, uuid_of


@settings(max_examples=500)
@given(forests_with_queries())
def test_search_equals_the_slow_rule(question):
    assert_search_equals_the_slow_rule(*question)


@pytest.mark.soak
@settings(max_examples=20_000)
@given(forests_with_queries(most=9))
def test_search_equals_the_slow_rule_in_long_runs(question):
    assert_search_equals_the_slow_rule(*question)


def assert_search_equals_the_slow_rule(forest, query):
    state = state_of(forest)
    results = [result_of(state, each) for each in search(state, compiled_of(state, query))]
    expected = all_candidates(forest, query)
    assert set(results) == expected
    assert len(results) == len(expected)


def possible_roots(state, compiled):
    """Return the mask of the providers that may be the root of a candidate's tree."""
    return find_anchors(state, compiled, SharingProviders(state))[0]


@settings(max_examples=500)
@given(forests_with_queries())
def test_has_candidate_equals_the_slow_rule_at_each_anchor(question):
    forest, query = question
    state = state_of(forest)
    compiled = compiled_of(state, query)
    mask = possible_roots(state, compiled)
    for row, name in enumerate(forest):
        expected = candidates_at(forest, query, name)
        assert has_candidate(state, compiled, row) == bool(expected)
        assert {result_of(state, each) for each in search(state, compiled, anchors=[row])} == expected
        assert mask[row] or not expected


@settings(max_examples=300)
@given(forests_with_queries())
def test_anchor_mask_is_exact_for_flat_hosts_without_sharing(question):
    forest, query = question
    forest = {name: replace(node, parent=None, traits=node.traits - {SHARES}) for name, node in forest.items()}
    query = Query(groups=(replace(query.groups[0], suffix="", resources=query.groups[0].resources or {"VCPU": 1}),))
    state = state_of(forest)
    compiled = compiled_of(state, query)
    assert possible_roots(state, compiled).tolist() == [
        has_candidate(state, compiled, row) for row in range(len(forest))
    ]


@settings(max_examples=300)
@given(forests_with_queries())
def test_search_is_repeatable_and_a_limit_gives_a_prefix(question):
    forest, query = question
    state = state_of(forest)
    compiled = compiled_of(state, query)
    for order in ("depth-first", "breadth-first"):
        whole = list(search(state, compiled, order=order))
        assert list(search(state, compiled, order=order)) == whole
        fork = state.fork()
        assert list(search(fork, compiled_of(fork, query), order=order)) == whole
        for limit in (0, 1, 2, 5):
            assert list(search(state, compiled, order=order, limit=limit)) == whole[:limit]
    assert {result_of(state, each) for each in whole} == all_candidates(forest, query)


@settings(max_examples=300)
@given(forests_with_queries())
def test_search_without_mappings_returns_each_allocation_once(question):
    forest, query = question
    state = state_of(forest)
    results = [result_of(state, each)[0] for each in search(state, compiled_of(state, query), distinct_mappings=False)]
    assert set(results) == {takes for takes, _ in all_candidates(forest, query)}
    assert len(results) == len(set(results))


@settings(max_examples=200)
@given(forests_with_queries())
def test_every_candidate_can_be_claimed(question):
    forest, query = question
    state = state_of(forest)
    assert all(check_claim(state, each.takes) is None for each in search(state, compiled_of(state, query)))


# --- the example of the Placement API ---------------------------------------------------------------------------------

DISKS = {"MEMORY_MB": Stock(1024), "DISK_GB": Stock(1000)}
DISK = {"DISK_GB": Stock(1000)}
CORES = {"VCPU": Stock(8)}
WORLD = {
    "cn1": Node(stocks=DISKS, aggregates=frozenset({"agg-1", "agg-2"})),
    "cn2": Node(stocks=DISKS, aggregates=frozenset({"agg-1"})),
    "n11": Node(parent="cn1", stocks=CORES, traits=frozenset({"CUSTOM_A"})),
    "n12": Node(parent="cn1", stocks=CORES),
    "n21": Node(parent="cn2", stocks=CORES, aggregates=frozenset({"agg-2"})),
    "n22": Node(parent="cn2", stocks=CORES),
    "ss": Node(
        stocks={"DISK_GB": Stock(1000)}, aggregates=frozenset({"agg-1"}), traits=frozenset({SHARES, "CUSTOM_B"})
    ),
    "ssb": Node(stocks={"DISK_GB": Stock(1000)}, aggregates=frozenset({"agg-2"}), traits=frozenset({SHARES})),
}
IN_B = (frozenset({"agg-2"}),)
ALL_THREE = {"VCPU": 1, "MEMORY_MB": 64, "DISK_GB": 10}


def allocations_of(query, world=WORLD):
    """Return the allocations of all candidates as sorted text: provider=CLASS:amount."""
    state = state_of(world)
    results = [result_of(state, each) for each in search(state, compiled_of(state, query))]
    assert set(results) == all_candidates(world, query)
    return sorted(" ".join(sorted(f"{name}={kind}:{amount}" for name, kind, amount in takes)) for takes, _ in results)


def one_group(**fields):
    return Query(groups=(Group(**fields),))


def test_an_aggregate_on_the_root_spans_its_tree_but_not_the_sharing_provider():
    assert allocations_of(one_group(resources=ALL_THREE, member_of=IN_B)) == [
        "cn1=DISK_GB:10 cn1=MEMORY_MB:64 n11=VCPU:1",
        "cn1=DISK_GB:10 cn1=MEMORY_MB:64 n12=VCPU:1",
        "cn1=MEMORY_MB:64 n11=VCPU:1 ssb=DISK_GB:10",
        "cn1=MEMORY_MB:64 n12=VCPU:1 ssb=DISK_GB:10",
    ]


def test_a_forbidden_aggregate_on_the_root_spans_its_tree():
    assert allocations_of(one_group(resources=ALL_THREE, forbidden_aggregates=frozenset({"agg-2"}))) == [
        "cn2=DISK_GB:10 cn2=MEMORY_MB:64 n22=VCPU:1",
        "cn2=MEMORY_MB:64 n22=VCPU:1 ss=DISK_GB:10",
    ]


def test_required_traits_may_come_from_different_providers():
    required = (frozenset({"CUSTOM_B"}), frozenset({"CUSTOM_A"}))
    assert allocations_of(one_group(resources={"VCPU": 1, "DISK_GB": 10}, required=required)) == [
        "n11=VCPU:1 ss=DISK_GB:10"
    ]


def test_a_sharing_provider_alone_is_a_candidate_once():
    assert allocations_of(one_group(resources={"DISK_GB": 10})) == [
        "cn1=DISK_GB:10",
        "cn2=DISK_GB:10",
        "ss=DISK_GB:10",
        "ssb=DISK_GB:10",
    ]


def test_aggregates_of_the_root_do_not_span_suffixed_groups():
    assert allocations_of(one_group(suffix="1", resources={"VCPU": 1}, member_of=IN_B)) == ["n21=VCPU:1"]


def test_equal_allocations_with_swapped_mappings_are_two_candidates():
    groups = (Group("1", {"VCPU": 8}, in_tree="cn1"), Group("2", {"VCPU": 8}))
    assert allocations_of(Query(groups=groups)) == ["n11=VCPU:8 n12=VCPU:8"] * 2


def test_nothing_is_shared_into_a_tree_requested_by_name():
    assert allocations_of(one_group(resources={"VCPU": 1, "DISK_GB": 10}, in_tree="cn1")) == [
        "cn1=DISK_GB:10 n11=VCPU:1",
        "cn1=DISK_GB:10 n12=VCPU:1",
    ]


def test_old_clients_get_at_most_one_provider_per_tree():
    assert allocations_of(replace(one_group(resources={"VCPU": 1, "MEMORY_MB": 64}), one_provider_a_tree=True)) == []


def test_old_clients_get_roots_with_disks_shared_with_their_trees():
    assert allocations_of(replace(one_group(resources={"MEMORY_MB": 64, "DISK_GB": 10}), one_provider_a_tree=True)) == [
        "cn1=DISK_GB:10 cn1=MEMORY_MB:64",
        "cn1=MEMORY_MB:64 ss=DISK_GB:10",
        "cn1=MEMORY_MB:64 ssb=DISK_GB:10",
        "cn2=DISK_GB:10 cn2=MEMORY_MB:64",
        "cn2=MEMORY_MB:64 ss=DISK_GB:10",
        "cn2=MEMORY_MB:64 ssb=DISK_GB:10",
    ]


# --- single rules -----------------------------------------------------------------------------------------------------

HOST = {
    "host": Node(stocks={"VCPU": Stock(16)}),
    "numa0": Node(parent="host", traits=frozenset({"CUSTOM_A"})),
    "numa1": Node(parent="host"),
    "gpu0": Node(parent="numa0", stocks={"CUSTOM_DEVICE": Stock(1)}),
    "gpu1": Node(parent="numa0", stocks={"CUSTOM_DEVICE": Stock(1)}),
    "gpu2": Node(parent="numa1", stocks={"CUSTOM_DEVICE": Stock(1)}),
}


def devices(count, **other):
    return tuple(Group(f"_{number}", {"CUSTOM_DEVICE": 1}, **other) for number in range(count))


def test_isolation_applies_only_to_groups_with_a_suffix():
    one_big = {"host": Node(stocks={"VCPU": Stock(16)})}
    groups = (Group("", {"VCPU": 1}), Group("_1", {"VCPU": 1}))
    assert allocations_of(Query(groups=groups, policy="isolate"), one_big) == ["host=VCPU:2"]
    assert allocations_of(Query(groups=(*groups, Group("_2", {"VCPU": 1})), policy="isolate"), one_big) == []
    assert allocations_of(Query(groups=(*groups, Group("_2", {"VCPU": 1}))), one_big) == ["host=VCPU:3"]


def test_groups_without_resources_are_mapped_and_count_for_isolation():
    here = Group("_here", required=(frozenset({"CUSTOM_A"}),))
    query = Query(groups=(*devices(1), here), policy="isolate", same_subtree=(frozenset({"_0", "_here"}),))
    assert allocations_of(query, HOST) == ["gpu0=CUSTOM_DEVICE:1", "gpu1=CUSTOM_DEVICE:1"]
    state = state_of(HOST)
    first = to_candidate(state, next(search(state, compiled_of(state, query))))
    gpu, numa = str(uuid_of("gpu0")), str(uuid_of("numa0"))
    assert first.allocations == {gpu: {"CUSTOM_DEVICE": 1}}
    assert first.mappings == {"_0": (gpu,), "_here": (numa,)}


@pytest.mark.parametrize("fields", [{"forbidden": frozenset({"CUSTOM_C"})}, {"in_tree": "host"}])
def test_a_group_without_resources_needs_a_trait_or_an_aggregate(fields):
    assert allocations_of(Query(groups=(*devices(1), Group("_here", **fields))), HOST) == []


def test_groups_of_one_subtree_have_a_common_ancestor_among_them():
    pair = Query(groups=devices(2), policy="none", same_subtree=(frozenset({"_0", "_1"}),))
    assert allocations_of(pair, HOST) == []  # siblings without their NUMA node are no subtree
    roomy = {**HOST, "gpu0": replace(HOST["gpu0"], stocks={"CUSTOM_DEVICE": Stock(2)})}
    assert allocations_of(pair, roomy) == ["gpu0=CUSTOM_DEVICE:2"]  # one provider is a subtree


def test_sums_obey_capacity_and_max_unit_but_not_step_size():
    def allocations_on(stock, amounts):
        groups = tuple(Group(f"_{number}", {"VCPU": amount}) for number, amount in enumerate(amounts))
        return allocations_of(Query(groups=groups), {"host": Node(stocks={"VCPU": stock})})

    assert allocations_on(Stock(8, used=4), (2, 2)) == ["host=VCPU:4"]
    assert allocations_on(Stock(8, used=5), (2, 2)) == []
    assert allocations_on(Stock(8, max_unit=3), (2, 2)) == []
    assert allocations_on(Stock(8, min_unit=2, step_size=2), (2, 4)) == ["host=VCPU:6"]


def test_root_traits_apply_to_the_anchor_not_to_sharing_providers():
    fields = {"resources": {"MEMORY_MB": 64, "DISK_GB": 10}}
    world = {**WORLD, "cn1": replace(WORLD["cn1"], traits=frozenset({"CUSTOM_C"}))}
    results = allocations_of(replace(one_group(**fields), root_required=frozenset({"CUSTOM_C"})), world)
    assert len(results) == 3
    assert all("cn1=MEMORY_MB" in each for each in results)
    assert allocations_of(replace(one_group(resources={"DISK_GB": 1}), root_forbidden=frozenset({SHARES}))) == [
        "cn1=DISK_GB:1",
        "cn2=DISK_GB:1",
        "ss=DISK_GB:1",  # for the trees it shares with
        "ssb=DISK_GB:1",
    ]


def test_unknown_names_are_reported_or_match_nothing():
    state = state_of(HOST)
    group = ResourceGroup(resources={"CUSTOM_NONE": 1}, required=(frozenset({"CUSTOM_X", "CUSTOM_A"}),))
    assert compile_query(state, CandidateQuery(groups=(group,))) == UnknownNames(
        resource_classes=("CUSTOM_NONE",), traits=("CUSTOM_X",)
    )
    for fields in ({"member_of": (frozenset({"agg-nowhere"}),)}, {"in_tree": "nobody"}):
        assert allocations_of(one_group(resources={"VCPU": 1}, **fields), HOST) == []
    assert allocations_of(one_group(resources={"VCPU": 1}, forbidden_aggregates=frozenset({"agg-nowhere"})), HOST) == [
        "host=VCPU:1"
    ]


def test_empty_group_is_ignored_but_one_with_only_traits_matches_none():
    device = ResourceGroup(suffix="_1", resources={"CUSTOM_DEVICE": 1})
    state = state_of(HOST)
    for empty, count in ((ResourceGroup(), 3), (ResourceGroup(forbidden=frozenset({"CUSTOM_C"})), 0)):
        compiled = compile_query(state, CandidateQuery(groups=(empty, device)))
        assert isinstance(compiled, CompiledQuery)
        assert len(list(search(state, compiled))) == count


def test_limit_argument_overrides_the_limit_of_the_query():
    state = state_of(HOST)
    compiled = compile_query(state, CandidateQuery(groups=query_of(Query(devices(1))).groups, limit=2))
    assert isinstance(compiled, CompiledQuery)
    assert len(list(search(state, compiled))) == 2
    assert len(list(search(state, compiled, limit=3))) == 3


def test_breadth_first_visits_every_anchor_before_any_twice():
    world = {}
    for number in range(3):
        world |= {
            f"{number}{name}": replace(node, parent=node.parent and f"{number}{node.parent}")
            for name, node in HOST.items()
        }
    state = state_of(world)
    compiled = compiled_of(state, Query(devices(1)))
    anchors = [each.anchor for each in search(state, compiled, order="breadth-first")]
    assert anchors == [0, 6, 12] * 3
    assert [each.anchor for each in search(state, compiled)] == [0, 0, 0, 6, 6, 6, 12, 12, 12]
    assert [each.anchor for each in search(state, compiled, anchors=[12, 0], limit=4)] == [12, 12, 12, 0]


def test_only_roots_are_anchors():
    state = state_of(HOST)
    compiled = compiled_of(state, Query(devices(1)))
    assert list(search(state, compiled, anchors=[1, 3])) == []
    assert np.flatnonzero(possible_roots(state, compiled)).tolist() == [0]


# --- wide trees -------------------------------------------------------------------------------------------------------


def wide_tree(count, total=1):
    world = {"host": Node(stocks={"VCPU": Stock(16)})}
    return world | {
        f"d{number}": Node(parent="host", stocks={"CUSTOM_DEVICE": Stock(total)}) for number in range(count)
    }


@pytest.mark.parametrize("policy", ["isolate", "none"])
def test_eight_groups_on_eight_devices_have_all_permutations_and_nine_have_none(policy):
    state = state_of(wide_tree(8))
    results = list(search(state, compiled_of(state, Query(devices(8), policy=policy))))
    assert len(results) == len(set(results)) == 40_320
    assert len({each.takes for each in results}) == 1
    assert list(search(state, compiled_of(state, Query(devices(9), policy=policy)))) == []
    equal = compiled_of(state, Query(devices(8), policy=policy))
    assert len(list(search(state, equal, distinct_mappings=False))) == 1


def mixed_groups(threes, ones):
    return tuple(Group(f"_{number}", {"CUSTOM_DEVICE": 3 if number < threes else 1}) for number in range(threes + ones))


@pytest.mark.parametrize(
    ("groups", "total", "count"), [(mixed_groups(8, 8), 4, 50), (mixed_groups(8, 9), 4, 0), (mixed_groups(9, 0), 4, 0)]
)
def test_amounts_of_several_sizes_need_no_exhaustive_search(groups, total, count):
    state = state_of(wide_tree(8, total))
    results = list(islice(search(state, compiled_of(state, Query(groups))), 50))
    assert len(results) == count


def test_too_many_subtree_pairs_need_no_exhaustive_search():
    world = {"host": Node()}
    for number in range(8):
        world[f"numa{number}"] = Node(parent="host", stocks={"VCPU": Stock(8)})
        world[f"gpu{number}"] = Node(parent=f"numa{number}", stocks={"CUSTOM_DEVICE": Stock(1)})
    groups, subtrees = [], []
    for number in range(4):
        names = [f"_cpu{number}", f"_a{number}", f"_b{number}"]
        groups += [
            Group(names[0], {"VCPU": 4}),
            Group(names[1], {"CUSTOM_DEVICE": 1}),
            Group(names[2], {"CUSTOM_DEVICE": 1}),
        ]
        subtrees.append(frozenset(names))
    state = state_of(world)
    query = Query(tuple(groups), policy="isolate", same_subtree=tuple(subtrees))
    assert list(search(state, compiled_of(state, query))) == []
