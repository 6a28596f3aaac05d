"""The contract of every store."""

from roost.model.stored_decision import DecisionQuery
from roost.model.writes import (
    Claim,
    ConsumerRow,
    DropProvider,
    DropSymbol,
    InstanceRow,
    InventoryRow,
    Place,
    PutAggregate,
    PutDocument,
    PutGroup,
    PutInventories,
    PutMembership,
    PutSymbol,
    PutTraits,
    RenameSymbol,
    ReuseSymbol,
)
from roost.ports import Store
from tests.contract.stores import (
    CPU,
    MEMORY,
    World,
    claim,
    commit,
    decision_row,
    evidence,
    generations,
    host,
    inventory,
    item,
    offer,
    provider,
    release,
    state,
    uuid_of,
)

GROUP = PutGroup(1, uuid_of("group"), "g", "anti-affinity", 1)


def test_a_new_store_is_empty(store: Store) -> None:
    loaded = store.load()
    assert list(loaded.writes) == []
    assert loaded.position == 0
    assert commit(store) == []
    assert commit(store, item()) == [""]


def test_load_returns_all_committed_rows(world: World) -> None:
    store = world.open()
    root = provider(7)
    writes = (
        PutSymbol("trait", 1, "CUSTOM_A"),
        PutSymbol("resource_class", 2, "CUSTOM_B"),
        PutDocument(1, "flavor", b"print", b"body"),
        PutAggregate(1, uuid_of("aggregate"), "zone", {"availability_zone": "a"}, 1),
        root,
        provider(3, parent=root),
        offer(7, cpu=8),
        PutTraits(7, 1, [1]),
        PutMembership(7, 2, [1]),
        host(7, rack="r1"),
        GROUP,
        claim(1, (inventory(7), 2), places=[Place(1, 7, 0, 1, 1)]),
    )
    assert commit(store, item(*writes)) == [""]
    found = list(world.open().load().writes)
    kinds = [type(write).__name__ for write in found]
    assert kinds == [
        "PutSymbol",
        "PutSymbol",
        "PutDocument",
        "PutAggregate",
        "PutProvider",
        "PutProvider",
        "PutProvider",
        "PutInventories",
        "PutTraits",
        "PutMembership",
        "PutHost",
        "PutGroup",
        "Claim",
        "PutGeneration",
        "PutGeneration",
    ]
    # Ordered by number; a provider with a later parent is written again with that parent.
    assert [(write.id, write.parent_id) for write in found[4:7]] == [(3, None), (7, None), (3, 7)]  # type: ignore[union-attr]
    assert found[12] == claim(1, (inventory(7), 2), places=[Place(1, 7, 0, 1, 0)])
    assert generations(world.open()) == {7: 4, 3: 0}


def test_a_claim_never_exceeds_capacity(small_store: Store) -> None:
    assert commit(small_store, item(claim(1, (inventory(1), 5)))) == [""]
    assert commit(small_store, item(claim(2, (inventory(1), 4)))) == ["capacity"]
    assert commit(small_store, item(claim(3, (inventory(1), 3)))) == [""]


def test_items_of_one_commit_see_each_other_in_order(small_store: Store) -> None:
    first = claim(1, (inventory(1), 6))
    verdicts = commit(
        small_store,
        item(first),
        item(claim(2, (inventory(1), 6))),
        item(claim(3, (inventory(1), 2))),
        item(release(first)),
        item(claim(4, (inventory(1), 6))),
    )
    assert verdicts == ["", "capacity", "", "", ""]


def test_later_release_in_a_commit_does_not_free_capacity_earlier(small_store: Store) -> None:
    first = claim(1, (inventory(1), 8))
    assert commit(small_store, item(first)) == [""]
    assert commit(small_store, item(claim(2, (inventory(1), 8))), item(release(first))) == ["capacity", ""]


def test_overcommitted_inventory_refuses_claims_even_after_a_release(small_store: Store) -> None:
    claims = [claim(number, (inventory(1), 2)) for number in range(1, 5)]
    assert commit(small_store, *map(item, claims)) == [""] * 4
    shrunk = PutInventories(1, generations(small_store)[1], [InventoryRow(CPU, 4, 0, 1, 4, 1, 1.0)])
    assert commit(small_store, item(shrunk)) == [""]
    assert commit(small_store, item(release(claims[0])), item(claim(9, (inventory(1), 1)))) == ["", "capacity"]


