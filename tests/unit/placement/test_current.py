import msgspec
import pytest

from roost.engine.columns.apply import occupy
from roost.errors import BadRequest, StoreBroken, Unavailable
from roost.model.writes import (
    Claim,
    ConsumerRow,
    DropProvider,
    DropSymbol,
    EvidenceRow,
    InstanceRow,
    InventoryRow,
    Item,
    PutInventories,
    PutMembership,
    PutSymbol,
    PutTraits,
    Release,
    RenameSymbol,
    ReuseSymbol,
)
from roost.placement.current import REUSE_AFTER_S, Current
from tests.contract.stores import claim, commit, host, inventory, item, offer, provider, release
from tests.support.databases.racing_stores import BreakableStore
from tests.support.fleets.worlds import FixedClock, digest


def store_with_host():
    """Return a store with a host of 4 VCPU, and the columns of a process on it."""
    store = BreakableStore()
    writes = [PutSymbol("resource_class", 1, "VCPU"), provider(1), offer(1, cpu=4), host(1)]
    assert commit(store, item(*writes)) == [""]
    return store, Current(store)


def stage_claim(current, number, amount):
    """Claim as the scheduler does: occupy, then stage."""
    one = claim(number, (inventory(1), amount))
    occupy(current.state, one)
    return current.stage(Item(writes=(one,)))


def free(current):
    return current.state.classes[1].free.data.item(0)


def test_number_of_a_dropped_name_is_not_reused():
    store, current = store_with_host()
    first = current.new_symbol("trait", "CUSTOM_A").id
    assert commit(store, item(PutSymbol("trait", first, "CUSTOM_A"))) == [""]
    assert commit(store, item(DropSymbol("trait", first))) == [""]
    reopened = Current(store.peer())
    assert [reopened.new_symbol("trait", name).id for name in ("CUSTOM_A", "CUSTOM_B")] == [first + 1, first + 2]


def test_rows_of_deleted_providers_are_removed_once_they_are_most(monkeypatch):
    monkeypatch.setattr("roost.placement.current._DEAD_ROWS_MIN", 2)
    _, current = store_with_host()
    for number in range(2, 5):
        assert current.commit([item(provider(number)), item(DropProvider(number))]) == [None, None]
        before = digest(current.state)
        current.shed()
        assert digest(current.state) == before
        assert len(current.state.providers) == (number if number < 4 else 1)
    assert current.commit([item(provider(5))]) == [None]
    assert len(current.state.providers) == 2


def test_number_of_custom_resource_classes_is_limited():
    store, current = store_with_host()
    last = current.new_symbol("trait", "CUSTOM_T").id - 2
    assert commit(store, item(PutSymbol("resource_class", last - 1, "CUSTOM_A"))) == [""]
    full = Current(store.peer())
    for _ in range(2):
        assert full.new_symbol("resource_class", "CUSTOM_B").id == last
        with pytest.raises(BadRequest, match="55,535 custom resource classes were created already"):
            full.new_symbol("resource_class", "CUSTOM_C")


def test_class_numbers_dropped_long_ago_are_reused_if_no_other_is_left():
    store, current = store_with_host()
    last = current.new_symbol("trait", "CUSTOM_T").id - 2
    names = [PutSymbol("resource_class", last - back, f"CUSTOM_{back}") for back in range(4)]
    dropped_s = (9_000.0, 5_000.0, 0.0)  # the third was dropped by an older version
    drops = [DropSymbol("resource_class", last - back, at_s) for back, at_s in enumerate(dropped_s)]
    assert commit(store, item(*names), *map(item, drops)) == ["", "", "", ""]
    for full in (Current(store.peer(), clock=FixedClock(5_000 + REUSE_AFTER_S)) for _ in range(2)):
        reused = full.new_symbol("resource_class", "CUSTOM_B")
        assert reused == ReuseSymbol("resource_class", last - 1, "CUSTOM_B", 5_000.0)
        with pytest.raises(BadRequest, match="the number of a deleted one is free again after 7 days"):
            full.new_symbol("resource_class", "CUSTOM_C")


def test_reused_number_has_its_new_name_in_every_process():
    store, current = store_with_host()
    other = Current(store.peer())
    name, drop = PutSymbol("resource_class", 5, "CUSTOM_A"), DropSymbol("resource_class", 5, 7.0)
    assert current.commit([item(name), item(drop)]) == [None, None]
    other.refresh()
    offered = PutInventories(1, 1, [InventoryRow(1, 4, 0, 1, 4, 1, 1.0), InventoryRow(5, 8, 0, 1, 8, 1, 1.0)])
    assert current.commit([item(ReuseSymbol("resource_class", 5, "CUSTOM_B", 7.0), offered)]) == [None]
    other.refresh()
    for each in (current, other, Current(store.peer())):
        assert each.state.class_ids.id_of("CUSTOM_A") is None
        assert each.state.class_ids.name_of(5) == "CUSTOM_B"
        assert each.state.class_ids.dropped == {}
        assert each.state.classes[5].free.data.item(0) == 8


