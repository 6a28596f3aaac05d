"""A fleet from a column file and later changes equals a fleet from all rows, or the file is refused."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from random import Random

import pytest

from roost.model.writes import PutSymbol
from roost.placement.current import Current
from roost.store import backup as backups
from roost.store import dump
from roost.store.backends import database_at, open_follower
from roost.store.column_file import part_codec
from roost.store.sqlite.follower import SqliteFollower
from tests.contract.column_fleets import Fleet, continue_history, run_history
from tests.contract.stores import SHARED, DurableWorld, SharedWorld, SqliteWorld, commit, item, provider
from tests.support.fleets.content_by_id import content_by_id
from tests.support.fleets.stored_histories import StoredHistory, whole_content

pytestmark = pytest.mark.long


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Let small fleets need several parts and blocks."""
    monkeypatch.setattr(dump, "_ROWS_MAX", 7)
    monkeypatch.setattr(part_codec, "_ROWS_MAX", 16)


@pytest.fixture
def reasons(monkeypatch) -> list[str]:
    """Collect the reasons of refused files."""
    found: list[str] = []

    def note(name, **fields):
        if name == "column_file_refused":
            found.append(fields["reason"])

    monkeypatch.setattr("roost.observe.log.event", note)
    return found


@pytest.fixture
def fleet(durable, tmp_path):
    """Yield a new fleet with a folder for its column file."""
    folder = tmp_path / "columns"
    folder.mkdir(mode=0o700)
    found = Fleet(durable, folder)
    yield found
    found.close()


@contextmanager
def follow(world: DurableWorld) -> Iterator[Current]:
    """Yield columns that follow a database from now on."""
    is_file = isinstance(world, SqliteWorld)
    follower = SqliteFollower(world.path) if is_file else world.store(world.url, may_create=False)
    with closing(follower):
        yield Current(follower)


@pytest.mark.parametrize("seed", range(4))
def test_cached_fleet_equals_the_rows(fleet, seed):
    history = run_history(fleet, seed, 120)
    fleet.write()
    with follow(fleet.world) as follower:
        continue_history(fleet, history, 90, stores=1 + seed % 3)
        follower.refresh()
        cached = fleet.load()
    assert cached is not None
    assert whole_content(cached) == whole_content(follower.state) | {"position": cached.position}
    assert content_by_id(cached) == content_by_id(fleet.load_rows())


def test_vector_and_position_equal_those_of_the_rows(fleet):
    history = run_history(fleet, 3, 60)
    fleet.write()
    continue_history(fleet, history, 40, stores=2)
    store = fleet.open()
    seen = []
    for from_rows in (False, True):
        loaded = store.load(from_rows=from_rows)
        list(loaded.parts)
        assert loaded.is_cached is not from_rows
        reader = getattr(store, "_reader", None)
        vector = None if reader is None else (reader.vector, dict(reader.vector.closed))
        seen.append((loaded.position, store.visible_changes, vector, store.changes()))
    assert seen[0] == seen[1]


def test_store_continues_after_a_cached_load(fleet):
    run_history(fleet, 1, 60)
    fleet.write()
    store = fleet.open()
    current = Current(store)
    with follow(fleet.world) as follower:
        assert commit(store, item(PutSymbol("trait", 70_000, "CUSTOM_LATER"))) == [""]
        assert commit(store, item(provider(9000))) == [""]
        follower.refresh()
        assert 9000 in follower.state.providers.row_of_id
    current.drop()
    current.refresh()  # It reads the file again, and the two changes.
    assert "CUSTOM_LATER" in current.state.trait_ids
    assert 9000 in current.state.providers.row_of_id
    found = content_by_id(current.state)
    # The end of a writer is a change, too.
    assert found == content_by_id(fleet.load_rows()) | {"position": found["position"]}


def test_reader_adds_missing_standard_names_after_the_changes(fleet):
    history = run_history(fleet, 1, 40)
    fleet.write()
    continue_history(fleet, history, 5)
    assert commit(history._store, item(PutSymbol("trait", 70_000, "COMPUTE_NODE"))) == [""]
    with closing(open_follower(fleet.world.url, settings=fleet.settings)) as reader:
        assert reader.load().is_cached
        state = Current(reader).state
    assert state.trait_ids.id_of("COMPUTE_NODE") == 70_000
    assert "VGPU" in state.class_ids