def test_a_refused_item_leaves_nothing_behind(small_store: Store) -> None:
    before = state(small_store)
    two = Claim(
        [ConsumerRow(5, uuid_of(5), "", ""), ConsumerRow(6, uuid_of(6), "", "")],
        [(5, inventory(1), 1), (6, inventory(2), 9)],
        [InstanceRow(5, 1, 1), InstanceRow(6, 2, 1)],
    )
    assert commit(small_store, item(two, rows=[evidence(1)])) == ["units"]
    assert state(small_store) == before
    assert small_store.evidence() == []


def test_amounts_respect_unit_bounds_and_step_size(store: Store) -> None:
    rows = [InventoryRow(CPU, 64, 0, 4, 16, 4, 1.0)]
    assert commit(store, item(provider(1), PutInventories(1, 0, rows))) == [""]
    for number, amount in enumerate((2, 20, 6, 0, -4), start=1):
        assert commit(store, item(claim(number, (inventory(1), amount)))) == ["units"], amount
    assert commit(store, item(claim(9, (inventory(1), 8))), item(claim(10, (inventory(1), 16)))) == ["", ""]


def test_handover_may_keep_an_amount_that_violates_new_unit_bounds(store: Store) -> None:
    rows = [InventoryRow(CPU, 64, 0, 1, 64, 1, 1.0)]
    assert commit(store, item(provider(1), PutInventories(1, 0, rows))) == [""]
    one = claim(1, (inventory(1), 6))
    assert commit(store, item(one)) == [""]
    shrunk = PutInventories(1, generations(store)[1], [InventoryRow(CPU, 64, 0, 1, 4, 4, 1.0)])
    assert commit(store, item(shrunk)) == [""]
    assert commit(store, item(release(one), claim(2, (inventory(1), 5)))) == ["units"]
    assert commit(store, item(release(one), claim(2, (inventory(1), 6)))) == [""]
    assert commit(store, item(claim(3, (inventory(1), 6)))) == ["units"]


def test_handover_exemption_holds_for_one_successor(store: Store) -> None:
    rows = [InventoryRow(class_id, 64, 0, 1, 64, 1, 1.0) for class_id in (CPU, CPU + 1)]
    assert commit(store, item(provider(1), PutInventories(1, 0, rows))) == [""]
    one, two, three = (claim(number, (inventory(1), 6)) for number in (1, 2, 3))
    assert commit(store, item(one)) == [""]
    shrunk = [InventoryRow(CPU, 64, 0, 1, 4, 4, 1.0), rows[1]]
    assert commit(store, item(PutInventories(1, generations(store)[1], shrunk))) == [""]
    assert commit(store, item(release(one), two, three)) == ["units"]
    both = Claim([*two.consumers, *three.consumers], [*two.takes, *three.takes])
    assert commit(store, item(release(one), both)) == ["units"]
    more = Claim([], [(1, inventory(1) + 1, 1)])
    assert commit(store, item(more, two)) == ["units"]
    assert commit(store, item(release(one), two), item(release(two), three)) == ["", ""]


def test_capacity_is_total_less_reserved_times_ratio(store: Store) -> None:
    rows = [InventoryRow(CPU, 10, 2, 1, 100, 1, 1.5)]
    assert commit(store, item(provider(1), PutInventories(1, 0, rows))) == [""]
    assert commit(store, item(claim(1, (inventory(1), 13)))) == ["capacity"]
    assert commit(store, item(claim(1, (inventory(1), 12)))) == [""]


def test_a_claim_raises_the_generation_of_each_provider_once(small_store: Store) -> None:
    assert generations(small_store) == {1: 1, 2: 1}
    one = claim(1, (inventory(1), 1), (inventory(1, MEMORY), 1))
    assert commit(small_store, item(one), item(claim(2, (inventory(1), 1), (inventory(2), 1)))) == ["", ""]
    assert generations(small_store) == {1: 3, 2: 2}
    assert commit(small_store, item(release(one))) == [""]
    assert generations(small_store) == {1: 3, 2: 2}


def test_claim_on_a_missing_inventory_is_refused(small_store: Store) -> None:
    assert commit(small_store, item(claim(1, (inventory(9), 1)))) == ["missing"]
    assert commit(small_store, item(claim(1, (inventory(1, 0), 1)))) == ["missing"]


