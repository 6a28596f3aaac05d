"""The contract of the PostgreSQL store with several processes, and with a server that stops."""

import multiprocessing
import random
import threading
from contextlib import closing

import psycopg
import pytest

from roost.errors import BadSettings, StoreBroken, StoreBusy, StoreGone, StoreMissing, StoreOutdated, Unavailable
from roost.model.settings.roost_settings import Store as StoreSettings
from roost.model.writes import PutDocument, PutInventories
from roost.store.audit import audit
from roost.store.backends import open_store, upgrade, version_of
from roost.store.postgresql import store as postgresql_store
from roost.store.postgresql import writers
from roost.store.postgresql.store import PostgresStore
from roost.store.postgresql.versions.upgrade import upgrade_postgresql
from roost.store.rules.codec import encode_writes
from roost.store.rules.schema import SCHEMA_VERSION
from tests.contract.stores import (
    VCPU,
    claim,
    commit,
    evidence,
    inventory,
    item,
    offer,
    provider,
    release,
    state,
    uuid_of,
)
from tests.support.databases import postgres
from tests.support.wait import wait_until


@pytest.fixture
def two(postgres_url):
    """Yield two loaded stores of one database, with a provider of 8 CPU."""
    first, second = PostgresStore(postgres_url), PostgresStore(postgres_url)
    assert commit(first, item(provider(1), offer(1, cpu=8))) == [""]
    for store in (first, second):
        list(store.load().writes)
    yield first, second
    first.close()
    second.close()


def new_writes(store):
    return [write for change in store.changes() for write in change.writes]


def insert_change(connection, write):
    """Register a writer, and insert its first change without a commit."""
    writer, _ = writers.Writers().register(connection, 1)
    connection.commit()
    insert = "INSERT INTO feed (writer, seq, body) VALUES (%s, 0, %s)"
    connection.execute(insert, (writer, encode_writes([write])))


def test_change_is_seen_once_by_the_other_store_and_never_by_its_writer(two):
    first, second = two
    one = claim(1, (inventory(1), 1))
    assert commit(first, item(one, rows=[evidence(1)])) == [""]
    assert new_writes(first) == []
    assert new_writes(second) == [one]
    assert new_writes(second) == []
    assert commit(second, item(release(one))) == [""]
    assert new_writes(second) == []
    assert new_writes(first) == [release(one)]


def test_refused_items_are_not_in_the_feed(two):
    first, second = two
    good, bad = claim(1, (inventory(1), 8)), claim(2, (inventory(1), 1))
    assert commit(first, item(good), item(bad), item(provider(2))) == ["", "capacity", ""]
    assert new_writes(second) == [good, provider(2)]


def test_a_change_that_becomes_visible_late_is_not_missed(two, postgres_url):
    first, second = two
    late_write, early_write = provider(7), provider(8)
    with psycopg.connect(postgres_url) as slow:
        insert_change(slow, late_write)  # its position is lower, its commit later
        assert commit(first, item(early_write)) == [""]
        assert new_writes(second) == [early_write]
        assert new_writes(second) == []
        slow.commit()
        assert new_writes(second) == [late_write]
        assert new_writes(second) == []
        assert new_writes(first) == [late_write]


def test_load_and_following_changes_leave_no_gap(two, postgres_url):
    first, _ = two
    with psycopg.connect(postgres_url) as slow, closing(PostgresStore(postgres_url)) as third:
        insert_change(slow, provider(7))
        loaded = third.load()
        assert commit(first, item(provider(8))) == [""]
        kinds = [type(write).__name__ for write in loaded.writes]
        assert kinds == ["PutProvider", "PutInventories", "PutGeneration"]
        slow.commit()
        assert sorted(write.id for write in new_writes(third)) == [7, 8]