def test_a_claim_occupies_at_once_and_is_durable_after_a_flush():
    store, current = store_with_host()
    stage_claim(current, 10, 3)
    assert (free(current), free(Current(store.peer())), current.staged_count) == (1, 4, 1)
    assert current.flush() == [None]
    assert (free(Current(store.peer())), current.staged_count) == (1, 0)
    assert digest(current.state) == digest(Current(store.peer()).state)


def test_flush_without_staged_items_returns_nothing():
    _, current = store_with_host()
    assert current.flush() == []


def test_refused_claim_is_undone():
    store, current = store_with_host()
    assert commit(store.peer(), item(claim(99, (inventory(1), 3)))) == [""]
    before = digest(current.state)
    stage_claim(current, 10, 2)
    (refusal,) = current.flush()
    assert refusal.kind == "capacity"
    assert digest(current.state) == before
    current.refresh()
    assert free(current) == 1
    assert digest(current.state) == digest(Current(store.peer()).state)


def test_refresh_applies_commits_of_others_once():
    store, current = store_with_host()
    commit(store.peer(), item(claim(99, (inventory(1), 3))))
    assert free(current) == 4
    current.refresh()
    current.refresh()
    assert free(current) == 1


def test_refresh_with_staged_items_is_an_error():
    _, current = store_with_host()
    stage_claim(current, 10, 1)
    with pytest.raises(AssertionError, match="flushed first"):
        current.refresh()


@pytest.mark.parametrize("end", ["flush", "drop"])
def test_everything_is_read_again_after_a_failure(end):
    store, current = store_with_host()
    before, state = digest(current.state), current.state
    stage_claim(current, 10, 3)
    if end == "flush":
        store.is_broken = True
        with pytest.raises(StoreBroken):
            current.flush()
        store.is_broken = False
    else:
        current.drop()
    current.refresh()
    assert current.state is not state
    assert digest(current.state) == before
    stage_claim(current, 11, 4)
    assert current.flush() == [None]


def test_drop_clears_caches_and_keeps_the_consumer_index():
    _, current = store_with_host()
    assert current.state.consumer_index is None
    current.caches[dict] = {}
    current.drop()
    current.refresh()
    assert (current.caches, current.state.consumer_index) == ({}, None)
    current.state.consumers()
    current.drop()
    current.refresh()
    assert current.state.consumer_index is not None


def test_commit_after_a_drop_starts_from_the_stored_state():
    _, current = store_with_host()
    stage_claim(current, 10, 3)
    current.drop()
    assert current.commit([item(PutSymbol("trait", 70_000, "CUSTOM_A"))]) == [None]
    assert free(current) == 4


def test_write_that_lost_a_race_raises_unavailable():
    store, current = store_with_host()
    commit(store.peer(), item(PutSymbol("trait", 70_000, "CUSTOM_A")))
    with pytest.raises(Unavailable, match="same symbol; try again"):
        current.write([PutSymbol("trait", 70_000, "CUSTOM_B")])
    assert "CUSTOM_B" not in current.state.trait_ids


def test_rows_have_the_same_order_as_after_a_restart():
    store, current = store_with_host()
    for number in (9, 8):
        commit(store.peer(), item(provider(number), offer(number, cpu=4), host(number)))
    current.refresh()
    assert current.state.providers.ids == current.state.hosts.ids == [1, 8, 9]
    assert current.commit([item(provider(5), host(5))]) == [None]
    assert current.state.providers.ids == current.state.hosts.ids == [1, 5, 8, 9]
    assert current.state.position == 4
    assert digest(current.state) == digest(Current(store.peer()).state)


def test_provider_ids_rise_across_processes():
    store, current = store_with_host()
    assert store.reserve("provider", 1) == 1
    other, numbers = Current(store.peer()), []
    for each in (current, other, current):
        with each.reserve_in_order("provider", 2) as first:
            numbers += [first, first + 1]
            each.write([provider(first), provider(first + 1)])
    assert numbers == sorted(numbers)
    current.refresh()
    other.refresh()
    assert current.state.providers.ids == other.state.providers.ids == [1, *numbers]


def test_new_ids_are_unique_across_processes():
    store, current = store_with_host()
    other = Current(store.peer())
    ids = [each.new_id("consumer") for _ in range(5000) for each in (current, other)]
    assert len(set(ids)) == len(ids)


def test_a_release_that_lost_a_race_is_counted_once():
    store, current = store_with_host()
    assert commit(store.peer(), item(claim(99, (inventory(1), 3)))) == [""]
    current.refresh()
    release_once = Release([99], [(99, inventory(1), 3)], [], [1])
    assert commit(store.peer(), item(release_once)) == [""]
    current.stage_release(release_once)
    (refusal,) = current.flush()
    assert refusal.kind == "missing"
    current.refresh()
    assert digest(current.state) == digest(Current(store.peer()).state)