def test_consumer_is_created_only_once(small_store: Store) -> None:
    one = claim(1, (inventory(1), 1))
    assert commit(small_store, item(one)) == [""]
    assert commit(small_store, item(claim(1, (inventory(1), 1)))) == ["duplicate"]
    same_uuid = Claim([ConsumerRow(2, uuid_of("consumer", 1), "", "")], [(2, inventory(1), 1)])
    assert commit(small_store, item(same_uuid)) == ["duplicate"]
    assert commit(small_store, item(same_uuid), item(release(one))) == ["duplicate", ""]
    assert commit(small_store, item(claim(3, (inventory(1), 1))), item(claim(3, (inventory(1), 1)))) == [
        "",
        "duplicate",
    ]


def test_release_frees_all_amounts_and_ends_the_instance(small_store: Store) -> None:
    one = claim(1, (inventory(1), 8), (inventory(2), 1))
    before = state(small_store)
    assert commit(small_store, item(one)) == [""]
    assert commit(small_store, item(release(one))) == [""]
    after = state(small_store)
    assert {kind: rows for kind, rows in after.items() if kind != "PutGeneration"} == {
        kind: rows for kind, rows in before.items() if kind != "PutGeneration"
    }
    assert commit(small_store, item(release(one))) == ["missing"]


def test_release_with_wrong_amounts_is_refused(small_store: Store) -> None:
    one = claim(1, (inventory(1), 4), (inventory(2), 1))
    assert commit(small_store, item(one)) == [""]
    assert commit(small_store, item(release(claim(1, (inventory(1), 4))))) == ["missing"]
    assert commit(small_store, item(release(claim(1, (inventory(1), 4), (inventory(2), 2))))) == ["missing"]
    assert commit(small_store, item(release(one)), item(release(one))) == ["", "missing"]


def test_places_are_limited_and_have_one_holder(small_store: Store) -> None:
    def seat(number: int, *, holder: int = 0, limit: int = 2) -> Claim:
        return claim(number, (inventory(1), 1), places=[Place(1, 5, holder, 1, limit)])

    assert commit(small_store, item(GROUP)) == [""]
    assert commit(small_store, item(seat(1, limit=0))) == ["place"]
    assert commit(small_store, item(seat(1)), item(seat(2)), item(seat(3))) == ["", "", "place"]
    assert commit(small_store, item(seat(3))) == ["place"]
    assert commit(small_store, item(seat(3, holder=8, limit=9))) == ["place"]
    assert commit(small_store, item(release(seat(1))), item(release(seat(2)))) == ["", ""]
    assert commit(small_store, item(seat(4, holder=8)), item(seat(5, holder=9))) == ["", "place"]
    assert commit(small_store, item(release(seat(4))), item(release(seat(4)))) == ["place", "place"]
    assert commit(small_store, item(release(seat(4, holder=8))), item(seat(6, holder=9))) == ["", ""]


def test_inventories_are_replaced_only_at_the_expected_generation(small_store: Store) -> None:
    assert commit(small_store, item(offer(1, expected=0, cpu=9))) == ["generation"]
    assert commit(small_store, item(offer(1, expected=1, cpu=9)), item(offer(1, expected=1, cpu=10))) == [
        "",
        "generation",
    ]
    assert commit(small_store, item(claim(1, (inventory(1), 9)))) == [""]
    assert commit(small_store, item(offer(1, expected=2, cpu=10))) == ["generation"]
    assert commit(small_store, item(offer(1, expected=3, memory=10))) == ["in_use"]
    assert commit(small_store, item(offer(1, expected=3, cpu=10))) == [""]
    assert commit(small_store, item(offer(77, cpu=1))) == ["missing"]


def test_labels_are_replaced_only_at_the_expected_generation(small_store: Store) -> None:
    assert commit(small_store, item(PutTraits(1, 1, [2, 1]), PutMembership(1, 2, [4]))) == [""]
    assert commit(small_store, item(PutTraits(1, 1, [3]))) == ["generation"]
    assert commit(small_store, item(PutTraits(1, 3, [3])), item(PutMembership(1, 4, []))) == ["", ""]
    found = state(small_store)
    assert [row[3] for row in found["PutTraits"]] == [[3]]
    assert "PutMembership" not in found


def test_provider_in_use_cannot_be_deleted(small_store: Store) -> None:
    one = claim(1, (inventory(1), 1))
    child = provider(3, parent=provider(2))
    assert commit(small_store, item(one), item(child)) == ["", ""]
    assert commit(small_store, item(DropProvider(1)), item(DropProvider(2))) == ["in_use", "in_use"]
    drops = [item(release(one)), item(DropProvider(1)), item(DropProvider(3)), item(DropProvider(2))]
    assert commit(small_store, *drops, item(DropProvider(1))) == ["", "", "", "", "missing"]
    assert set(state(small_store)) == set()