def test_two_stores_validate_against_the_same_rows(two):
    first, second = two
    assert commit(first, item(claim(1, (inventory(1), 5)))) == [""]
    assert commit(second, item(claim(2, (inventory(1), 4)))) == ["capacity"]
    assert commit(second, item(claim(1, (inventory(1), 1)))) == ["duplicate"]
    assert commit(second, item(PutInventories(1, 1, []))) == ["generation"]
    assert commit(first, item(PutDocument(1, "flavor", b"f", b""))) == [""]
    assert commit(second, item(PutDocument(2, "flavor", b"f", b""), claim(3, (inventory(1), 1)))) == ["duplicate"]


def test_identities_are_never_shared(two):
    first, second = two
    found = [store.reserve("consumer", count) for count in (1, 5000, 10) for store in (first, second)]
    assert len(set(found)) == len(found)
    assert first.reserve("symbol", 1) + 1 == second.reserve("symbol", 1)


def test_lost_connection_is_reopened(two, postgres_url):
    first, second = two
    list(first.load().writes)
    for store in (first, second):
        _break_connections(postgres_url)
        assert commit(store, item(provider(store.reserve("provider", 1) + 10))) == [""]
    _break_connections(postgres_url)
    assert len(new_writes(first)) == 1
    assert first.evidence() == []


def test_connection_lost_before_validation_is_reopened(two, postgres_url):
    first, _ = two
    for number, others in enumerate([[], [item(provider(31)), item(provider(32))], []]):
        _break_connections(postgres_url)
        assert set(commit(first, item(provider(20 + number)), *others)) == {""}


def _break_connections(url):
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
            "WHERE pid <> pg_backend_pid() AND datname = current_database() AND backend_type = 'client backend'"
        )


@pytest.mark.parametrize("structural", [False, True])
def test_commit_with_a_lost_reply_is_not_repeated(two, structural):
    first, second = two
    one = item(claim(1, (inventory(1), 1)), *([provider(9)] if structural else []))
    broken = first._link.connection
    _lose_the_reply(first, after="COMMIT" if structural else "WITH")
    assert commit(first, one, item(claim(2, (inventory(1), 8)))) == ["", "capacity"]
    assert broken.closed
    assert len(new_writes(second)) == len(one.writes)
    assert new_writes(first) == []


def _lose_the_reply(store, *, after):
    """Break the connection right after the statement that commits."""
    connection = store._link.connection
    if after == "WITH":
        execute = connection.execute

        def execute_then_break(query, *args, **kwargs):
            cursor = execute(query, *args, **kwargs)
            if "INSERT INTO feed" in str(query) or "WITH" in str(query):
                connection.close()
                raise psycopg.OperationalError("server closed the connection unexpectedly")
            return cursor

        connection.execute = execute_then_break
        return
    postgres.break_after_commit(connection)


def test_stopped_server_is_unavailable_and_used_again_when_back():
    server = postgres.Server(fsync=False)
    try:
        with psycopg.connect(server.url("postgres"), autocommit=True) as connection:
            connection.execute("CREATE DATABASE one")
        with closing(PostgresStore(server.url("one"), settings=StoreSettings(wait_s=0.2))) as store:
            list(store.load().writes)
            assert commit(store, item(provider(1), offer(1, cpu=8))) == [""]
            server.kill()
            for use in (lambda: commit(store, item(provider(2))), store.changes, store.evidence, store.load):
                with pytest.raises(Unavailable):
                    use()
            server.start()
            assert commit(store, item(provider(2)), item(claim(1, (inventory(1), 1)))) == ["", ""]
            assert new_writes(store) == []
    finally:
        server.stop()
    with pytest.raises(Unavailable):
        PostgresStore(server.url("one"))


def test_load_waits_for_a_server_that_returns():
    server = postgres.Server(fsync=False)
    try:
        with closing(PostgresStore(server.url("postgres"), settings=StoreSettings(wait_s=60))) as store:
            assert state(store) == {}
            server.kill()
            loads = []
            loading = threading.Thread(target=lambda: loads.append(list(store.load().writes)))
            loading.start()
            server.start()
            loading.join()
            assert loads == [[]]
    finally:
        server.stop()


