"""The contract of the SQLite store about its file."""

import gc
import os
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from roost.errors import BadSettings, StoreBroken, StoreBusy, StoreOutdated
from roost.model.settings.roost_settings import Store as StoreSettings
from roost.model.work.change_query import ChangeQuery
from roost.model.writes import DropProvider, PutAggregate, PutProvider, PutSymbol
from roost.store import migrate
from roost.store.audit import audit
from roost.store.backends import open_follower, open_store, upgrade
from roost.store.rules.schema import SCHEMA_VERSION
from roost.store.sqlite import history
from roost.store.sqlite.store import SqliteStore
from roost.store.sqlite.upgrade import upgrade_sqlite
from roost.store.sqlite.work import WorkRows
from roost.store.work_queries import WorkQueries
from tests.contract.stores import VCPU, claim, commit, evidence, inventory, item, offer, provider, state
from tests.support.fleets.products import command, environ
from tests.support.fleets.worlds import FixedClock
from tests.support.permissions import unprivileged_user


@pytest.fixture
def path(tmp_path):
    return tmp_path / "roost.db"


def test_missing_file_is_created_with_its_folder(tmp_path):
    path = tmp_path / "deep" / "down" / "roost.db"
    with closing(open_store(path, settings=StoreSettings())) as store:
        assert commit(store, item(provider(1))) == [""]
    assert path.exists()
    assert not path.with_name("roost.db.new").exists()


def test_empty_file_counts_as_missing(path):
    path.touch()
    with closing(SqliteStore(path)) as store:
        assert list(store.load().writes) == []


def test_error_of_an_empty_file_says_how_to_create_the_tables(path):
    path.touch()
    with pytest.raises(StoreBroken, match=r"roost\.db is empty: create its tables with `roost db sync`"):
        audit(path)


def test_urls_and_paths_name_the_same_file(path):
    with closing(open_store(f"sqlite:///{path}", settings=StoreSettings(synchronous="NORMAL"))):
        assert path.exists()
    with pytest.raises(BadSettings, match="oracle"):
        open_store("oracle://somewhere", settings=StoreSettings())


def test_a_commit_is_flushed_unless_the_settings_relax_it(path):
    for synchronous, expected in (("FULL", 2), ("NORMAL", 1)):
        with closing(SqliteStore(path, synchronous=synchronous)) as store:
            assert store._connection.execute("PRAGMA synchronous").fetchone() == (expected,)
            assert store._connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_second_server_is_refused_with_advice(path):
    with closing(SqliteStore(path)):
        with pytest.raises(StoreBusy, match="PostgreSQL"):
            SqliteStore(path)
        script = f"from roost.store.sqlite.store import SqliteStore; SqliteStore({str(path)!r})"
        result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
        assert "served by another process" in result.stderr
    SqliteStore(path).close()


def test_failed_open_releases_the_lock(path):
    path.write_bytes(b"not a database, whatever its name may say" * 100)
    for _ in range(2):
        with pytest.raises(StoreBroken, match="not a database"):
            SqliteStore(path)


def test_readers_run_beside_the_server(path):
    with closing(SqliteStore(path)) as store:
        assert commit(store, item(VCPU, provider(1), offer(1, cpu=8)), item(claim(1, (inventory(1), 1)))) == ["", ""]
        with closing(SqliteStore.open_reader(path)) as reader:
            assert state(reader) == state(store)
            assert commit(store, item(rows=[evidence(1)])) == [""]
            assert reader.evidence() == [evidence(1)]
            with pytest.raises(StoreBroken, match="read-only"):
                commit(reader, item(provider(2)))
        assert audit(path) == []


def test_a_reader_needs_a_database(path):
    with pytest.raises(StoreBroken, match="does not exist"):
        SqliteStore.open_reader(path)
    with pytest.raises(StoreBroken, match="does not exist"):
        audit(path)
    with pytest.raises(StoreBroken, match="does not exist"):
        upgrade(path)


def test_old_schema_is_refused_with_the_command_and_can_be_upgraded(path):
    upgrade_sqlite(path, to="0001")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("INSERT INTO symbol (kind, id, name) VALUES ('trait', 1, 'KEPT')")
        connection.commit()
    for act in (SqliteStore, SqliteStore.open_reader, audit):
        with pytest.raises(StoreOutdated, match="roost db upgrade"):
            act(path)
    upgrade(path)
    with closing(SqliteStore(path)) as store:
        assert state(store) == {"PutSymbol": [["symbol", "trait", 1, "KEPT"]]}
        with pytest.raises(StoreBusy):
            upgrade(path)
    upgrade(path)


