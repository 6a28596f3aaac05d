"""A backup holds one moment of the whole database; a restore is atomic, with connected processes and after a kill."""

import contextlib
import hashlib
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from roost.errors import BadFile, BadRequest, StoreBusy, Unavailable
from roost.machine import SystemClock
from roost.model.settings.roost_settings import Settings
from roost.model.stored_decision import Record, moment_of
from roost.model.work.work_rows import NO_RUN, RESTORE_LEASE, LeaseRow, Put
from roost.model.writes import PutSymbol
from roost.placement.current import Current
from roost.placement.placement_service import Placement
from roost.store.audit import audit
from roost.store.backends import open_store
from roost.store.backup import backup, restore
from roost.store.backup_file import read_header
from tests.contract.stores import (
    CPU,
    MEMORY,
    SHARED,
    URL_FIXTURES,
    SqliteWorld,
    claim,
    commit,
    evidence,
    host,
    inventory,
    item,
    offer,
    position_of,
    provider,
    release,
    state,
)
from tests.support.conductors.work_rows import agent, operation
from tests.support.databases import mariadb, postgres
from tests.support.fleets.products import kill, roost, worker

BODY = msgspec.msgpack.encode(
    Record(1, 1, 1, 0, [], [], [], [], [], [], [], [], 1, 1, 0.0, 0.0, ahead=0, seen="1:1: 0 0")
)


def check_progress(done, total):
    assert 0 <= done <= total


def fill(world):
    """Fill a database with providers, a host, consumers, released consumers and decisions."""
    store = world.open()
    writes = [PutSymbol("resource_class", CPU, "VCPU"), PutSymbol("resource_class", MEMORY, "CUSTOM_MEMORY")]
    writes += [write for number in range(1, 30) for write in (provider(number), offer(number, cpu=8, memory=64))]
    assert commit(store, item(*writes, host(1)), item(provider(40, parent=provider(3)))) == ["", ""]
    held = [claim(number, (inventory(1 + number % 20), 1)) for number in range(1, 60)]
    items = [item(one, rows=[evidence(one.consumers[0].id, body=BODY)]) for one in held]
    assert set(commit(store, *items)) == {""}
    assert set(commit(store, *(item(release(one)) for one in held[:10]))) == {""}
    store.reserve("consumer", 1000)
    return store


@pytest.fixture
def backup_case(durable, tmp_path):
    """Return a filled store, its content, and the path of a backup."""
    store = fill(durable)
    path = tmp_path / "one.backup"
    backup(durable.url, path, progress=check_progress)
    return store, state(store), path


@pytest.fixture(params=["sqlite", *SHARED])
def other_database(request, tmp_path):
    """Yield another empty database, of each kind."""
    if request.param == "sqlite":
        world = SqliteWorld(tmp_path / "other" / "roost.db")
    else:
        world = SHARED[request.param](request.getfixturevalue(f"second_{URL_FIXTURES[request.param]}"))
    yield world
    world.close()


@pytest.fixture
def second_postgres_url(postgres_server):
    with postgres.fresh_database(postgres_server) as url:
        yield url


@pytest.fixture
def second_mariadb_url(mariadb_server):
    with mariadb.fresh_database(mariadb_server) as url:
        yield url


def test_backup_is_restored_into_each_kind_of_database(backup_case, other_database):
    _, before, path = backup_case
    restore(other_database.url, path, may_replace=False, progress=check_progress)
    store = other_database.open()
    assert state(store) == before
    assert sorted(row.id for row in store.evidence(newest=100)) == list(range(1, 60))
    assert list(audit(other_database.url)) == []


def test_backup_holds_one_moment_of_a_changing_database(durable, tmp_path):
    store = fill(durable)
    before = state(store)
    seen = []

    def commit_during_backup(done, total):
        if not seen:
            assert commit(store, item(provider(90), offer(90, cpu=1))) == [""]
        seen.append((done, total))

    path = tmp_path / "one.backup"
    header, size = backup(durable.url, path, progress=commit_during_backup)
    assert seen[-1] == (header.rows, header.rows)
    assert (path.stat().st_size, path.stat().st_mode & 0o777) == (size, 0o600)
    durable.close()
    restore(durable.url, path, may_replace=True, progress=check_progress)
    assert state(durable.open()) == before


def test_identities_and_positions_continue_after_a_restore(backup_case, durable):
    store, _, path = backup_case
    first = store.reserve("consumer", 1)
    assert commit(store, item(provider(95))) == [""]
    position = position_of(store)
    durable.close()
    restore(durable.url, path, may_replace=True, progress=check_progress)
    store = durable.open()
    assert store.reserve("consumer", 1) > first
    assert position_of(store) > position