def test_providers_form_trees(small_store: Store) -> None:
    assert commit(small_store, item(provider(3, parent=provider(99)))) == ["missing"]
    child, grandchild = provider(3, parent=provider(1)), provider(4, parent=provider(3, parent=provider(1)))
    assert commit(small_store, item(child), item(grandchild)) == ["", ""]
    moved = provider(3, parent=provider(2), version=2)
    assert commit(small_store, item(moved)) == ["generation"], "its child would stay in the old tree"
    assert commit(small_store, item(moved, provider(4, parent=moved, version=2))) == [""]
    inside = provider(2, parent=provider(4, parent=moved), version=2)
    assert commit(small_store, item(inside)) == ["generation"], "a provider cannot be inside itself"


def test_an_older_version_never_replaces_a_newer_one(small_store: Store) -> None:
    assert commit(small_store, item(provider(1, version=2, name="new"))) == [""]
    assert commit(small_store, item(provider(1, version=2, name="other"))) == ["generation"]
    assert commit(small_store, item(host(1, rack="r", version=1))) == ["generation"]
    assert commit(small_store, item(host(1, rack="r", version=2))) == [""]


def test_names_are_unique(small_store: Store) -> None:
    assert commit(small_store, item(provider(3, name="p1"))) == ["duplicate"]
    assert commit(small_store, item(host(3, provider_id=1))) == ["duplicate"]
    assert commit(small_store, item(host(3, provider_id=44))) == ["missing"]
    symbol, document = PutSymbol("trait", 1, "A"), PutDocument(1, "flavor", b"f", b"")
    assert commit(small_store, item(symbol), item(document)) == ["", ""]
    assert commit(small_store, item(PutSymbol("trait", 2, "A")), item(PutDocument(2, "flavor", b"f", b""))) == [
        "duplicate",
        "duplicate",
    ]
    assert commit(small_store, item(PutDocument(2, "image", b"f", b"")), item(claim(1, (inventory(1), 1)))) == ["", ""]


def test_name_in_use_cannot_be_deleted(small_store: Store) -> None:
    names = [
        PutSymbol("resource_class", CPU, "VCPU"),
        PutSymbol("trait", 70_000, "CUSTOM_T"),
        PutTraits(1, 1, [70_000]),
    ]
    assert commit(small_store, item(*names), item(PutSymbol("consumer_type", 1 << 32, "INSTANCE"))) == ["", ""]
    for drop in (DropSymbol("resource_class", CPU), DropSymbol("trait", 70_000)):
        assert commit(small_store, item(drop)) == ["in_use"]
    assert commit(small_store, item(DropSymbol("consumer_type", 1 << 32))) == ["in_use"]
    assert commit(small_store, item(DropSymbol("trait", CPU)), item(DropSymbol("trait", 9))) == ["missing", "missing"]
    bare = [item(offer(1, expected=2, memory=1)), item(offer(2, expected=1)), item(PutTraits(1, 3, []))]
    drops = [item(DropSymbol("resource_class", CPU)), item(DropSymbol("trait", 70_000))]
    assert commit(small_store, *bare, *drops, *drops) == ["", "", "", "", "", "missing", "missing"]


def test_several_names_are_deleted_at_once(small_store: Store) -> None:
    traits = [PutSymbol("trait", number, f"CUSTOM_{number}") for number in (70_000, 70_001, 70_002)]
    assert commit(small_store, item(*traits, PutTraits(1, 1, [70_000, 70_001]), PutTraits(2, 1, [70_001]))) == [""]
    drops = [item(DropSymbol("trait", number)) for number in (70_000, 70_001, 70_002)]
    assert commit(small_store, item(PutTraits(1, 2, [70_001])), *drops) == ["", "", "in_use", ""]
    assert [row[1:] for row in state(small_store)["DropSymbol"]] == [["trait", 70_000, 0.0], ["trait", 70_002, 0.0]]


