"""Each step of an operation is taken once: after races, after crashes, and on an upgraded database."""

import threading
from contextlib import closing

import psycopg
import pytest

from roost.errors import Conflict, StoreBroken, StoreOutdated, Unavailable
from roost.model.fleet import NamedRequest
from roost.model.names import uuid_bytes
from roost.model.work.work_rows import Put
from roost.store import backends
from roost.store.audit import audit
from roost.store.postgresql.store import PostgresStore
from roost.store.postgresql.versions.upgrade import upgrade_postgresql
from roost.store.rules.codec import encode_writes
from roost.store.sqlite import upgrade as sqlite_upgrade
from roost.store.sqlite.upgrade import upgrade_sqlite
from tests.contract.stores import (
    PostgresWorld,
    SharedWorld,
    SqliteWorld,
    claim,
    commit,
    evidence,
    inventory,
    item,
    offer,
    provider,
)
from tests.support.conductors.work_rows import agent, event, operation, order, replacement, status
from tests.support.databases import postgres
from tests.support.databases.postgres import break_after_commit
from tests.support.databases.racing_stores import FailingStore
from tests.support.fleets.worlds import FixedClock, hosts, roost_on, small_request, uuid_named

DECISION, ME = uuid_named("decision"), uuid_named("me")


def reader_of(store):
    """Return a context with a reader of the work in a store."""
    return closing(store.work_reader(FixedClock(1000.0)))


def step_of(row, to):
    """Return a request that takes an operation to its next step."""
    return NamedRequest(
        request=small_request(instance_uuids=(ME,)),
        decision_uuid=DECISION,
        work=(replacement(row, step=to), Put(order(1)), Put(event(1))),
    )


@pytest.mark.parametrize("is_made", [False, True], ids=["before", "after"])
def test_crash_at_the_commit_of_a_step_leaves_it_done_or_not_started(world, is_made):
    row, store = operation(1, step="choose"), world.open()
    roost = roost_on(store)
    roost.install(hosts(2))
    assert commit(store, item(work=[Put(row)])) == [""]
    failing = roost_on(FailingStore(world.open(), at=1, is_made=is_made))
    with pytest.raises(Unavailable):
        failing.work([step_of(row, "send")])
    store = world.open()
    successor = roost_on(store)
    with reader_of(store) as reader:
        found = reader.operation(1)
        assert found.step == ("send" if is_made else "choose")
        assert (reader.order(1) is not None) is is_made
        assert (store.evidence(uuid=uuid_bytes(DECISION)) != []) is is_made
        assert (uuid_bytes(ME) in successor.state.holders) is is_made
        (result,) = successor.outcomes([step_of(row, "send")])
        assert isinstance(result, Conflict) is is_made
        assert (reader.operation(1).step, len(reader.orders_of(1))) == ("send", 1)
    assert len(successor.state.holders) == len(store.evidence()) == 1
    if isinstance(world, SqliteWorld | SharedWorld):
        assert audit(str(world.path) if isinstance(world, SqliteWorld) else world.url) == []


def test_decisions_that_are_steps_are_replayed_like_others(world):
    row, store = operation(1, step="choose"), world.open()
    roost = roost_on(store)
    roost.install(hosts(3))
    assert commit(store, item(work=[Put(row)])) == [""]
    first, step, last = roost.work([small_request(), step_of(row, "send"), small_request(vcpus=99)])
    assert commit(store, item(work=[Put(event(2))])) == [""]
    refused = NamedRequest(request=small_request(vcpus=99), decision_uuid=uuid_named("no"), work=(Put(event(3)),))
    decisions = [first, step, last, *roost.work([refused, small_request()])]
    assert [decision.is_granted for decision in decisions] == [True, True, False, False, True]
    assert all(roost.replay(decision.uuid).is_same for decision in decisions)


TAKERS, OPERATIONS = 3, 30


def test_racing_processes_take_each_operation_once(postgres_url):
    with closing(PostgresStore(postgres_url)) as store:
        assert set(commit(store, *(item(work=[Put(operation(one))]) for one in range(1, OPERATIONS + 1)))) == {""}
    taken, start = [], threading.Barrier(TAKERS)

    def take(name):
        with closing(PostgresStore(postgres_url)) as own, reader_of(own) as reader:
            start.wait()
            while due := reader.due_operations([""], now_s=1000.0, limit=8):
                items = [item(work=[replacement(row, owner=name, owned_until_s=1030.0)]) for row in due[::-1]]
                verdicts = commit(own, *items)
                assert set(verdicts) <= {"", "generation"}
                taken.extend(row.id for row, verdict in zip(due[::-1], verdicts, strict=True) if not verdict)

    _run_concurrently(take)
    assert sorted(taken) == list(range(1, OPERATIONS + 1))