def test_upgrade_is_refused_while_a_process_is_connected(postgres_server):
    with postgres.fresh_database(postgres_server) as url, closing(PostgresStore(url)):
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("UPDATE schema_version SET version_num = '0001'")
        with pytest.raises(StoreBusy, match=r"an unknown version on this machine: replace or stop all of them"):
            upgrade(url)
        assert version_of(url) == "0001"
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("UPDATE schema_version SET version_num = %s", (SCHEMA_VERSION,))
        upgrade(url)  # The schema is current, so processes may stay.


def test_upgrade_succeeds_after_the_last_process_has_ended(postgres_server):
    with postgres.fresh_database(postgres_server) as url:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("DROP SCHEMA public CASCADE")
            connection.execute("CREATE SCHEMA public")
        upgrade_postgresql(url, to="0001")
        with psycopg.connect(url, application_name="roost 0123456789abcdef"), pytest.raises(StoreBusy):
            upgrade(url)

        def is_upgraded():
            try:
                upgrade(url)
            except StoreBusy:  # The server has not ended the connection yet.
                return False
            return True

        wait_until(is_upgraded)
        assert version_of(url) == SCHEMA_VERSION


def test_empty_database_gets_its_tables_and_an_old_one_is_refused(postgres_server):
    with postgres.fresh_database(postgres_server) as url:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("DROP SCHEMA public CASCADE")
            connection.execute("CREATE SCHEMA public")
        upgrade_postgresql(url, to="0001")
        for act in (PostgresStore, audit):
            with pytest.raises(StoreOutdated, match="roost db upgrade"):
                act(url)
        upgrade(url)
        with closing(open_store(url, settings=StoreSettings())) as store:
            assert commit(store, item(provider(1))) == [""]
        upgrade(url)
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("UPDATE schema_version SET version_num = '9999'")
        upgrade(url)
        PostgresStore(url).close()
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("UPDATE compatibility SET readable_from = '9999'")
        for act in (PostgresStore, upgrade):
            with pytest.raises(StoreOutdated, match="newer"):
                act(url)
    with postgres.fresh_database(postgres_server) as url:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("DROP SCHEMA public CASCADE")
            connection.execute("CREATE SCHEMA public")
        with pytest.raises(StoreBroken):
            audit(url)
        with closing(PostgresStore(url)) as store:
            assert state(store) == {}


def test_stuck_lock_holder_delays_others_only_until_the_deadline(postgres_url):
    settings = StoreSettings(deadline_s=0.5)
    first, second = (PostgresStore(postgres_url, settings=settings) for _ in range(2))
    try:
        with first.order_creations(), pytest.raises(Unavailable, match="lock timeout"), second.order_creations():
            pass
        with second.order_creations():
            assert second.reserve("provider", 1)
    finally:
        first.close()
        second.close()


def test_lock_of_a_lost_connection_is_freed_without_a_reconnect(two, monkeypatch):
    first, second = two
    connects, connect = [], first._link._connect

    def count_connects():
        connects.append(1)
        return connect()

    monkeypatch.setattr(first._link, "_connect", count_connects)
    with first.order_creations():
        first._link.connection.close()
    assert connects == []
    with second.order_creations():
        assert second.reserve("provider", 1)


def test_keepalives_detect_lost_peers_unless_the_url_overrides_them(postgres_url):
    store = PostgresStore(f"{postgres_url}&keepalives_idle=77")
    try:
        parameters = store._link.connection.info.get_parameters()
        assert (parameters["keepalives_idle"], parameters["keepalives_count"]) == ("77", "4")
        assert parameters["tcp_user_timeout"] == "30000"
        row = store._link.connection.execute("SHOW idle_in_transaction_session_timeout").fetchone()
        assert row == ("1min",)
    finally:
        store.close()


_READ_ONLY = "default_transaction_read_only"


_SLEEPING = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'SELECT pg_sleep%%'"


