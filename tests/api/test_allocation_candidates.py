from random import Random

import pytest

from roost.api.answer_options import Options
from tests.reference.candidates import Node, Stock
from tests.support.fleets.forests import state_of, uuid_of
from tests.support.fleets.shared_disks import CORES, WORLD, allocation_texts, query_candidates, refusal_of
from tests.support.servers.candidate_urls import Columns


@pytest.fixture
def columns():
    """The worked example behind the API."""
    return Columns(state_of(WORLD))


ALL_THREE = "resources=VCPU:1,MEMORY_MB:64,DISK_GB:10"

# --- the rows of the worked example -----------------------------------------------------------------------------------


def test_root_aggregate_spans_its_tree(columns):
    assert allocation_texts(query_candidates(columns, f"{ALL_THREE}&member_of=<agg-2>")) == [
        "cn1=DISK_GB:10 cn1=MEMORY_MB:64 n11=VCPU:1",
        "cn1=DISK_GB:10 cn1=MEMORY_MB:64 n12=VCPU:1",
        "cn1=MEMORY_MB:64 n11=VCPU:1 ssb=DISK_GB:10",
        "cn1=MEMORY_MB:64 n12=VCPU:1 ssb=DISK_GB:10",
    ]


def test_forbidden_root_aggregate_spans_its_tree(columns):
    assert allocation_texts(query_candidates(columns, f"{ALL_THREE}&member_of=!<agg-2>")) == [
        "cn2=DISK_GB:10 cn2=MEMORY_MB:64 n22=VCPU:1",
        "cn2=MEMORY_MB:64 n22=VCPU:1 ss=DISK_GB:10",
    ]


def test_required_traits_may_be_spread_over_the_providers(columns):
    response = query_candidates(columns, "resources=VCPU:1,DISK_GB:10&required=CUSTOM_B,CUSTOM_A")
    assert allocation_texts(response) == ["n11=VCPU:1 ss=DISK_GB:10"]


def test_sharing_provider_is_a_candidate_and_summaries_cover_trees(columns):
    response = query_candidates(columns, "resources=DISK_GB:10")
    assert allocation_texts(response) == ["cn1=DISK_GB:10", "cn2=DISK_GB:10", "ss=DISK_GB:10", "ssb=DISK_GB:10"]
    assert set(response["provider_summaries"]) == set(WORLD)


def test_suffixed_group_checks_the_aggregates_of_its_own_provider(columns):
    response = query_candidates(columns, "resources1=VCPU:1&member_of1=<agg-2>")
    assert allocation_texts(response) == ["n21=VCPU:1"]
    assert response["allocation_requests"][0]["mappings"] == {"1": ["n21"]}


def test_swapped_mappings_are_separate_candidates(columns):
    query = "resources1=VCPU:8&resources2=VCPU:8&group_policy=none&in_tree1=<cn1>"
    mappings = [each["mappings"] for each in query_candidates(columns, query)["allocation_requests"]]
    assert mappings == [{"1": ["n11"], "2": ["n12"]}, {"1": ["n12"], "2": ["n11"]}]
    assert allocation_texts(query_candidates(columns, query, 33)) == ["n11=VCPU:8 n12=VCPU:8"] * 2


def test_in_tree_excludes_sharing_providers(columns):
    assert allocation_texts(query_candidates(columns, "resources=VCPU:1,DISK_GB:10&in_tree=<cn1>")) == [
        "cn1=DISK_GB:10 n11=VCPU:1",
        "cn1=DISK_GB:10 n12=VCPU:1",
    ]


def test_old_versions_do_not_combine_providers_of_a_tree(columns):
    assert query_candidates(columns, "resources=VCPU:1,MEMORY_MB:64", 28) == {
        "allocation_requests": [],
        "provider_summaries": {},
    }


def test_old_versions_combine_roots_with_sharing_providers(columns):
    assert allocation_texts(query_candidates(columns, "resources=MEMORY_MB:64,DISK_GB:10", 11)) == [
        "cn1=DISK_GB:10 cn1=MEMORY_MB:64",
        "cn1=MEMORY_MB:64 ss=DISK_GB:10",
        "cn1=MEMORY_MB:64 ssb=DISK_GB:10",
        "cn2=DISK_GB:10 cn2=MEMORY_MB:64",
        "cn2=MEMORY_MB:64 ss=DISK_GB:10",
        "cn2=MEMORY_MB:64 ssb=DISK_GB:10",
    ]


# --- response by version ----------------------------------------------------------------------------------------------


def test_response_fields_by_version(columns):
    def grouped_response(version):
        response = query_candidates(
            columns, "resources=DISK_GB:10&resources1=MEMORY_MB:1&in_tree1=<cn1>&in_tree=<cn1>", version
        )
        return response["allocation_requests"], response["provider_summaries"]

    def disk_response(version):
        response = query_candidates(columns, "resources=DISK_GB:10", version)
        return response["allocation_requests"][0], response["provider_summaries"]["cn1"]

    disk = {"DISK_GB": {"capacity": 1000, "used": 0}}
    both = disk | {"MEMORY_MB": {"capacity": 1024, "used": 0}}
    listed = {"allocations": [{"resource_provider": {"uuid": "cn1"}, "resources": {"DISK_GB": 10}}]}
    by_name = {"allocations": {"cn1": {"resources": {"DISK_GB": 10}}}}
    assert disk_response(11) == (listed, {"resources": disk})
    assert disk_response(12) == (by_name, {"resources": disk})
    assert disk_response(17) == disk_response(26) == (by_name, {"resources": disk, "traits": []})
    assert disk_response(27) == (by_name, {"resources": both, "traits": []})
    whole = {"resources": both, "traits": [], "parent_provider_uuid": None, "root_provider_uuid": "cn1"}
    assert disk_response(29) == (by_name, whole)
    requests, summaries = grouped_response(34)
    assert requests == [
        {
            "allocations": {"cn1": {"resources": {"DISK_GB": 10, "MEMORY_MB": 1}}},
            "mappings": {"": ["cn1"], "1": ["cn1"]},
        }
    ]
    assert set(summaries) == {"cn1", "n11", "n12"}
    assert summaries["n11"] == {
        "resources": {"VCPU": {"capacity": 8, "used": 0}},
        "traits": ["CUSTOM_A"],
        "parent_provider_uuid": "cn1",
        "root_provider_uuid": "cn1",
    }