def test_absent_file_is_no_problem(fleet, reasons):
    run_history(fleet, 1, 10)
    assert fleet.load() is None
    assert reasons == []


def refuse(fleet: Fleet, reasons: list[str], reason: str) -> None:
    """Check that the file is refused for one reason, and that the content is that of the rows."""
    reasons.clear()
    state = Current(fleet.open()).state
    assert len(reasons) == 1
    assert reason in reasons[0]
    assert content_by_id(state) == content_by_id(fleet.load_rows())


def test_restored_database_refuses_the_file(fleet, reasons, tmp_path):
    history = run_history(fleet, 2, 40)
    fleet.close()
    backups.backup(fleet.world.url, tmp_path / "backup", progress=lambda *_: None)
    continue_history(fleet, history, 40)
    fleet.write()
    continue_history(fleet, history, 10)
    fleet.close()
    backups.restore(fleet.world.url, tmp_path / "backup", may_replace=True, progress=lambda *_: None)
    reason = "does not have its token" if isinstance(fleet.world, SqliteWorld) else "was restored since"
    refuse(fleet, reasons, reason)
    run_history(fleet, 5, 60)
    refuse(fleet, reasons, reason)


def test_database_without_some_changes_refuses_the_file(fleet, reasons):
    history = run_history(fleet, 2, 40)
    fleet.write()
    continue_history(fleet, history, 20)
    fleet.close()
    with database_at(fleet.world.url).write() as execute:
        ((position,),) = execute("SELECT position FROM feed ORDER BY position DESC LIMIT 1 OFFSET 5", ())
        execute("DELETE FROM feed WHERE position = ?", (position,))
    refuse(fleet, reasons, "changes since were deleted")


@pytest.mark.parametrize("durable", SHARED, indirect=True)  # a SQLite file has no writers
def test_writers_that_came_and_went_are_not_forgotten(durable, tmp_path, reasons):
    tmp_path.chmod(0o700)
    fleet = Fleet(durable, tmp_path)
    history = run_history(fleet, 2, 40)
    fleet.write()
    first = history._store
    with closing(durable.store(durable.url)) as other:
        assert commit(other, item(PutSymbol("trait", 70_000, "CUSTOM_GONE"))) == [""]
    # The retention of changes deletes everything of the closed writer; the open one has no newer change.
    with database_at(durable.url).write() as execute:
        execute("DELETE FROM feed WHERE writer IN (SELECT id FROM writer WHERE retired IS NOT NULL)", ())
        execute("DELETE FROM writer WHERE retired IS NOT NULL", ())
    loaded = durable.store(durable.url, settings=fleet.settings, may_create=False)
    with closing(loaded):
        assert not loaded.load().is_cached
    assert reasons == ["changes since were deleted"]
    first.close()
    fleet._store = None


def test_file_of_another_database_is_refused(fleet, reasons, tmp_path):
    run_history(fleet, 2, 40)
    other = SqliteWorld(tmp_path / "other.db")
    StoredHistory(other.open(), Random(2)).run(40)
    other.close()
    assert database_at(other.url).write_column_file(fleet.path)
    refuse(fleet, reasons, "" if isinstance(fleet.world, SharedWorld) else "does not have its token")


def test_newer_change_refuses_the_file(fleet, reasons):
    history = run_history(fleet, 2, 20)
    fleet.write()
    continue_history(fleet, history, 5)
    fleet.close()
    with database_at(fleet.world.url).write() as execute:
        ((position,),) = execute("SELECT max(position) FROM feed WHERE length(body) > 0", ())
        execute("UPDATE feed SET body = ? WHERE position = ?", (b"\x91\x91\xa4Nope", position))
    refuse(fleet, reasons, "cannot be decoded")


def test_only_the_newest_token_of_a_file_stays(fleet):
    history = run_history(fleet, 2, 20)
    for _ in range(3):
        fleet.write()
        continue_history(fleet, history, 2)
    with database_at(fleet.world.url).read_query() as query:
        names = [name for (name,) in query("SELECT name FROM upkeep") if name.startswith("column file")]
    assert len(names) == 1
    assert fleet.load() is not None
