"""The contract of every store: server groups, their deletion, and the claims of their members."""

from roost.model.writes import Claim, DropGroup, InstanceRow, Place, PutGroup
from roost.ports import Store
from tests.contract.stores import claim, commit, inventory, item, release, state, uuid_of

GROUP = PutGroup(1, uuid_of("group"), "g", "anti-affinity", 1)


def test_group_with_instances_cannot_be_deleted(small_store: Store) -> None:
    soft = PutGroup(2, uuid_of("soft"), "s", "soft-affinity", 1)
    assert commit(small_store, item(GROUP), item(soft)) == ["", ""]
    before = state(small_store)
    guarded = claim(1, (inventory(1), 1), places=[Place(1, 5, 0, 1, 1)])
    free = claim(2, (inventory(1), 1))
    member = Claim(free.consumers, free.takes, [InstanceRow(2, 1, 1, 0, 2)])
    assert commit(small_store, item(guarded), item(member)) == ["", ""]
    assert commit(small_store, item(DropGroup(1)), item(DropGroup(2)), item(DropGroup(3))) == [
        "in_use",
        "in_use",
        "missing",
    ]
    assert commit(small_store, item(release(guarded)), item(release(member))) == ["", ""]
    assert {kind: rows for kind, rows in state(small_store).items() if kind != "PutGeneration"} == {
        kind: rows for kind, rows in before.items() if kind != "PutGeneration"
    }
    assert commit(small_store, item(DropGroup(1)), item(DropGroup(2)), item(DropGroup(1))) == ["", "", "missing"]
    assert "PutGroup" not in state(small_store)


def test_claim_that_names_a_deleted_group_is_refused(small_store: Store) -> None:
    guarded = claim(1, (inventory(1), 1), places=[Place(1, 5, 0, 1, 1)])
    plain = claim(2, (inventory(1), 1))
    member = Claim(plain.consumers, plain.takes, [InstanceRow(2, 1, 1, 0, 1)])
    assert commit(small_store, item(guarded), item(member)) == ["missing", "missing"]
    assert commit(small_store, item(GROUP), item(DropGroup(1))) == ["", ""]
    before = state(small_store)
    assert commit(small_store, item(guarded)) == ["missing"]
    assert commit(small_store, item(member)) == ["missing"]
    assert state(small_store) == before
    assert commit(small_store, item(GROUP, guarded), item(plain)) == ["", ""]


def test_items_of_one_commit_see_a_deleted_group_in_order(small_store: Store) -> None:
    first, second = (claim(number, (inventory(1), 1), places=[Place(1, 5, 0, 1, 2)]) for number in (1, 2))
    again = PutGroup(2, GROUP.uuid, "again", "affinity", 1)
    verdicts = commit(
        small_store,
        item(GROUP),
        item(first),
        item(DropGroup(1)),
        item(again),
        item(release(first), DropGroup(1)),
        item(second),
        item(again),
    )
    assert verdicts == ["", "", "in_use", "duplicate", "", "missing", ""]
    assert [row[1] for row in state(small_store)["PutGroup"]] == [2]