def test_a_newer_schema_is_refused(path):
    SqliteStore(path).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9998'")
        connection.commit()
    upgrade(path)
    SqliteStore(path).close()  # An upgrade that only adds something does not keep this program away.
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE compatibility SET readable_from = '9999'")
        connection.commit()
    for act in (SqliteStore, upgrade):
        with pytest.raises(StoreOutdated, match="newer"):
            act(path)


def test_a_follower_reads_the_tables_after_a_change_of_a_newer_program(path):
    with closing(SqliteStore(path)) as store, closing(open_follower(path)) as follower:
        list(follower.load().writes)
        assert commit(store, item(provider(1))) == [""]
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("UPDATE feed SET body = ?", (msgspec.msgpack.encode([["later", 1]]),))
            connection.commit()
        assert follower.changes() is None
        assert "PutProvider" in {type(write).__name__ for write in follower.load().writes}
        assert follower.changes() == []


def test_the_schema_of_the_program_is_the_newest_migration():
    assert migrate.head() == SCHEMA_VERSION, "raise SCHEMA_VERSION in src/roost/store/rules/schema.py"


def test_the_database_of_another_program_is_refused(path):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE theirs (x)")
    with pytest.raises(StoreBroken, match="not one of roost"):
        SqliteStore(path)


def test_a_corrupt_page_is_a_clear_error(path):
    with closing(SqliteStore(path)) as store:
        commit(store, *(item(provider(number)) for number in range(1, 400)))
    with closing(sqlite3.connect(path)) as connection:
        (root,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'provider'").fetchone()
        (page_bytes,) = connection.execute("PRAGMA page_size").fetchone()
    with path.open("r+b") as file:
        file.seek((root - 1) * page_bytes)
        file.write(b"\xff" * page_bytes)
    with pytest.raises(StoreBroken, match="corrupt"), closing(SqliteStore(path)) as store:
        commit(store, item(provider(1000)))


@pytest.mark.parametrize(
    "damage",
    ["UPDATE aggregate SET metadata = 5", "UPDATE symbol SET kind = x'ff'", "UPDATE aggregate SET metadata = 'x'"],
)
def test_invalid_row_is_a_clear_error(damage, path):
    with closing(SqliteStore(path)) as store:
        commit(store, item(provider(1), PutAggregate(1, bytes(16), "one", {}, 1), PutSymbol("trait", 1, "CUSTOM_A")))
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute(damage).rowcount
        connection.commit()
    with pytest.raises(StoreBroken, match="corrupt"), closing(SqliteStore(path)) as store:
        list(store.load().writes)


def test_damaged_schema_names_are_a_clear_error(path):
    SqliteStore(path).close()
    content = path.read_bytes()
    assert b"tableproviderprovider" in content
    path.write_bytes(content.replace(b"tableproviderprovider", b"tablepro\xe7iderprovider").replace(b"(", b"\xe7"))
    for act in (SqliteStore, audit):
        with pytest.raises(StoreBroken, match="is corrupt: 'utf-8' codec can't decode byte 0xe7"):
            act(path)


def test_audit_reads_pages_that_no_check_needs(path):
    with closing(SqliteStore(path)) as store:
        commit(store, *(item(rows=[evidence(number, body=bytes(5000))]) for number in range(1, 40)))
    content = bytearray(path.read_bytes())
    content[-40_000:-20_000] = b"\xff" * 20_000
    path.write_bytes(content)
    with pytest.raises(StoreBroken, match=r"is corrupt: .*[Pp]age"):
        audit(path)


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo], ids=["folder", "pipe"])
def test_folder_or_pipe_is_neither_opened_nor_replaced(path, make):
    make(path)
    kind = path.stat().st_mode
    for act in (SqliteStore, SqliteStore.open_reader, audit, upgrade):
        with pytest.raises(StoreBroken, match="is not a file"):
            act(path)
    assert path.stat().st_mode == kind


def test_path_refused_by_the_system_is_a_clear_error(tmp_path):
    for act in (SqliteStore, SqliteStore.open_reader, audit, upgrade):
        with pytest.raises(StoreBroken, match="cannot be opened: File name too long"):
            act(tmp_path / ("x" * 300))


def test_a_database_that_cannot_be_created_is_a_clear_error(path):
    path.with_name("roost.db.new").mkdir()
    for _ in range(2):  # The lock is free again.
        with pytest.raises(StoreBroken, match=r"cannot be created: .*roost.db.new: Is a directory"):
            SqliteStore(path)
    assert not path.exists()