def test_number_of_a_deleted_name_is_not_used_again(small_store: Store) -> None:
    names = [PutSymbol("resource_class", 5, "CUSTOM_A"), PutSymbol("trait", 70_000, "CUSTOM_A")]
    assert commit(small_store, item(*names)) == [""]
    assert commit(small_store, item(DropSymbol("resource_class", 5)), item(DropSymbol("trait", 70_000))) == ["", ""]
    offered = PutInventories(1, 1, [InventoryRow(CPU, 8, 0, 1, 8, 1, 1.0), InventoryRow(5, 8, 0, 1, 8, 1, 1.0)])
    assert commit(small_store, item(offered), item(PutTraits(1, 1, [70_000]))) == ["missing", "missing"]
    assert commit(small_store, *map(item, names)) == ["duplicate", "duplicate"]
    again = [PutSymbol("resource_class", 6, "CUSTOM_A"), PutSymbol("trait", 70_001, "CUSTOM_A")]
    assert commit(small_store, *map(item, again)) == ["", ""]
    assert commit(small_store, item(DropSymbol("resource_class", 6)), item(DropSymbol("trait", 70_001))) == ["", ""]


def test_number_of_a_deleted_name_is_reused_only_with_its_deletion_time(small_store: Store) -> None:
    names = [PutSymbol("resource_class", 5, "CUSTOM_A"), PutSymbol("resource_class", 6, "CUSTOM_C")]
    reused = ReuseSymbol("resource_class", 5, "CUSTOM_B", 7.0)
    assert commit(small_store, item(*names), item(reused)) == ["", "duplicate"]
    assert commit(small_store, item(DropSymbol("resource_class", 5, 7.0))) == [""]
    for other in (
        ReuseSymbol("resource_class", 5, "CUSTOM_B", 8.0),
        ReuseSymbol("resource_class", 5, "CUSTOM_B", 0.0),
        ReuseSymbol("trait", 5, "CUSTOM_B", 7.0),
        ReuseSymbol("resource_class", 5, "CUSTOM_C", 7.0),
        ReuseSymbol("resource_class", 7, "CUSTOM_B", 7.0),
    ):
        assert commit(small_store, item(other)) == ["duplicate"], other
    assert state(small_store)["DropSymbol"] == [["drop_symbol", "resource_class", 5, 7.0]]
    offered = PutInventories(1, 1, [InventoryRow(CPU, 8, 0, 1, 8, 1, 1.0), InventoryRow(5, 8, 0, 1, 8, 1, 1.0)])
    assert commit(small_store, item(offered), item(reused), item(reused), item(offered)) == [
        "missing",
        "",
        "duplicate",
        "",
    ]
    assert commit(small_store, item(DropSymbol("resource_class", 5, 9.0))) == ["in_use"]


def test_name_can_be_changed_to_a_free_one(small_store: Store) -> None:
    names = [PutSymbol("resource_class", 5, "CUSTOM_A"), PutSymbol("resource_class", 6, "CUSTOM_B")]
    assert commit(small_store, item(*names)) == [""]
    assert commit(small_store, item(RenameSymbol("resource_class", 5, "CUSTOM_B"))) == ["duplicate"]
    renames = [RenameSymbol("resource_class", 5, "CUSTOM_C"), RenameSymbol("resource_class", 6, "CUSTOM_A")]
    assert commit(small_store, *map(item, renames), item(RenameSymbol("trait", 5, "CUSTOM_D"))) == ["", "", "missing"]
    assert state(small_store)["PutSymbol"] == [
        ["symbol", "resource_class", 5, "CUSTOM_C"],
        ["symbol", "resource_class", 6, "CUSTOM_A"],
    ]


def test_aggregates_can_be_replaced_without_raising_the_generation(small_store: Store) -> None:
    assert commit(small_store, item(PutMembership(1, 0, [4], raises=False))) == ["generation"]
    changes = [PutMembership(1, 1, [4], raises=False), PutMembership(1, 1, [5], raises=False)]
    assert commit(small_store, *map(item, changes), item(offer(1, expected=1, cpu=8))) == ["", "", ""]
    assert generations(small_store)[1] == 2
    assert [row[3] for row in state(small_store)["PutMembership"]] == [[5]]


def test_identities_are_never_repeated(world: World) -> None:
    store = world.open()
    seen: set[int] = set()
    for count in (1, 5, 5000, 1):
        first = store.reserve("consumer", count)
        fresh = set(range(first, first + count))
        assert first >= 1
        assert not fresh & seen
        seen |= fresh
    one = claim(max(seen), (inventory(1), 1))
    assert commit(store, item(provider(1), offer(1, cpu=8)), item(one), item(release(one))) == ["", "", ""]
    assert world.open().reserve("consumer", 1) > max(seen)


