"""Records of changes: committed with their writes, found by filters, pruned by age and number, and in backups."""

import sqlite3
from contextlib import closing

import pytest

from roost.model.work.change_query import ChangeQuery
from roost.model.work.work_rows import Put
from roost.store import backup as backups
from roost.store.backends import upgrade
from roost.store.sqlite.store import SqliteStore
from roost.store.sqlite.upgrade import upgrade_sqlite
from tests.contract.stores import claim, commit, inventory, item, provider
from tests.support.conductors.work_rows import change, operation
from tests.support.fleets.worlds import FixedClock


@pytest.fixture
def reader(store):
    """Yield a reader of the work in the store."""
    with closing(store.work_reader(FixedClock(5.0))) as found:
        yield found


def ids(rows):
    """Return the ids of changes."""
    return [row.id for row in rows]


def test_change_is_stored_only_together_with_its_item(small_store):
    store = small_store
    assert commit(store, item(provider(7), trail=[change(1)])) == [""]
    taken = claim(1, (inventory(1), 8))
    assert commit(store, item(taken, trail=[change(2)])) == [""]
    assert commit(store, item(claim(2, (inventory(1), 1)), trail=[change(3)])) == ["capacity"]
    assert commit(store, item(work=[Put(operation(1))], trail=[change(4)]), item(trail=[change(5)])) == ["", ""]
    assert commit(store, item(trail=[change(5, object="other")])) == ["duplicate"]
    reader = store.work_reader(FixedClock(5.0))
    with closing(reader):
        assert reader.changes(ChangeQuery()) == [change(5), change(4), change(2), change(1)]


def test_group_of_claims_is_committed_with_their_changes(small_store):
    items = [item(claim(each, (inventory(1), 1)), trail=[change(each)]) for each in range(1, 6)]
    assert commit(small_store, *items) == [""] * 5
    with closing(small_store.work_reader(FixedClock(5.0))) as reader:
        assert ids(reader.changes(ChangeQuery())) == [5, 4, 3, 2, 1]


def test_changes_are_filtered_and_paged_newest_first(store, reader):
    rows = [
        change(1, at_s=1.0),
        change(2, at_s=2.0, user_id="bob"),
        change(3, at_s=2.0, kind="host.enable"),
        change(4, at_s=2.0, object="host-2", project_id="dev"),
        change(5, at_s=3.0, kind="allocation.update", object="c"),
    ]
    assert commit(store, item(trail=rows)) == [""]

    def find(**query):
        return ids(reader.changes(ChangeQuery(**query)))

    assert find() == [5, 4, 3, 2, 1]
    assert find(object="host-1") == [3, 2, 1]
    assert find(object="host-1", kinds=("host.disable",)) == [2, 1]
    assert find(user_id="bob") == [2]
    assert find(project_id="dev") == [4]
    assert find(request_id="req-3") == [3]
    assert find(since_s=2.0, until_s=2.0) == [4, 3, 2]
    assert find(newest=2) == [5, 4]
    assert find(before=(2.0, 4), newest=2) == [3, 2]
    assert find(before=(2.0, 3), newest=9) == [2, 1]
    assert ids(reader.rare_changes_since(2.0, limit=9)) == [2, 3, 4]


def test_old_changes_are_pruned_by_age_and_by_number(store, reader):
    assert commit(store, item(trail=[change(each, at_s=float(each)) for each in range(1, 11)])) == [""]
    assert store.prune_work(older_than_s=99.0) == 0
    assert store.prune_work(older_than_s=0.0, changes_older_than_s=2.0, changes_max=100) == 2
    assert store.prune_work(older_than_s=0.0, changes_older_than_s=0.0) == 0
    assert ids(reader.changes(ChangeQuery())) == list(range(10, 2, -1))


def test_the_newest_changes_stay_within_the_limit(store, reader):
    assert commit(store, item(trail=[change(each, at_s=float(each)) for each in range(1, 11)])) == [""]
    assert store.prune_work(older_than_s=0.0, changes_max=4) == 6
    assert store.prune_work(older_than_s=0.0, changes_max=4) == 0
    assert ids(reader.changes(ChangeQuery())) == [10, 9, 8, 7]


def test_changes_survive_a_restart(world):
    assert commit(world.open(), item(trail=[change(1)])) == [""]
    store = world.open()
    with closing(store.work_reader(FixedClock(5.0))) as reader:
        assert reader.changes(ChangeQuery()) == [change(1)]


def test_backup_has_the_changes(tmp_path):
    path, copy, file = tmp_path / "a.db", tmp_path / "b.db", tmp_path / "backup"
    with closing(SqliteStore(path)) as store:
        assert commit(store, item(trail=[change(1), change(2)])) == [""]
    backups.backup(str(path), file, progress=lambda *_: None)
    backups.restore(str(copy), file, may_replace=False, progress=lambda *_: None)
    with closing(SqliteStore(copy)) as store, closing(store.work_reader(FixedClock(5.0))) as reader:
        assert reader.changes(ChangeQuery()) == [change(2), change(1)]
        assert store.reserve("change", 1) > 0


def test_database_of_the_previous_schema_keeps_its_operations_without_clients(tmp_path):
    path = tmp_path / "roost.db"
    upgrade_sqlite(path, to="0005")
    row = operation(1)
    values = {name: getattr(row, name) for name in row.__struct_fields__[:-3]}
    with closing(sqlite3.connect(path)) as connection:
        marks = ", ".join("?" * len(values))
        connection.execute(f"INSERT INTO operation ({', '.join(values)}) VALUES ({marks})", tuple(values.values()))
        connection.commit()
    upgrade(path)
    with closing(SqliteStore(path)) as store, closing(store.work_reader(FixedClock(5.0))) as reader:
        assert reader.operation(1) == row
        assert reader.changes(ChangeQuery()) == []
