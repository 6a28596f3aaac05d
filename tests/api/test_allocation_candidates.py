from random import Random

import pytest

from roost.api.answer_options import Options
from tests.reference.candidates import Node, Stock
from tests.support.fleets.forests import state_of, uuid_of
from tests.support.fleets.shared_disks import CORES, WORLD, ask, held, refused
from tests.support.servers.candidate_urls import Columns


@pytest.fixture
def columns():
    """The worked example behind the API."""
    return Columns(state_of(WORLD))


ALL_THREE = "resources=VCPU:1,MEMORY_MB:64,DISK_GB:10"

# --- the rows of the worked example -----------------------------------------------------------------------------------


def test_an_aggregate_of_a_root_spans_its_tree(columns):
    assert held(ask(columns, f"{ALL_THREE}&member_of=<agg-2>")) == [
        "cn1=DISK_GB:10 cn1=MEMORY_MB:64 n11=VCPU:1",
        "cn1=DISK_GB:10 cn1=MEMORY_MB:64 n12=VCPU:1",
        "cn1=MEMORY_MB:64 n11=VCPU:1 ssb=DISK_GB:10",
        "cn1=MEMORY_MB:64 n12=VCPU:1 ssb=DISK_GB:10",
    ]


def test_a_forbidden_aggregate_of_a_root_spans_its_tree(columns):
    assert held(ask(columns, f"{ALL_THREE}&member_of=!<agg-2>")) == [
        "cn2=DISK_GB:10 cn2=MEMORY_MB:64 n22=VCPU:1",
        "cn2=MEMORY_MB:64 n22=VCPU:1 ss=DISK_GB:10",
    ]


def test_traits_are_worn_by_all_together_who_give(columns):
    answer = ask(columns, "resources=VCPU:1,DISK_GB:10&required=CUSTOM_B,CUSTOM_A")
    assert held(answer) == ["n11=VCPU:1 ss=DISK_GB:10"]


def test_who_shares_is_a_candidate_alone_and_summaries_tell_of_whole_trees(columns):
    answer = ask(columns, "resources=DISK_GB:10")
    assert held(answer) == ["cn1=DISK_GB:10", "cn2=DISK_GB:10", "ss=DISK_GB:10", "ssb=DISK_GB:10"]
    assert set(answer["provider_summaries"]) == set(WORLD)


def test_a_group_with_a_suffix_is_in_the_aggregate_itself(columns):
    answer = ask(columns, "resources1=VCPU:1&member_of1=<agg-2>")
    assert held(answer) == ["n21=VCPU:1"]
    assert answer["allocation_requests"][0]["mappings"] == {"1": ["n21"]}


def test_swapped_mappings_are_two_candidates_also_where_they_are_not_shown(columns):
    query = "resources1=VCPU:8&resources2=VCPU:8&group_policy=none&in_tree1=<cn1>"
    mappings = [each["mappings"] for each in ask(columns, query)["allocation_requests"]]
    assert mappings == [{"1": ["n11"], "2": ["n12"]}, {"1": ["n12"], "2": ["n11"]}]
    assert held(ask(columns, query, 33)) == ["n11=VCPU:8 n12=VCPU:8"] * 2


def test_nothing_is_shared_with_a_tree_that_is_named(columns):
    assert held(ask(columns, "resources=VCPU:1,DISK_GB:10&in_tree=<cn1>")) == [
        "cn1=DISK_GB:10 n11=VCPU:1",
        "cn1=DISK_GB:10 n12=VCPU:1",
    ]


def test_old_clients_get_no_two_providers_of_a_tree(columns):
    assert ask(columns, "resources=VCPU:1,MEMORY_MB:64", 28) == {"allocation_requests": [], "provider_summaries": {}}


def test_old_clients_get_roots_with_what_is_shared_with_any_part_of_their_trees(columns):
    assert held(ask(columns, "resources=MEMORY_MB:64,DISK_GB:10", 11)) == [
        "cn1=DISK_GB:10 cn1=MEMORY_MB:64",
        "cn1=MEMORY_MB:64 ss=DISK_GB:10",
        "cn1=MEMORY_MB:64 ssb=DISK_GB:10",
        "cn2=DISK_GB:10 cn2=MEMORY_MB:64",
        "cn2=MEMORY_MB:64 ss=DISK_GB:10",
        "cn2=MEMORY_MB:64 ssb=DISK_GB:10",
    ]


# --- what each version shows ------------------------------------------------------------------------------------------


def test_what_is_shown_grows_with_the_version(columns):
    def shown(version):
        answer = ask(columns, "resources=DISK_GB:10&resources1=MEMORY_MB:1&in_tree1=<cn1>&in_tree=<cn1>", version)
        return answer["allocation_requests"], answer["provider_summaries"]

    def of_disk(version):
        answer = ask(columns, "resources=DISK_GB:10", version)
        return answer["allocation_requests"][0], answer["provider_summaries"]["cn1"]

    disk = {"DISK_GB": {"capacity": 1000, "used": 0}}
    both = disk | {"MEMORY_MB": {"capacity": 1024, "used": 0}}
    listed = {"allocations": [{"resource_provider": {"uuid": "cn1"}, "resources": {"DISK_GB": 10}}]}
    by_name = {"allocations": {"cn1": {"resources": {"DISK_GB": 10}}}}
    assert of_disk(11) == (listed, {"resources": disk})
    assert of_disk(12) == (by_name, {"resources": disk})
    assert of_disk(17) == of_disk(26) == (by_name, {"resources": disk, "traits": []})
    assert of_disk(27) == (by_name, {"resources": both, "traits": []})
    whole = {"resources": both, "traits": [], "parent_provider_uuid": None, "root_provider_uuid": "cn1"}
    assert of_disk(29) == (by_name, whole)
    requests, summaries = shown(34)
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


