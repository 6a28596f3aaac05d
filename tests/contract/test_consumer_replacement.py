"""Allocations of a consumer are replaced in one item: a release, and a claim with the same uuid."""

import pytest

from roost.model.writes import (
    Claim,
    ConsumerRow,
    InstanceRow,
    InventoryRow,
    Place,
    PutGroup,
    PutInventories,
    Release,
)
from roost.ports import Store
from tests.contract.stores import (
    CPU,
    World,
    claim,
    commit,
    generations,
    inventory,
    item,
    offer,
    provider,
    release,
    state,
    uuid_of,
)


def test_a_consumer_can_be_replaced_in_one_item(small_store: Store) -> None:
    old = claim(1, (inventory(1), 8))
    new = Claim([ConsumerRow(2, old.consumers[0].uuid, "", "", 0, 2)], [(2, inventory(1), 8)])
    assert commit(small_store, item(old)) == [""]
    assert commit(small_store, item(release(old), new)) == [""]
    assert [row[0] for row in state(small_store)["consumers"]] == [2]


def successor(old: Claim, number: int, *takes: tuple[int, int], places: list[Place] | None = None) -> Claim:
    """Return the next claim of a consumer, with the same uuid and the next generation."""
    row = old.consumers[0]
    seat = (places or [Place(0, 0, 0, 0, 0)])[0]
    return Claim(
        [ConsumerRow(number, row.uuid, "other", "user", 0, row.generation + 1)],
        [(number, taken, amount) for taken, amount in takes],
        [InstanceRow(number, 1, 1, 0, seat.group_id, seat.scope, seat.holder)],
        places or [],
    )


def test_many_consumers_are_replaced_in_two_consecutive_commits(small_store: Store) -> None:
    first = [claim(number, (inventory(1), 2)) for number in (1, 2, 3)]
    second = [successor(old, 10 + at, (inventory(1), 1), (inventory(2), 2)) for at, old in enumerate(first)]
    third = [successor(old, 20 + at, (inventory(2), 2)) for at, old in enumerate(second)]
    assert commit(small_store, *map(item, first)) == [""] * 3
    for before, after in ((first, second), (second, third)):
        pairs = zip(before, after, strict=True)
        assert commit(small_store, *(item(release(old), new) for old, new in pairs)) == [""] * 3
    found = state(small_store)
    assert [(row[0], row[5]) for row in found["consumers"]] == [(20, 3), (21, 3), (22, 3)]
    assert found["takes"] == [(number, inventory(2), 2) for number in (20, 21, 22)]
    assert [row[0] for row in found["instances"]] == [20, 21, 22]
    assert commit(small_store, item(claim(4, (inventory(1), 5))), item(claim(5, (inventory(2), 2)))) == ["", ""]


def test_replacement_takes_the_fast_commit_path(durable: World, monkeypatch: pytest.MonkeyPatch) -> None:
    store = durable.open()
    assert commit(store, item(provider(1), offer(1, cpu=8))) == [""]
    one, two = claim(1, (inventory(1), 4), instance=False), claim(2, (inventory(1), 4), instance=False)
    assert commit(store, item(one), item(two)) == ["", ""]
    for module in ("sqlite", "postgresql", "mariadb"):
        monkeypatch.setattr(f"roost.store.{module}.store.judge_all", None)
    pairs = [(one, successor(one, 11, (inventory(1), 4))), (two, successor(two, 12, (inventory(1), 3)))]
    fresh = claim(3, (inventory(1), 1))
    assert commit(store, *(item(release(old), new) for old, new in pairs), item(fresh)) == ["", "", ""]


def test_replacement_succeeds_with_exactly_enough_capacity(small_store: Store) -> None:
    old, other = claim(1, (inventory(1), 5)), claim(2, (inventory(1), 3))
    assert commit(small_store, item(old), item(other)) == ["", ""]
    too_much, enough = successor(old, 10, (inventory(1), 6)), successor(old, 11, (inventory(1), 5))
    assert commit(small_store, item(release(old), too_much), item(release(old), enough)) == ["capacity", ""]
    assert {row[0] for row in state(small_store)["consumers"]} == {2, 11}