def test_restored_database_trusts_neither_registrations_nor_open_operations(durable, tmp_path):
    store = durable.open()
    body = msgspec.msgpack.encode({"limit_at_s": 100.0, "picks": ["first", "second"]})
    rows = [agent("h1", state="ready", fence=7), operation(1), operation(2, outcome="done")]
    rows += [operation(3, kind="spawn", body=body), operation(4, kind="spawn", body=body, outcome="done")]
    rows.append(operation(5, kind="resize", body=body))
    rows.append(LeaseRow(name=RESTORE_LEASE, owner="an earlier restore", until_s=1.0))
    assert commit(store, item(work=[Put(row) for row in rows])) == [""]
    path = tmp_path / "one.backup"
    backup(durable.url, path, progress=check_progress)
    durable.close()
    restore(durable.url, path, may_replace=True, progress=check_progress)
    with closing(durable.open().work_reader(SystemClock())) as reader:
        restored = reader.agent("h1")
        assert (restored.run, restored.state, restored.fence) == (NO_RUN, "arriving", 8)
        assert reader.operation(1).uuid != rows[1].uuid
        assert reader.operation(2).uuid == rows[2].uuid
        build = msgspec.msgpack.decode(reader.operation(3).body)
        assert build == {"limit_at_s": pytest.approx(100.0, abs=600), "picks": ["first"]}
        assert build["limit_at_s"] >= 100.0
        assert msgspec.msgpack.decode(reader.operation(5).body)["picks"] == ["first"]
        assert reader.operation(4).body == body
        assert reader.lease(RESTORE_LEASE).until_s == pytest.approx(SystemClock().now_s(), abs=600)


def test_restored_decisions_are_listed_but_cannot_be_replayed(backup_case, durable):
    _, _, path = backup_case
    durable.close()
    restore(durable.url, path, may_replace=True, progress=check_progress)
    store = durable.open()
    assert commit(store, item(provider(96))) == [""]
    for row in store.evidence(newest=100):
        moment = moment_of(row)
        assert moment.seen == ""
        assert store.past(moment.position, moment.seen) is None


def test_non_empty_database_is_replaced_only_on_demand(backup_case, durable):
    store, _, path = backup_case
    assert commit(store, item(provider(97))) == [""]
    before = state(store)
    durable.close()
    with pytest.raises(BadRequest, match="--replace"):
        restore(durable.url, path, may_replace=False, progress=check_progress)
    assert state(durable.open()) == before


def test_database_that_was_only_opened_counts_as_empty(backup_case, other_database):
    _, before, path = backup_case
    Placement(Current(other_database.open()))
    other_database.close()
    restore(other_database.url, path, may_replace=False, progress=check_progress)
    assert state(other_database.open()) == before


def test_backup_does_not_overwrite_a_file(backup_case, durable):
    _, _, path = backup_case
    before = path.read_bytes()
    with pytest.raises(BadRequest):
        backup(durable.url, path, progress=check_progress)
    assert path.read_bytes() == before


@pytest.mark.usefixtures("backup_case")
def test_unwritable_backup_is_refused_in_one_sentence(durable, tmp_path):
    with pytest.raises(BadFile, match=r"absent/a\.backup: cannot be written: No such file or directory"):
        backup(durable.url, tmp_path / "absent" / "a.backup", progress=check_progress)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda body: body[:-1],
        lambda body: body[: len(body) // 2],
        lambda _: b"",
        lambda body: b"x" + body[1:],
        lambda body: body[:-40] + bytes([body[-40] ^ 1]) + body[-39:],
        lambda body: body + b"x",
        lambda body: body.split(b"\n")[0] + b"\n",
    ],
)
def test_damaged_backup_changes_nothing(backup_case, durable, spoil):
    _, before, path = backup_case
    path.write_bytes(spoil(path.read_bytes()))
    durable.close()
    with pytest.raises(BadFile):
        restore(durable.url, path, may_replace=True, progress=check_progress)
    assert state(durable.open()) == before


def set_schema(path, version):
    """Replace the schema in the header of a backup."""
    body = path.read_bytes()
    before = read_header(path).schema.encode()
    body = body[:-32].replace(b'"schema":"' + before, b'"schema":"' + version, 1)
    path.write_bytes(body + hashlib.sha256(body).digest())


def test_a_backup_of_the_previous_schema_is_restored(backup_case, durable):
    _, before, path = backup_case
    set_schema(path, b"0009")
    durable.close()
    restore(durable.url, path, may_replace=True, progress=check_progress)
    store = durable.open()
    assert state(store) == before
    assert commit(store, item(provider(96))) == [""]


def test_a_backup_of_another_schema_is_refused(backup_case, durable):
    _, before, path = backup_case
    set_schema(path, b"0001")
    durable.close()
    with pytest.raises(BadFile, match="schema 0001, older than"):
        restore(durable.url, path, may_replace=True, progress=check_progress)
    assert state(durable.open()) == before


def test_sqlite_file_in_use_is_not_restored(tmp_path):
    world = SqliteWorld(tmp_path / "roost.db")
    store = fill(world)
    path = tmp_path / "one.backup"
    backup(str(world.path), path, progress=check_progress)
    with pytest.raises(StoreBusy, match="served by another process"):
        restore(str(world.path), path, may_replace=True, progress=check_progress)
    assert commit(store, item(provider(98))) == [""]
    world.close()