def test_later_of_two_writes_wins_in_every_process():
    store, current = store_with_host()
    assert current.commit([item(PutSymbol("resource_class", 5, "CUSTOM_A"))]) == [None]
    other = Current(store.peer())
    for each, name in ((other, "CUSTOM_B"), (current, "CUSTOM_C")):
        rename, membership = RenameSymbol("resource_class", 5, name), PutMembership(1, 1, [len(name)], raises=False)
        assert each.commit([item(rename), item(membership)]) == [None, None]
    assert other.commit([item(PutMembership(1, 1, [7], raises=False))]) == [None]
    current.refresh()
    for each in (current, other, Current(store.peer())):
        assert [each.state.class_ids.name_of(5), *each.state.membership.labels_of(0)] == ["CUSTOM_C", 7]
        assert "CUSTOM_B" not in each.state.class_ids


def test_dropped_name_is_gone_in_every_process():
    store, current = store_with_host()
    other = Current(store.peer())
    names = [PutSymbol("resource_class", 5, "CUSTOM_A"), PutSymbol("trait", 70_000, "CUSTOM_T")]
    assert current.commit([item(*names)]) == [None]
    assert current.commit([item(DropSymbol("resource_class", 5), DropSymbol("trait", 70_000))]) == [None]
    other.refresh()
    for each in (current, other, Current(store.peer())):
        assert "CUSTOM_A" not in each.state.class_ids
        assert "CUSTOM_T" not in each.state.trait_ids
        assert (each.state.class_ids.highest, each.state.trait_ids.highest) == (5, 70_000)


def test_allocations_are_replaced_in_every_process():
    store, current = store_with_host()
    old = claim(10, (inventory(1), 3))
    assert current.commit([item(old)]) == [None]
    rows = [ConsumerRow(11, old.consumers[0].uuid, "p", "u", 0, 2)]
    new = Claim(rows, [(11, inventory(1), 4)], [InstanceRow(11, 1, 1)])
    other = Current(store.peer())
    assert current.commit([item(release(old), new)]) == [None]
    other.refresh()
    assert other.state.holders[rows[0].uuid].generation == 2
    assert digest(current.state) == digest(other.state) == digest(Current(store.peer()).state)


def test_providers_have_the_time_of_their_last_change():
    store, _ = store_with_host()
    assert commit(store, item(provider(2), offer(2, cpu=4))) == [""]
    clock = FixedClock(10.0)
    current, other = Current(store.peer(), clock=clock), Current(store.peer())
    touched_s, names_touched_s = current.state.providers.touched_s, current.state.names_touched_s
    assert (touched_s.view.tolist(), names_touched_s) == ([10.0, 10.0], 10.0)
    first_claim, times_s = claim(10, (inventory(1), 1)), []
    for at, write in enumerate(
        (
            first_claim,
            PutTraits(2, 1, [7]),
            PutMembership(2, 2, [], raises=False),
            offer(2, expected=2),
            release(first_claim),
            provider(1, version=2, name="new"),
            PutSymbol("trait", 70_000, "CUSTOM_A"),
        )
    ):
        clock.time_s = 20.0 + at
        assert (current if at % 2 else other).commit([item(write)]) == [None]
        assert not current.refresh() or at % 2 == 0
        times_s.append((*touched_s.view.tolist(), current.state.names_touched_s))
    assert times_s == [
        (20.0, 10.0, 10.0),
        (20.0, 21.0, 10.0),
        (20.0, 22.0, 10.0),
        (20.0, 23.0, 10.0),
        (20.0, 23.0, 10.0),
        (25.0, 23.0, 10.0),
        (25.0, 23.0, 26.0),
    ]
    assert other.state.providers.touched_s.view.tolist() == [0.0, 0.0]


def test_evidence_can_be_staged_without_writes():
    store, current = store_with_host()
    row = EvidenceRow(1, bytes(16), 0.0, "refused", "p", 1, "", "nothing fits", b"body")
    current.stage(Item(writes=(), evidence=(row,)))
    assert current.flush() == [None]
    assert [each.reason for each in store.evidence(newest=5)] == ["nothing fits"]


def test_a_claim_of_many_consumers_raises_a_generation_once():
    store, current = store_with_host()
    one, two = claim(10, (inventory(1), 1)), claim(11, (inventory(1), 2))
    both = Claim(
        [*one.consumers, *two.consumers], one.takes + two.takes, [InstanceRow(10, 1, 1), InstanceRow(11, 1, 1)]
    )
    before = current.state.providers.generation.data.item(0)
    occupy(current.state, both)
    current.stage(Item(writes=(both,)))
    current.flush()
    assert current.state.providers.generation.data.item(0) == before + 1
    assert digest(current.state) == digest(Current(store.peer()).state)


@pytest.mark.parametrize("facts", [b"\xff\x00", b"\x81\xa4rack\x05"])
def test_row_that_cannot_be_decoded_is_a_broken_store(facts):
    store = BreakableStore()
    writes = [PutSymbol("resource_class", 1, "VCPU"), provider(1), offer(1, cpu=4)]
    broken_host = msgspec.structs.replace(host(1), facts=msgspec.Raw(facts))
    assert commit(store, item(*writes, broken_host)) == [""]
    with pytest.raises(StoreBroken, match="a row cannot be understood"):
        Current(store)
