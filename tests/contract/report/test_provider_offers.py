"""What one provider offers, written where it differs."""

import pytest

from roost.errors import BadRequest, Conflict, InUse, NotFound
from tests.support.agents.report_clients import VCPU


@pytest.fixture
def rooted(world):
    """Give a client that knows the tree of ``host``, which offers VCPU and MEMORY_MB."""
    client, _ = world.rooted()
    world.network.asked.clear()
    return client


def test_inventories_replace_all_there_were(world, rooted):
    rooted.set_inventory_for_provider(world.u("host"), {"VCPU": VCPU, "DISK_GB": {"total": 5}})
    assert world.totals("host") == {"VCPU": 8, "DISK_GB": 5}
    rooted.set_inventory_for_provider(world.u("host"), {})
    assert world.totals("host") == {}


def test_nothing_is_asked_where_nothing_differs(world, rooted):
    rooted.set_inventory_for_provider(world.u("host"), {"VCPU": {"total": 8}, "MEMORY_MB": {"total": 1024}})
    rooted.set_traits_for_provider(world.u("host"), set())
    rooted.set_aggregates_for_provider(world.u("host"), set())
    assert world.network.asked == []


def test_what_placement_filled_in_is_no_difference_later(world, rooted):
    rooted.set_inventory_for_provider(world.u("host"), {"DISK_GB": {"total": 5}})
    world.network.asked.clear()
    rooted.set_inventory_for_provider(world.u("host"), {"DISK_GB": {"total": 5, "allocation_ratio": 1.0}})
    rooted.set_inventory_for_provider(world.u("host"), {"DISK_GB": {"total": 5}})
    assert world.network.asked == []


def test_custom_classes_are_created_and_standard_ones_are_not(world, rooted):
    rooted.set_inventory_for_provider(world.u("host"), {"CUSTOM_GOLD": {"total": 5}, "VCPU": VCPU})
    assert world.totals("host") == {"CUSTOM_GOLD": 5, "VCPU": 8}
    assert world.network.paths("PUT")[:-1] == ["/resource_classes/CUSTOM_GOLD"]


@pytest.mark.parametrize("inventory", [{"CUSTOM_ä": {"total": 1}}, {"GOLD": {"total": 1}}, {"VCPU": {"total": 0}}])
def test_an_inventory_that_cannot_be_meant_is_refused(world, rooted, inventory):
    with pytest.raises(BadRequest, match="Placement refuses PUT /resource_"):
        rooted.set_inventory_for_provider(world.u("host"), inventory)
    assert world.totals("host") == {"VCPU": 8, "MEMORY_MB": 1024}


def test_a_class_of_which_something_is_held_does_not_go(world, rooted):
    world.hold("instance", host={"VCPU": 1})
    rooted.forget()
    rooted.get_provider_tree_and_ensure_root(world.u("host"))
    with pytest.raises(InUse, match=r"inventories of provider .* cannot be replaced"):
        rooted.set_inventory_for_provider(world.u("host"), {"MEMORY_MB": {"total": 1}})
    assert world.totals("host") == {"VCPU": 8, "MEMORY_MB": 1024}


def test_each_write_makes_the_next_one_possible(world, rooted):
    """Inventories and aggregates always count as a change, traits only where they are one; all of it is followed."""
    for total in (4, 5):
        rooted.set_inventory_for_provider(world.u("host"), {"VCPU": {**VCPU, "total": total}})
        rooted.set_traits_for_provider(world.u("host"), {"HW_CPU_X86_AVX", f"CUSTOM_T{total}"})
        rooted.set_aggregates_for_provider(world.u("host"), {world.u("agg"), world.u(f"agg {total}")})
    tree = rooted.get_provider_tree_and_ensure_root(world.u("host"))
    assert tree.data(world.u("host")).generation == world.generation("host") == 1 + 3 * 2
    assert world.totals("host") == {"VCPU": 5}
    assert set(world.of("host", "traits")) == {"HW_CPU_X86_AVX", "CUSTOM_T5"}
    assert set(world.of("host", "aggregates")) == {world.u("agg"), world.u("agg 5")}


@pytest.mark.parametrize(
    "act",
    [
        lambda client, uuid: client.set_inventory_for_provider(uuid, {"VCPU": VCPU}),
        lambda client, uuid: client.set_traits_for_provider(uuid, {"HW_CPU_X86_AVX"}),
        lambda client, uuid: client.set_aggregates_for_provider(uuid, {uuid}),
    ],
    ids=["inventory", "traits", "aggregates"],
)
def test_who_was_slower_reads_again(world, rooted, act):
    world.offer("host", VCPU=3)
    with pytest.raises(Conflict):
        act(rooted, world.u("host"))
    tree = rooted.get_provider_tree_and_ensure_root(world.u("host"))
    assert tree.data(world.u("host")).inventory["VCPU"]["total"] == 3
    act(rooted, world.u("host"))


