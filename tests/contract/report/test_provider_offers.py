"""Inventories, traits and aggregates of one provider, written only where they differ."""

import pytest

from roost.errors import BadRequest, Conflict, InUse, NotFound
from tests.support.agents.report_clients import VCPU


@pytest.fixture
def client(world):
    """Return a client that caches the tree of ``host``, which has VCPU and MEMORY_MB."""
    client, _ = world.rooted()
    world.network.asked.clear()
    return client


def test_inventories_replace_all_existing_ones(world, client):
    client.set_inventory_for_provider(world.u("host"), {"VCPU": VCPU, "DISK_GB": {"total": 5}})
    assert world.totals("host") == {"VCPU": 8, "DISK_GB": 5}
    client.set_inventory_for_provider(world.u("host"), {})
    assert world.totals("host") == {}


def test_unchanged_data_sends_no_request(world, client):
    client.set_inventory_for_provider(world.u("host"), {"VCPU": {"total": 8}, "MEMORY_MB": {"total": 1024}})
    client.set_traits_for_provider(world.u("host"), set())
    client.set_aggregates_for_provider(world.u("host"), set())
    assert world.network.asked == []


def test_defaults_filled_in_by_placement_are_not_a_difference(world, client):
    client.set_inventory_for_provider(world.u("host"), {"DISK_GB": {"total": 5}})
    world.network.asked.clear()
    client.set_inventory_for_provider(world.u("host"), {"DISK_GB": {"total": 5, "allocation_ratio": 1.0}})
    client.set_inventory_for_provider(world.u("host"), {"DISK_GB": {"total": 5}})
    assert world.network.asked == []


def test_custom_classes_are_created_and_standard_ones_are_not(world, client):
    client.set_inventory_for_provider(world.u("host"), {"CUSTOM_GOLD": {"total": 5}, "VCPU": VCPU})
    assert world.totals("host") == {"CUSTOM_GOLD": 5, "VCPU": 8}
    assert world.network.paths("PUT")[:-1] == ["/resource_classes/CUSTOM_GOLD"]


@pytest.mark.parametrize("inventory", [{"CUSTOM_ä": {"total": 1}}, {"GOLD": {"total": 1}}, {"VCPU": {"total": 0}}])
def test_invalid_inventory_is_refused(world, client, inventory):
    with pytest.raises(BadRequest, match="Placement refuses PUT /resource_"):
        client.set_inventory_for_provider(world.u("host"), inventory)
    assert world.totals("host") == {"VCPU": 8, "MEMORY_MB": 1024}


def test_resource_class_in_use_cannot_be_removed(world, client):
    world.hold("instance", host={"VCPU": 1})
    client.forget()
    client.get_provider_tree_and_ensure_root(world.u("host"))
    with pytest.raises(InUse, match=r"inventories of provider .* cannot be replaced"):
        client.set_inventory_for_provider(world.u("host"), {"MEMORY_MB": {"total": 1}})
    assert world.totals("host") == {"VCPU": 8, "MEMORY_MB": 1024}


def test_successive_writes_track_the_provider_generation(world, client):
    """Inventories and aggregates always raise the generation, traits only on a change; the client follows both."""
    for total in (4, 5):
        client.set_inventory_for_provider(world.u("host"), {"VCPU": {**VCPU, "total": total}})
        client.set_traits_for_provider(world.u("host"), {"HW_CPU_X86_AVX", f"CUSTOM_T{total}"})
        client.set_aggregates_for_provider(world.u("host"), {world.u("agg"), world.u(f"agg {total}")})
    tree = client.get_provider_tree_and_ensure_root(world.u("host"))
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
def test_stale_provider_is_read_again_after_a_conflict(world, client, act):
    world.offer("host", VCPU=3)
    with pytest.raises(Conflict):
        act(client, world.u("host"))
    tree = client.get_provider_tree_and_ensure_root(world.u("host"))
    assert tree.data(world.u("host")).inventory["VCPU"]["total"] == 3
    act(client, world.u("host"))