@pytest.mark.parametrize("kind", SHARED)
def test_running_processes_reload_after_a_restore(kind, request, tmp_path):
    path, url = tmp_path / "one.backup", request.getfixturevalue(URL_FIXTURES[kind])
    first, second = (Current(open_store(url, settings=Settings().store)) for _ in range(2))
    with contextlib.closing(first.store), contextlib.closing(second.store):
        Placement(first)
        first.write([provider(1, name="old"), offer(1, cpu=4)])
        backup(url, path, progress=check_progress)
        second.refresh()
        second.write([provider(2, name="new")])
        first.refresh()
        assert set(first.state.providers.row_of_name) == {"old", "new"}
        restore(url, path, may_replace=True, progress=check_progress)
        assert first.refresh()
        assert set(first.state.providers.row_of_name) == {"old"}
        # The second process writes on its stale state: the write is refused, and the process notices the restore.
        with pytest.raises(Unavailable, match="restored"):
            second.write([provider(3, name="later")])
        second.refresh()
        assert set(second.state.providers.row_of_name) == {"old"}
        second.write([provider(3, name="later")])
        assert first.refresh()
        assert set(first.state.providers.row_of_name) == {"old", "later"}


def slow_restore(url, path):
    """Restore in a process of its own: print the progress and wait for a line at each step."""

    def step(done, total):
        print(done, total, flush=True)
        sys.stdin.readline()

    restore(url, Path(path), may_replace=True, progress=step)
    print("done", flush=True)


@pytest.mark.parametrize("steps", [1, 5, 9, 1000])
def test_killed_restore_leaves_the_old_or_the_new_content(backup_case, durable, steps):
    store, new, path = backup_case
    assert commit(store, item(provider(99), offer(99, cpu=3))) == [""]
    old = state(store)
    durable.close()
    process = worker("tests.contract.test_backup:slow_restore", durable.url, str(path))
    line = ""
    with contextlib.suppress(BrokenPipeError):
        for _ in range(steps):
            line = process.stdout.readline()
            if line in ("", "done\n"):
                break
            process.stdin.write("\n")
    kill(process)
    found = state(durable.open())
    assert found == (new if line == "done\n" else old) or (found == new and steps > 9)
    assert list(audit(durable.url)) == []


def test_db_commands_version_sync_check_backup_and_restore(run, tmp_path):
    data = tmp_path / "data"

    def db(*words, code=0):
        found, out, err = run("db", *words)
        assert found == code, err
        return out, err

    assert db("version", "--data", data, code=4)[1].endswith("or create the database with `roost db sync`\n")
    for _ in range(2):
        assert db("sync", "--data", data)[0] == f"{data / 'roost.db'} has the schema of this program\n"
    assert db("version", "--database", data / "roost.db")[0].strip().isdigit()
    assert db("check", "--data", data)[0] == "the schema is current and all rules hold\n"
    assert db("check", "--data", data, "--json")[0] == "[]\n"
    result = roost("db", "backup", tmp_path / "b", "--data", data, cwd=tmp_path)
    assert (result.returncode, " rows, " in result.stdout) == (0, True)
    assert db("backup", tmp_path / "b", "--data", data, code=2)[1].startswith("roost: ")
    result = roost("db", "restore", tmp_path / "b", "--database", tmp_path / "two.db", cwd=tmp_path)
    assert (result.returncode, result.stdout.startswith(f"{tmp_path / 'two.db'}: restored ")) == (0, True)
    with contextlib.closing(sqlite3.connect(data / "roost.db")) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '0001'")
        connection.commit()
    assert db("version", "--data", data)[0] == "0001\n"
    assert "older than" in db("check", "--data", data, code=7)[1]


@pytest.mark.parametrize("command", ["sync", "upgrade"])
def test_changed_database_is_named_without_its_password(run, postgres_url, command):
    def url(password):
        return postgres_url.replace("//roost@", f"//roost:{password}@")

    code, output, error = run("db", command, "--database", url("secret"))
    assert (code, output) == (0, f"{url('***')} has the schema of this program\n"), error


def test_db_check_has_an_exit_code_for_each_cause(run, tmp_path):
    def check():
        code, _, error = run("db", "check", "--database", tmp_path / "roost.db")
        return code, error

    code, error = check()
    assert (code, "does not exist; correct the path" in error) == (4, True)
    assert run("db", "sync", "--database", tmp_path / "roost.db")[0] == 0
    assert check() == (0, "")
    with contextlib.closing(sqlite3.connect(tmp_path / "roost.db")) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '0001'")
        connection.commit()
    code, error = check()
    assert (code, "older than" in error) == (7, True)
    whole = (tmp_path / "roost.db").read_bytes()
    for damaged in (whole[:100] + b"x" * (len(whole) - 100), b"x" * len(whole)):
        (tmp_path / "roost.db").write_bytes(damaged)
        code, error = check()
        assert (code, "restore a backup" in error) == (8, True), error