def test_a_claim_counts_as_a_change_of_its_provider(world, rooted):
    world.hold("instance", host={"VCPU": 1})
    with pytest.raises(Conflict):
        rooted.set_traits_for_provider(world.u("host"), {"HW_CPU_X86_AVX"})


def test_only_traits_that_do_not_exist_are_created(world, rooted):
    rooted.set_traits_for_provider(world.u("host"), {"CUSTOM_NEW", "HW_CPU_X86_AVX"})
    rooted.set_traits_for_provider(world.u("host"), {"CUSTOM_NEW", "CUSTOM_NEWER"})
    assert [path for path in world.network.paths("PUT") if path.startswith("/traits")] == [
        "/traits/CUSTOM_NEW",
        "/traits/CUSTOM_NEWER",
    ]


def test_a_trait_that_cannot_be_meant_is_refused(world, rooted):
    with pytest.raises(BadRequest, match="Placement refuses PUT /traits/NONSENSE"):
        rooted.set_traits_for_provider(world.u("host"), {"NONSENSE"})
    assert world.of("host", "traits") == []


def test_many_traits_are_asked_for_a_few_at_a_time(world):
    client, _ = world.rooted(sharing_max=3)
    client.set_traits_for_provider(world.u("host"), {f"CUSTOM_{number}" for number in range(7)})
    assert [path.count(",") for path in world.network.paths("GET") if path.startswith("/traits")] == [2, 2, 0]
    assert len(world.of("host", "traits")) == 7


def test_aggregates_of_a_provider_that_is_not_known_need_a_generation(world):
    world.provider("host")
    client = world.client()
    with pytest.raises(ValueError, match="generation"):
        client.set_aggregates_for_provider(world.u("host"), {world.u("agg")}, use_cache=False)
    client.set_aggregates_for_provider(world.u("host"), {world.u("agg")}, use_cache=False, generation=0)
    assert world.of("host", "aggregates") == [world.u("agg")]
    with pytest.raises(Conflict):
        client.set_aggregates_for_provider(world.u("host"), set(), use_cache=False, generation=0)


def test_aggregates_written_without_the_cache_are_in_it_later(world, rooted):
    rooted.set_aggregates_for_provider(world.u("host"), {world.u("agg")}, use_cache=False, generation=1)
    world.network.asked.clear()
    rooted.set_aggregates_for_provider(world.u("host"), {world.u("agg")})
    assert world.network.asked == []


def test_a_host_joins_an_aggregate_and_leaves_it(world):
    world.provider("host")
    world.put("host", "aggregates", [world.u("old")])
    client = world.client()
    client.aggregate_add_host(world.u("agg"), world.n("host"))
    assert set(world.of("host", "aggregates")) == {world.u("old"), world.u("agg")}
    client.aggregate_remove_host(world.u("old"), world.n("host"))
    assert world.of("host", "aggregates") == [world.u("agg")]
    # Whoever is there already, or not, is left alone.
    before = world.generation("host")
    client.aggregate_add_host(world.u("agg"), world.n("host"))
    client.aggregate_remove_host(world.u("old"), world.n("host"))
    assert world.generation("host") == before


def test_a_host_that_nobody_knows_joins_no_aggregate(world):
    with pytest.raises(NotFound, match="nobody"):
        world.client().aggregate_add_host(world.u("agg"), world.n("nobody"))


def test_who_lost_a_race_for_an_aggregate_tries_again(world):
    world.provider("host")
    for number in range(3):
        world.network.first("PUT", "/aggregates", lambda number=number: world.offer("host", VCPU=number + 1))
    world.client().aggregate_add_host(world.u("agg"), world.n("host"))
    assert world.of("host", "aggregates") == [world.u("agg")]
    assert world.pauses == [2.0, 4.0, 6.0]


def test_who_loses_every_race_for_an_aggregate_says_so(world):
    world.provider("host")
    for number in range(4):
        world.network.first("PUT", "/aggregates", lambda number=number: world.offer("host", VCPU=number + 1))
    with pytest.raises(Conflict):
        world.client().aggregate_add_host(world.u("agg"), world.n("host"))
    assert world.of("host", "aggregates") == []