def test_summary_shows_a_capacity_beyond_64_bits():
    stock = Stock(2_147_483_647, ratio=3.4e38)
    columns = Columns(state_of({"big": Node(stocks={"VCPU": stock})}))
    _, body = columns.get("/allocation_candidates?resources=VCPU:1")
    (summary,) = body["provider_summaries"].values()
    assert summary["resources"] == {"VCPU": {"capacity": int(2_147_483_647 * 3.4e38), "used": 0}}


def test_cache_headers_appear_in_version_1_15(columns):
    for version, expected in ((14, None), (15, "no-cache")):
        headers = columns.response("/allocation_candidates?resources=VCPU:1", version).headers
        assert headers.get("cache-control") == expected
        assert ("last-modified" in headers) == (expected is not None)


# --- number and order -------------------------------------------------------------------------------------------------


def test_first_limit_parameter_counts(columns):
    for query, count in (("limit=1", 1), ("limit=3&limit=1", 3), ("limit=99999999999999999999999", 4)):
        assert len(query_candidates(columns, f"resources=VCPU:1&{query}")["allocation_requests"]) == count


def test_limited_candidates_have_summaries_of_their_trees_only(columns):
    assert set(query_candidates(columns, "resources=VCPU:1&limit=1")["provider_summaries"]) == {"cn1", "n11", "n12"}


@pytest.mark.parametrize(
    ("strategy", "roots"), [("depth-first", ["cn1", "cn1", "cn2"]), ("breadth-first", ["cn1", "cn2", "cn1"])]
)
def test_generation_strategy_orders_candidates_of_trees(strategy, roots):
    options = Options(allocation_candidates_generation_strategy=strategy, max_allocation_candidates=3)
    response = query_candidates(Columns(state_of(WORLD), options), "resources=VCPU:1")
    used = [next(iter(each["allocations"])) for each in response["allocation_requests"]]
    assert [WORLD[name].parent for name in used] == roots


def test_random_selection_is_a_subset_of_the_candidates():
    candidates = allocation_texts(query_candidates(Columns(state_of(WORLD)), "resources=DISK_GB:1"))
    randomized = Columns(state_of(WORLD), Options(randomize_allocation_candidates=True))
    parts = {tuple(allocation_texts(query_candidates(randomized, "resources=DISK_GB:1&limit=2"))) for _ in range(60)}
    assert len(parts) > 1
    assert all(len(part) == 2 and set(part) <= set(candidates) for part in parts)
    assert allocation_texts(query_candidates(randomized, "resources=DISK_GB:1")) == candidates
    few = Options(randomize_allocation_candidates=True, max_allocation_candidates=1)
    assert len(allocation_texts(query_candidates(Columns(state_of(WORLD), few), "resources=DISK_GB:1&limit=2"))) == 1


@pytest.mark.parametrize("nested", [False, True])
def test_too_large_response_is_refused(nested):
    world = {f"host-{number}": Node(stocks=CORES) for number in range(20)}
    if nested:
        world["child"] = Node(parent="host-0", stocks=CORES)
    columns = Columns(state_of(world), Options(candidates_max_bytes=1000))
    assert refusal_of(columns, "resources=VCPU:1")[1] == (
        "The candidates need more than 1,000 bytes (limit placement.candidates_max_bytes); "
        "ask for fewer with the parameter limit."
    )
    assert len(query_candidates(columns, "resources=VCPU:1&limit=5")["allocation_requests"]) == 5


def test_too_many_groups_are_refused():
    columns = Columns(state_of(WORLD), Options(groups_max=2))
    query = "&".join(f"resources{number}=VCPU:1" for number in range(1, 4))
    assert refusal_of(columns, f"{query}&group_policy=none")[1] == (
        "The query has 3 groups, and may have 2 (limit placement.groups_max)."
    )


# --- caches between requests ------------------------------------------------------------------------------------------


def test_new_names_are_found_by_repeated_queries(columns):
    new = str(uuid_of("another"))
    assert query_candidates(columns, f"resources=VCPU:1&member_of=in:{new},<agg-2>")["allocation_requests"]
    assert not query_candidates(columns, f"resources=VCPU:1&member_of={new}")["allocation_requests"]
    for _ in range(600):  # More query strings than the cache holds.
        query_candidates(columns, f"resources=VCPU:1&limit={Random().randint(1, 10**9)}")
    assert len(allocation_texts(query_candidates(columns, "resources=VCPU:1"))) == 4


def test_first_group_policy_counts(columns):
    query = "resources1=VCPU:1&resources2=VCPU:1&in_tree1=<cn1>&in_tree2=<cn1>"
    none, isolate = (
        allocation_texts(query_candidates(columns, f"{query}&group_policy={each}")) for each in ("none", "isolate")
    )
    assert none != isolate
    assert allocation_texts(query_candidates(columns, f"{query}&group_policy=isolate&group_policy=none")) == isolate
    assert allocation_texts(query_candidates(columns, f"{query}&group_policy=none&group_policy=isolate")) == none