def test_read_without_a_reply_ends_at_the_deadline_and_leaves_no_backend(postgres_url):
    with closing(PostgresStore(postgres_url, settings=StoreSettings(deadline_s=0.3))) as store:
        with pytest.raises(StoreGone, match=r"^PostgreSQL: no answer within 0\.3 s$"):
            store._link.read("SELECT pg_sleep(60) IS NULL", ())
        assert store._link.read(_SLEEPING, ()) == [(0,)]


def test_pruning_waits_only_briefly_for_the_size_of_a_large_database(postgres_url, monkeypatch):
    monkeypatch.setattr(postgresql_store, "_BYTES", "SELECT 7 + octet_length(pg_sleep(2)::text)::bigint")
    with closing(PostgresStore(postgres_url, settings=StoreSettings(deadline_s=1.0))) as store:
        assert store.prune(older_than_s=0.0, max_bytes=0) == 0
        assert store._evidence_size.get() is None
        wait_until(lambda: store._evidence_size.get() is not None)
        assert store._evidence_size.get() == 7


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("postgresql://h:1 2/x", "is malformed: unexpected spaces found in …"),
        ("postgresql://u:secret%zz@h/x", "is malformed: invalid percent-encoded token: …"),
        ("postgresql://h/x?nonsense=1", "is malformed: invalid URI query parameter: …"),
        ("postgresql://127.0.0.1:1/x?sslmode=often", "is malformed: invalid sslmode value"),
        ("postgresql://h:http/x", "must have ports 1..65535"),
        ("postgresql://a:1,b:99999/x", "must have ports 1..65535"),
        ("postgresql://roost:pass/word@h/x", "must have ports 1..65535; in a password, write / as %2F"),
    ],
)
def test_malformed_url_is_a_wrong_setting(url, problem):
    for use in (PostgresStore, audit):
        with pytest.raises(BadSettings) as caught:
            use(url)
        assert str(caught.value).startswith(f"store.url: {problem}")
        assert "secret" not in str(caught.value)


def test_absent_database_is_missing(postgres_server):
    url = f"{postgres_server}&dbname=nowhere"
    for use in (lambda: PostgresStore(url, settings=StoreSettings(wait_s=0.1)), lambda: audit(url)):
        with pytest.raises(StoreMissing, match=r'^PostgreSQL: database "nowhere" does not exist; correct store\.url'):
            use()


def test_a_read_only_database_is_a_clear_error(two, postgres_url):
    first, second = two
    name = first._link.connection.info.dbname
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE {name} SET {_READ_ONLY} = on")
        try:
            first._link.connection.execute(f"SET {_READ_ONLY} = on")
            for write in (claim(1, (inventory(1), 1)), provider(4)):
                with pytest.raises(StoreBroken, match="read-only"):
                    commit(first, item(write))
        finally:
            connection.execute(f"SET {_READ_ONLY} = off")
            connection.execute(f"ALTER DATABASE {name} RESET {_READ_ONLY}")
    assert commit(first, item(provider(4))) == [""]
    assert new_writes(second) == [provider(4)]


# Final errors on a connection that the server, or a proxy before it, keeps open.
@pytest.mark.parametrize("state", ["25006", "57P01", "57P02", "57P03", "08000", "08P01"])
@pytest.mark.parametrize("is_one_statement", [True, False])
def test_error_that_ends_a_connection_is_treated_as_a_lost_connection(two, state, is_one_statement):
    first, second = two
    broken = first._link.connection
    broken.execute(_FAIL.format(state=state))
    writes = [claim(1, (inventory(1), 1)), *([] if is_one_statement else [provider(9)])]
    assert commit(first, item(*writes)) == [""]
    assert broken.closed
    assert new_writes(second) == writes


# Makes each insert into the feed fail on this connection only.
_FAIL = """
CREATE FUNCTION pg_temp.fail() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'enough' USING ERRCODE = '{state}'; END $$;
CREATE TEMP TABLE feed (LIKE public.feed INCLUDING ALL);
CREATE TRIGGER fail BEFORE INSERT ON pg_temp.feed FOR EACH ROW EXECUTE FUNCTION pg_temp.fail()"""