def test_failed_upgrade_changes_nothing(path):
    upgrade_sqlite(path, to="0001")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE decision (theirs)")
    before = path.read_bytes()
    with pytest.raises(StoreBroken, match="table decision already exists"):
        upgrade(path)
    assert path.read_bytes() == before


def test_an_upgrade_beside_another_writer_is_refused(path, monkeypatch):
    upgrade_sqlite(path, to="0001")
    connect = sqlite3.connect
    with closing(connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        monkeypatch.setattr(sqlite3, "connect", lambda *words, **more: connect(*words, **{**more, "timeout": 0.05}))
        with pytest.raises(StoreBusy, match="locked"):
            upgrade(path)
        other.execute("ROLLBACK")
    upgrade(path)


def test_full_disk_leaves_nothing_behind_and_the_store_usable(path):
    with closing(SqliteStore(path)) as store:
        assert commit(store, item(VCPU, provider(1), offer(1, cpu=8))) == [""]
        before = state(store)
        (pages,) = store._connection.execute("PRAGMA page_count").fetchone()
        store._connection.execute(f"PRAGMA max_page_count = {pages + 1}")
        for number in range(3):  # guarded statements, and rows checked one by one
            with pytest.raises(StoreBroken, match="no space"):
                commit(store, item(claim(1, (inventory(1), 1)), rows=[evidence(1, body=bytes(100_000))]))
            with pytest.raises(StoreBroken, match="no space"):
                commit(store, *(item(provider(other)) for other in range(10 + number, 2000)))
            assert state(store) == before
        store._connection.execute("PRAGMA max_page_count = 1000000")
        assert commit(store, item(claim(1, (inventory(1), 1)))) == [""]
    assert audit(path) == []


@pytest.mark.parametrize("is_replaced", [False, True])
def test_deleted_or_replaced_file_is_neither_written_nor_read(path, is_replaced):
    with closing(SqliteStore(path)) as store:
        assert commit(store, item(provider(1))) == [""]
        aside = path.rename(path.with_name("aside"))
        if is_replaced:
            path.write_bytes(aside.read_bytes())
        with pytest.raises(StoreBroken, match="was deleted or replaced while it is served"):
            commit(store, item(provider(2)))
        with pytest.raises(StoreBroken, match="was deleted or replaced while it is served"):
            store.load()
        aside.replace(path)
        assert [each.name for each in store.load().writes if isinstance(each, PutProvider)] == ["p1"]
        assert commit(store, item(provider(2))) == [""]


def test_relative_path_holds_after_a_change_of_directory(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with closing(SqliteStore(path.name)) as store:
        monkeypatch.chdir("/")
        assert commit(store, item(provider(1))) == [""]
        assert list(store.load().writes)


def test_another_writer_is_awaited_and_then_reported(path):
    with closing(SqliteStore(path)) as store, closing(sqlite3.connect(path, isolation_level=None)) as other:
        store._connection.execute("PRAGMA busy_timeout = 50")
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreBusy, match="locked"):
            commit(store, item(provider(1)))
        other.execute("ROLLBACK")
        assert commit(store, item(provider(1))) == [""]


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_read_only_database_cannot_be_served_but_can_be_read(kind):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        path = folder / "roost.db"
        with closing(SqliteStore(path)) as store:
            assert commit(store, item(provider(1))) == [""]
        for old in folder.glob("roost.db?*"):
            old.unlink()
        path.chmod(0o444 if kind == "file" else 0o666)
        folder.chmod(0o777 if kind == "file" else 0o555)
        try:
            with unprivileged_user():
                with pytest.raises(StoreBroken, match=r"read-only|cannot be served"):
                    SqliteStore(path)
                with closing(SqliteStore.open_reader(path)) as reader:
                    assert len(list(reader.load().writes)) == 2
                assert audit(path) == []
        finally:
            folder.chmod(0o755)


def test_folder_that_cannot_be_created_is_a_clear_error(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(StoreBroken, match="cannot be created"):
        SqliteStore(tmp_path / "file" / "roost.db")


def test_identities_of_deleted_rows_are_not_reused_after_a_restart(path):
    with closing(SqliteStore(path)) as store:
        first = store.reserve("provider", 3)
        assert commit(store, item(provider(first + 2)), item(DropProvider(first + 2))) == ["", ""]
    with closing(SqliteStore(path)) as store:
        assert store.reserve("provider", 1) > first + 2


def test_size_of_old_rows_is_counted_in_parts_and_estimated_until_then(tmp_path, monkeypatch):
    monkeypatch.setattr("roost.store.sqlite.store._PRUNED_PER_CALL", 4)
    path = tmp_path / "roost.db"
    store = SqliteStore(path)
    for number in range(1, 31):
        store.commit([item(rows=[evidence(number, body=bytes(100), at_s=1.0)])])
    store.close()
    store = SqliteStore(path)
    # 30 rows of 100 bytes each; four are counted, and the others are assumed to be equal.
    assert store.prune(older_than_s=0.0, max_bytes=3_000) == 0
    pruned = [store.prune(older_than_s=0.0, max_bytes=1_500) for _ in range(6)]
    assert pruned == [4, 4, 4, 3, 0, 0]
    assert [row.id for row in store.evidence(newest=30)] == list(range(30, 15, -1))
    store.close()


def test_refused_rows_do_not_count_towards_the_size(tmp_path):
    store = SqliteStore(tmp_path / "roost.db")
    store.commit([item(rows=[evidence(1, body=bytes(1000))])])
    assert commit(store, item(rows=[evidence(1, body=bytes(9000))])) == ["duplicate"]
    assert store.prune(older_than_s=0.0, max_bytes=1000) == 0
    store.close()


def test_decision_lookup_by_uuid_uses_an_index(path):
    upgrade_sqlite(path, to="0002")
    old = evidence(1)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("INSERT INTO decision VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", msgspec.structs.astuple(old))
        connection.commit()
    upgrade(path)
    with closing(SqliteStore(path)) as store:
        assert commit(store, item(rows=[evidence(2)])) == [""]
        statements: list[str] = []
        store._connection.set_trace_callback(statements.append)
        assert [store.evidence(uuid=row.uuid) for row in (old, evidence(2), evidence(3))] == [[old], [evidence(2)], []]
        store._connection.set_trace_callback(None)
        plans = [store._connection.execute(f"EXPLAIN QUERY PLAN {statement}").fetchall() for statement in statements]
    assert {plan[-1] for steps in plans for plan in steps} == {"SEARCH decision USING INDEX decision_uuid (uuid=?)"}


@pytest.mark.parametrize(
    ("kinds", "index"),
    [(("host.disable",), "change_record_rare"), (("host.disable", "decision.create"), "change_record_at")],
)
def test_list_of_rare_changes_uses_their_index(path, kinds, index):
    SqliteStore(path).close()
    with closing(WorkRows(path, FixedClock(0.0))) as rows:
        statements: list[str] = []
        rows._connection.set_trace_callback(statements.append)
        assert WorkQueries(rows).changes(ChangeQuery(kinds=kinds, newest=5)) == []
        rows._connection.set_trace_callback(None)
        (statement,) = statements
        plan = rows._connection.execute(f"EXPLAIN QUERY PLAN {statement}").fetchall()
    assert [step[-1] for step in plan] == [f"SCAN change_record USING INDEX {index}"]


@pytest.mark.parametrize(("blocks", "is_created"), [(8, False), (600, True)])
def test_disk_limit_ends_a_replay_with_a_sound_database_or_none(tmp_path, blocks, is_created):
    words = command("replay", "--generate", "--host-count", "100", "--requests", "2000", "--data", "data")
    command_line = ["sh", "-c", f'ulimit -f {blocks}; exec "$@"', "sh", *words]
    result = subprocess.run(command_line, cwd=tmp_path, env=environ(), capture_output=True, text=True, check=False)
    errors = [line for line in result.stderr.splitlines() if not line.startswith("replay: ")]
    assert (result.returncode, errors) == (7, [f"roost: {Path('data', 'roost.db')}: disk I/O error"])
    assert {path.name for path in tmp_path.glob("data/*.db*") if "-" not in path.name} == (
        {"roost.db", "roost.db.lock"} if is_created else {"roost.db.lock"}
    )
    if is_created:
        assert audit(tmp_path / "data" / "roost.db") == []


def test_unread_load_leaves_no_open_connection(path, monkeypatch):
    connections = []

    def spy(*arguments):
        connections.append(open_reader(*arguments))
        return connections[-1]

    open_reader = history.open_reader
    monkeypatch.setattr(history, "open_reader", spy)
    with closing(SqliteStore(path)) as store:
        assert commit(store, item(provider(1))) == [""]
        loaded = store.load()
        assert loaded.position > 0
        del loaded
    gc.collect()
    (connection,) = connections
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        connection.execute("SELECT 1")