def test_summaries_show_room_that_no_column_could_count():
    stock = Stock(2_147_483_647, ratio=3.4e38)
    columns = Columns(state_of({"big": Node(stocks={"VCPU": stock})}))
    _, body = columns.get("/allocation_candidates?resources=VCPU:1")
    (summary,) = body["provider_summaries"].values()
    assert summary["resources"] == {"VCPU": {"capacity": int(2_147_483_647 * 3.4e38), "used": 0}}


def test_caches_are_told_since_when_there_are_such_headers(columns):
    for version, expected in ((14, None), (15, "no-cache")):
        headers = columns.response("/allocation_candidates?resources=VCPU:1", version).headers
        assert headers.get("cache-control") == expected
        assert ("last-modified" in headers) == (expected is not None)


# --- how many, and in which order -------------------------------------------------------------------------------------


def test_the_first_limit_counts(columns):
    for query, count in (("limit=1", 1), ("limit=3&limit=1", 3), ("limit=99999999999999999999999", 4)):
        assert len(ask(columns, f"resources=VCPU:1&{query}")["allocation_requests"]) == count


def test_fewer_candidates_tell_of_fewer_trees(columns):
    assert set(ask(columns, "resources=VCPU:1&limit=1")["provider_summaries"]) == {"cn1", "n11", "n12"}


@pytest.mark.parametrize(
    ("strategy", "roots"), [("depth-first", ["cn1", "cn1", "cn2"]), ("breadth-first", ["cn1", "cn2", "cn1"])]
)
def test_trees_come_one_after_the_other_or_in_turn(strategy, roots):
    options = Options(allocation_candidates_generation_strategy=strategy, max_allocation_candidates=3)
    answer = ask(Columns(state_of(WORLD), options), "resources=VCPU:1")
    used = [next(iter(each["allocations"])) for each in answer["allocation_requests"]]
    assert [WORLD[name].parent for name in used] == roots


def test_a_random_part_is_a_part_of_what_is_generated():
    everything = held(ask(Columns(state_of(WORLD)), "resources=DISK_GB:1"))
    drawing = Columns(state_of(WORLD), Options(randomize_allocation_candidates=True))
    parts = {tuple(held(ask(drawing, "resources=DISK_GB:1&limit=2"))) for _ in range(60)}
    assert len(parts) > 1
    assert all(len(part) == 2 and set(part) <= set(everything) for part in parts)
    assert held(ask(drawing, "resources=DISK_GB:1")) == everything
    few = Options(randomize_allocation_candidates=True, max_allocation_candidates=1)
    assert len(held(ask(Columns(state_of(WORLD), few), "resources=DISK_GB:1&limit=2"))) == 1


@pytest.mark.parametrize("nested", [False, True])
def test_an_answer_that_would_be_too_large_is_refused(nested):
    world = {f"host-{number}": Node(stocks=CORES) for number in range(20)}
    if nested:
        world["child"] = Node(parent="host-0", stocks=CORES)
    columns = Columns(state_of(world), Options(candidates_max_bytes=1000))
    assert refused(columns, "resources=VCPU:1")[1] == (
        "The candidates need more than 1,000 bytes (limit placement.candidates_max_bytes); "
        "ask for fewer with the parameter limit."
    )
    assert len(ask(columns, "resources=VCPU:1&limit=5")["allocation_requests"]) == 5


def test_too_many_groups_are_refused():
    columns = Columns(state_of(WORLD), Options(groups_max=2))
    query = "&".join(f"resources{number}=VCPU:1" for number in range(1, 4))
    assert refused(columns, f"{query}&group_policy=none")[1] == (
        "The query has 3 groups, and may have 2 (limit placement.groups_max)."
    )


# --- what is kept between requests ------------------------------------------------------------------------------------


def test_a_query_is_understood_anew_when_a_name_comes_to_be(columns):
    new = str(uuid_of("another"))
    assert ask(columns, f"resources=VCPU:1&member_of=in:{new},<agg-2>")["allocation_requests"]
    assert not ask(columns, f"resources=VCPU:1&member_of={new}")["allocation_requests"]
    for _ in range(600):  # More query strings than are kept.
        ask(columns, f"resources=VCPU:1&limit={Random().randint(1, 10**9)}")
    assert len(held(ask(columns, "resources=VCPU:1"))) == 4


def test_of_several_policies_for_groups_the_first_counts(columns):
    query = "resources1=VCPU:1&resources2=VCPU:1&in_tree1=<cn1>&in_tree2=<cn1>"
    none, isolate = (held(ask(columns, f"{query}&group_policy={each}")) for each in ("none", "isolate"))
    assert none != isolate
    assert held(ask(columns, f"{query}&group_policy=isolate&group_policy=none")) == isolate
    assert held(ask(columns, f"{query}&group_policy=none&group_policy=isolate")) == none