def test_racing_processes_lose_no_change_of_a_row(postgres_url):
    with closing(PostgresStore(postgres_url)) as store:
        assert commit(store, item(work=[Put(operation(1)), Put(agent("h1"))])) == [""]
    start = threading.Barrier(TAKERS)

    def count(name):
        with closing(PostgresStore(postgres_url)) as own, reader_of(own) as reader:
            start.wait()
            done = 0
            while done < OPERATIONS:
                own.beat(["h1"], 2000.0 + done)
                row = reader.operation(1)
                log = Put(event(row.turn + 1, kind=name))
                done += commit(own, item(work=[log, replacement(row, turn=row.turn + 1)])) == [""]

    _run_concurrently(count)
    with closing(PostgresStore(postgres_url)) as store, reader_of(store) as reader:
        assert reader.operation(1).turn == TAKERS * OPERATIONS
        assert len(reader.events_since(0.0, limit=999)) == TAKERS * OPERATIONS
        assert reader.agent("h1").heard_at_s == 2000.0 + OPERATIONS - 1


def _run_concurrently(act):
    errors = []

    def run(name):
        try:
            act(name)
        except BaseException as error:  # noqa: BLE001  # reported by the test
            errors.append(error)

    threads = [threading.Thread(target=run, args=(f"t{number}",)) for number in range(TAKERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
    assert errors == []


@pytest.mark.parametrize("has_writes", [False, True])
def test_commit_of_work_with_a_lost_reply_is_not_repeated(postgres_url, has_writes):
    with closing(PostgresStore(postgres_url)) as store, reader_of(store) as reader:
        assert commit(store, item(provider(1), offer(1, cpu=8), work=[Put(operation(1))])) == [""]
        break_after_commit(store._link.connection)
        writes = [claim(1, (inventory(1), 1))] if has_writes else []
        step = item(*writes, work=[replacement(operation(1), step="send")])
        stale = item(rows=[evidence(7)], work=[Put(operation(1))])
        assert commit(store, step, stale) == ["", "duplicate"]
        assert reader.operation(1).version == 2
        assert store.evidence() == []


def test_reader_reconnects_and_cannot_write(postgres_url):
    with closing(PostgresStore(postgres_url)) as store, reader_of(store) as reader:
        assert commit(store, item(work=[Put(operation(1))])) == [""]
        assert reader.operation(1) == operation(1)
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
                "WHERE pid <> pg_backend_pid() AND datname = current_database() AND backend_type = 'client backend'"
            )
        assert reader.operation(1) == operation(1)
        with pytest.raises(Unavailable, match="read-only"):
            reader._rows._link.read("DELETE FROM operation RETURNING id", ())


def test_sqlite_reader_cannot_write(tmp_path):
    store = SqliteWorld(tmp_path / "roost.db").open()
    with closing(store), reader_of(store) as reader, pytest.raises(Exception, match="readonly"):
        reader._rows._connection.execute("DELETE FROM operation")


def test_database_without_work_tables_is_upgraded_and_keeps_its_content(request, tmp_path):
    path = tmp_path / "roost.db"
    upgrade_sqlite(path, to="0004")
    with postgres.fresh_database(request.getfixturevalue("postgres_server")) as url:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("DROP SCHEMA public CASCADE")
            connection.execute("CREATE SCHEMA public")
        upgrade_postgresql(url, to="0004")
        for world in (SqliteWorld(path), PostgresWorld(url)):
            _check_upgrade(world, str(path) if isinstance(world, SqliteWorld) else url)
            world.close()


def _check_upgrade(world, url):
    insert = "INSERT INTO symbol (kind, id, name) VALUES ('trait', 70000, 'CUSTOM_A')"
    if isinstance(world, PostgresWorld):
        with psycopg.connect(url) as connection:
            connection.execute(insert)
            connection.execute("INSERT INTO feed (token, body) VALUES (0, %s)", (encode_writes([]),))
    else:
        with sqlite_upgrade._connection(world.path) as connection:
            connection.exec_driver_sql(insert)
    with pytest.raises(StoreOutdated, match="roost db upgrade"):
        world.open()
    backends.upgrade(url)
    store = world.open()
    assert [write.name for write in store.load().writes] == ["CUSTOM_A"]
    assert commit(store, item(work=[Put(status(1))])) == [""]
    with reader_of(store) as reader:
        assert reader.statuses(limit=9) == [status(1)]


def test_invalid_work_row_is_a_clear_error(tmp_path):
    world = SqliteWorld(tmp_path / "roost.db")
    with closing(world.open()) as store, reader_of(store) as reader:
        assert commit(store, item(work=[Put(operation(1))])) == [""]
        with sqlite_upgrade._connection(world.path) as connection:
            connection.exec_driver_sql("UPDATE operation SET outcome = 'perhaps'")
        with pytest.raises(StoreBroken, match="a row of operation"):
            reader.operation(1)