def test_a_claim_counts_as_a_change_of_its_provider(world, client):
    world.hold("instance", host={"VCPU": 1})
    with pytest.raises(Conflict):
        client.set_traits_for_provider(world.u("host"), {"HW_CPU_X86_AVX"})


def test_only_missing_traits_are_created(world, client):
    client.set_traits_for_provider(world.u("host"), {"CUSTOM_NEW", "HW_CPU_X86_AVX"})
    client.set_traits_for_provider(world.u("host"), {"CUSTOM_NEW", "CUSTOM_NEWER"})
    assert [path for path in world.network.paths("PUT") if path.startswith("/traits")] == [
        "/traits/CUSTOM_NEW",
        "/traits/CUSTOM_NEWER",
    ]


def test_invalid_trait_is_refused(world, client):
    with pytest.raises(BadRequest, match="Placement refuses PUT /traits/NONSENSE"):
        client.set_traits_for_provider(world.u("host"), {"NONSENSE"})
    assert world.of("host", "traits") == []


def test_trait_queries_are_sent_in_batches(world):
    client, _ = world.rooted(sharing_max=3)
    client.set_traits_for_provider(world.u("host"), {f"CUSTOM_{number}" for number in range(7)})
    assert [path.count(",") for path in world.network.paths("GET") if path.startswith("/traits")] == [2, 2, 0]
    assert len(world.of("host", "traits")) == 7


def test_aggregates_of_an_uncached_provider_need_a_generation(world):
    world.provider("host")
    client = world.client()
    with pytest.raises(ValueError, match="generation"):
        client.set_aggregates_for_provider(world.u("host"), {world.u("agg")}, use_cache=False)
    client.set_aggregates_for_provider(world.u("host"), {world.u("agg")}, use_cache=False, generation=0)
    assert world.of("host", "aggregates") == [world.u("agg")]
    with pytest.raises(Conflict):
        client.set_aggregates_for_provider(world.u("host"), set(), use_cache=False, generation=0)


def test_aggregates_written_without_the_cache_are_cached_later(world, client):
    client.set_aggregates_for_provider(world.u("host"), {world.u("agg")}, use_cache=False, generation=1)
    world.network.asked.clear()
    client.set_aggregates_for_provider(world.u("host"), {world.u("agg")})
    assert world.network.asked == []


def test_a_host_joins_an_aggregate_and_leaves_it(world):
    world.provider("host")
    world.put("host", "aggregates", [world.u("old")])
    client = world.client()
    client.aggregate_add_host(world.u("agg"), world.n("host"))
    assert set(world.of("host", "aggregates")) == {world.u("old"), world.u("agg")}
    client.aggregate_remove_host(world.u("old"), world.n("host"))
    assert world.of("host", "aggregates") == [world.u("agg")]
    # A repeated addition or removal writes nothing.
    before = world.generation("host")
    client.aggregate_add_host(world.u("agg"), world.n("host"))
    client.aggregate_remove_host(world.u("old"), world.n("host"))
    assert world.generation("host") == before


def test_unknown_host_cannot_join_an_aggregate(world):
    with pytest.raises(NotFound, match="nobody"):
        world.client().aggregate_add_host(world.u("agg"), world.n("nobody"))


def test_lost_race_for_an_aggregate_is_retried(world):
    world.provider("host")
    for number in range(3):
        world.network.first("PUT", "/aggregates", lambda number=number: world.offer("host", VCPU=number + 1))
    world.client().aggregate_add_host(world.u("agg"), world.n("host"))
    assert world.of("host", "aggregates") == [world.u("agg")]
    assert world.pauses == [2.0, 4.0, 6.0]


def test_losing_every_aggregate_race_is_a_conflict(world):
    world.provider("host")
    for number in range(4):
        world.network.first("PUT", "/aggregates", lambda number=number: world.offer("host", VCPU=number + 1))
    with pytest.raises(Conflict):
        world.client().aggregate_add_host(world.u("agg"), world.n("host"))
    assert world.of("host", "aggregates") == []