def test_second_replacement_of_one_consumer_is_refused(small_store: Store) -> None:
    old = claim(1, (inventory(1), 4))
    assert commit(small_store, item(old)) == [""]
    rivals = [item(release(old), successor(old, number, (inventory(2), 1))) for number in (10, 11)]
    assert commit(small_store, *rivals) == ["", "missing"]


def test_replacement_before_the_release_is_a_duplicate(small_store: Store) -> None:
    one, two = claim(1, (inventory(1), 1)), claim(2, (inventory(1), 1))
    assert commit(small_store, item(one), item(two)) == ["", ""]
    early = item(release(two), successor(one, 10, (inventory(2), 1)))
    assert commit(small_store, early, item(release(one))) == ["duplicate", ""]
    assert [row[0] for row in state(small_store)["consumers"]] == [2]


def test_slots_and_instances_are_carried_over(small_store: Store) -> None:
    seat = Place(1, 7, 0, 1, 1)
    assert commit(small_store, item(PutGroup(1, uuid_of("group"), "g", "anti-affinity", 1))) == [""]
    old = claim(1, (inventory(1), 4), places=[seat])
    new = successor(old, 10, (inventory(1), 4), (inventory(2), 1), places=[seat])
    assert commit(small_store, item(old)) == [""]
    assert commit(small_store, item(release(old), new)) == [""]
    assert commit(small_store, item(claim(2, (inventory(1), 1), places=[seat]))) == ["place"]
    assert [row[0] for row in state(small_store)["instances"]] == [10]
    assert commit(small_store, item(release(new)), item(claim(2, (inventory(1), 1), places=[seat]))) == ["", ""]


def test_release_raises_the_generations_that_it_names(small_store: Store) -> None:
    one, two = claim(1, (inventory(1), 1), (inventory(2), 1)), claim(2, (inventory(1), 1))
    assert commit(small_store, item(one), item(two)) == ["", ""]
    assert generations(small_store) == {1: 3, 2: 2}
    counted = Release([1], list(one.takes), [], [1, 2])
    assert commit(small_store, item(counted), item(Release([2], list(two.takes), [], [1]))) == ["", ""]
    assert generations(small_store) == {1: 5, 2: 3}
    three = claim(3, (inventory(1), 1))
    assert commit(small_store, item(three)) == [""]
    assert commit(small_store, item(Release([3], list(three.takes), [], [99]))) == ["missing"]
    assert generations(small_store) == {1: 6, 2: 3}


def test_overcommitted_allocation_may_shrink_or_stay_but_not_grow(small_store: Store) -> None:
    one, two = claim(1, (inventory(1), 4)), claim(2, (inventory(1), 4))
    assert commit(small_store, item(one), item(two)) == ["", ""]
    shrunk = PutInventories(1, generations(small_store)[1], [InventoryRow(CPU, 5, 0, 1, 9, 1, 1.0)])
    assert commit(small_store, item(shrunk)) == [""]
    assert commit(small_store, item(release(one), successor(one, 10, (inventory(1), 5)))) == ["capacity"]
    same = successor(one, 11, (inventory(1), 4))
    assert commit(small_store, item(release(one), same)) == [""]
    less = successor(same, 12, (inventory(1), 3))
    assert commit(small_store, item(release(same), less), item(claim(3, (inventory(1), 1)))) == ["", "capacity"]
    assert sorted(state(small_store)["takes"]) == [(2, inventory(1), 4), (12, inventory(1), 3)]


def test_excess_is_not_offset_by_releases_of_earlier_items(small_store: Store) -> None:
    claims = [claim(number, (inventory(1), 2)) for number in (1, 2, 3, 4)]
    assert commit(small_store, *map(item, claims)) == [""] * 4
    shrunk = PutInventories(1, generations(small_store)[1], [InventoryRow(CPU, 1, 0, 1, 9, 1, 1.0)])
    grown = successor(claims[1], 10, (inventory(1), 3))
    verdicts = commit(small_store, item(shrunk), item(release(claims[0])), item(release(claims[1]), grown))
    assert verdicts == ["", "", "capacity"]