def test_symbols_are_numbered_without_gaps(world: World) -> None:
    assert [world.open().reserve("symbol", 1) for _ in range(1)] == [1]
    store = world.open()
    first = store.reserve("symbol", 2)
    assert commit(store, item(PutSymbol("trait", first, "A"), PutSymbol("trait", first + 1, "B"))) == [""]
    assert world.open().reserve("symbol", 1) == first + 2


def test_evidence_is_found_by_uuid_and_newest_first(small_store: Store) -> None:
    assert commit(small_store, item(claim(1, (inventory(1), 1)), rows=[evidence(1)]), item(rows=[evidence(2)])) == [
        "",
        "",
    ]
    assert small_store.evidence() == [evidence(2), evidence(1)]
    assert small_store.evidence(newest=1) == [evidence(2)]
    assert small_store.evidence(uuid=uuid_of("decision", 1)) == [evidence(1)]
    assert small_store.evidence(uuid=bytes(16)) == []
    assert commit(small_store, item(rows=[evidence(2)])) == ["duplicate"]


def test_pruning_deletes_the_oldest_by_age_and_by_size(store: Store) -> None:
    rows = [evidence(number, body=bytes(1000), at_s=float(number)) for number in range(1, 11)]
    assert commit(store, *(item(rows=[row]) for row in rows)) == [""] * 10
    assert store.prune(older_than_s=4.0, max_bytes=10**9) == 3
    assert [row.id for row in store.evidence()] == [10, 9, 8, 7, 6, 5, 4]
    assert store.prune(older_than_s=0.0, max_bytes=5000) == 2
    assert store.prune(older_than_s=0.0, max_bytes=5000) == 0
    assert [row.id for row in store.evidence()] == [10, 9, 8, 7, 6]


def test_positions_rise_after_pruning_and_reopening(world: World) -> None:
    store = world.open()
    first = store.commit([item(provider(1))]).position
    store.prune(older_than_s=1e12, max_bytes=0)
    store = world.open()
    assert store.commit([item(provider(2))]).position > first


def test_many_providers_and_consumers_load(world: World) -> None:
    store = world.open()
    assert set(commit(store, *(item(provider(n), offer(n, cpu=8)) for n in range(1, 701)))) == {""}
    assert set(commit(store, *(item(claim(n, (inventory(n), 1))) for n in range(1, 701)))) == {""}
    claims = [write for write in world.open().load().writes if isinstance(write, Claim)]
    assert [len(one.consumers) for one in claims] == [500, 200]


def test_decision_query_combines_all_its_conditions(store: Store) -> None:
    rows = [
        decision_row(1, hosts="h1 h10", at_s=1.0),
        decision_row(2, project="", hosts="h10", at_s=2.0),
        decision_row(3, hosts="", reason="100% of h1's _VCPU_ is used", at_s=3.0),
        decision_row(4, project="näh", hosts="h1", at_s=4.0),
        decision_row(5, project="näh", hosts="", reason="no disk", at_s=5.0),
    ]
    assert commit(store, *(item(rows=[row]) for row in rows)) == [""] * 5

    def found(**wanted: object) -> list[int]:
        return [row.id for row in store.decisions(DecisionQuery(**wanted))]  # type: ignore[arg-type]  # as named

    assert found() == [5, 4, 3, 2, 1]
    assert store.decisions(DecisionQuery(newest=1)) == [rows[4]]
    assert found(newest=2, before=4) == [3, 2]
    assert (found(host="h1"), found(host="h10"), found(host="h"), found(host="%")) == ([4, 1], [2, 1], [], [])
    assert (found(project_id="näh"), found(project_id=""), found(project_id="none")) == ([5, 4], [2], [])
    assert (found(outcome="refused"), found(outcome="granted")) == ([5, 3], [4, 2, 1])
    assert (found(reason="_VCPU_"), found(reason="0% of h1's"), found(reason="vcpu")) == ([3], [3], [])
    assert (found(since_s=4.0), found(since_s=4.5), found(since_s=9.0)) == ([5, 4], [5], [])
    assert found(host="h1", project_id="näh", outcome="granted", since_s=2.0, before=5) == [4]
    _, *middle, last = sorted(rows, key=lambda row: row.uuid)
    between = middle[0].uuid, middle[-1].uuid
    assert found(uuids=between) == sorted((row.id for row in middle), reverse=True)
    assert (found(uuids=(last.uuid, last.uuid)), found(uuids=(bytes(16), bytes(16)))) == ([last.id], [])