def test_recent_feed_entries_are_not_pruned(two, postgres_url):
    first, second = two
    assert commit(first, item(provider(2)), item(rows=[evidence(1)])) == ["", ""]
    assert first.prune(older_than_s=1e12, max_bytes=0) == 1
    assert new_writes(second) == [provider(2)]
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("UPDATE feed SET written_at = now() - interval '1 hour'")
    assert first.prune(older_than_s=1e12, max_bytes=10**9) == 1, "the newest change stays"


_HOT, _TOTAL, _TRIES, _GROUP = 4, 300, 40, 16


def _race(url, number, start, results):
    draw = random.Random(number)
    with closing(PostgresStore(url)) as store:
        list(store.load().writes)
        first, decision = store.reserve("consumer", _TRIES * _GROUP), store.reserve("decision", _TRIES * _GROUP)
        start.wait()
        accepted, held = 0, []
        for batch in range(_TRIES):
            items = []
            for at in range(_GROUP):
                consumer = first + batch * _GROUP + at
                takes = [(inventory(one), 1) for one in draw.sample(range(1, _HOT + 1), 2)]
                items.append((claim(consumer, *takes), decision + batch * _GROUP + at))
            if held and draw.random() < 0.3:
                released = held.pop(draw.randrange(len(held)))
                assert commit(store, item(release(released))) == [""]
                accepted -= 1
            verdicts = commit(store, *(item(one, rows=[evidence(row)]) for one, row in items))
            assert set(verdicts) <= {"", "capacity"}
            accepted_claims = [one for (one, _), verdict in zip(items, verdicts, strict=True) if not verdict]
            accepted += len(accepted_claims)
            held += accepted_claims
            if batch % 7 == 0:
                document = PutDocument(store.reserve("document", 1), "flavor", uuid_of(batch), b"")
                assert set(commit(store, item(document))) <= {"", "duplicate"}
        results.put(accepted)


def test_racing_processes_never_overcommit_hot_providers(postgres_url):
    with closing(PostgresStore(postgres_url)) as store:
        offers = [item(provider(one), offer(one, cpu=_TOTAL)) for one in range(1, _HOT + 1)]
        assert commit(store, item(VCPU), *offers) == [""] * (1 + _HOT)
    spawn = multiprocessing.get_context("spawn")
    start, results = spawn.Event(), spawn.Queue()
    racers = [spawn.Process(target=_race, args=(postgres_url, number, start, results)) for number in range(2)]
    for racer in racers:
        racer.start()
    start.set()
    accepted = sum(results.get(timeout=60) for _ in racers)
    for racer in racers:
        racer.join()
        assert racer.exitcode == 0
    assert audit(postgres_url) == []
    with closing(PostgresStore(postgres_url)) as store:
        assert len(state(store)["consumers"]) == accepted


def test_a_commit_measures_its_waits_for_locked_rows(two, postgres_url):
    first, second = two
    assert commit(first, item(claim(1, (inventory(1), 1)))) == [""]
    quiet = second.commit([item(claim(2, (inventory(1), 1)))])
    assert quiet.waited_s is not None
    assert 0 <= quiet.waited_s < quiet.elapsed_s
    results = []
    with psycopg.connect(postgres_url) as holder, psycopg.connect(postgres_url, autocommit=True) as observer:
        holder.execute("SELECT 1 FROM inventory WHERE id = %s FOR UPDATE", (inventory(1),))
        waiting = threading.Thread(target=lambda: results.append(second.commit([item(claim(3, (inventory(1), 1)))])))
        waiting.start()
        wait_until(lambda: observer.execute("SELECT count(*) FROM pg_locks WHERE NOT granted").fetchone()[0])
        # The wait is long compared with the rest of the commit.
        observer.execute("SELECT pg_sleep(1)")
        holder.rollback()
        waiting.join()
    (late,) = results
    assert late.refusals == [None]
    assert late.waited_s > late.elapsed_s / 3


def test_commits_without_claims_measure_no_waits(two):
    first, _ = two
    assert first.commit([item(provider(2))]).waited_s is None
