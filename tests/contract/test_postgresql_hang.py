"""A hung PostgreSQL server: requests end in bounded time, and no acknowledged commit is lost."""

import threading
import time
from concurrent.futures import Future
from contextlib import closing, contextmanager

import pytest

from roost.errors import StoreGone, Unavailable
from roost.model.settings.roost_settings import Store as StoreSettings
from roost.placement.current import Current
from roost.placement.deciding_thread import Serving
from roost.store.postgresql.store import PostgresStore
from tests.contract.stores import item
from tests.support.databases import postgres
from tests.support.databases.standbys import pair
from tests.support.fleets.worlds import digest
from tests.support.wait import wait_until

pytestmark = pytest.mark.long

SETTINGS = StoreSettings(deadline_s=0.5, bulk_deadline_s=1, wait_s=1)
BOUND_S = SETTINGS.deadline_s + 5


@pytest.fixture
def server():
    found = postgres.Server(fsync=False)
    try:
        yield found
    finally:
        found.stop()


@pytest.fixture
def servers():
    with pair() as found:
        yield found


def open_store(url, settings=SETTINGS):
    return closing(PostgresStore(url, settings=settings))


def put(current, name):
    """Define a trait; return whether the commit was acknowledged."""
    return current.commit([item(current.new_symbol("trait", name))]) == [None]


def custom(current):
    """Return the names of the custom traits."""
    return {name for name in current.state.trait_ids if name.startswith("CUSTOM_")}


def refresh(current):
    """Refresh until the database answers."""

    def try_refresh():
        try:
            current.refresh()
        except Unavailable:
            return False
        return True

    wait_until(try_refresh)
    return current


@contextmanager
def freeze(server):
    """Freeze a server inside the context, and thaw it at the end."""
    server.freeze()
    try:
        yield
    finally:
        server.thaw()


def is_refused_in_time(use):
    """Assert that a call raises Unavailable; return whether that takes at most the deadline."""
    start_s = time.monotonic()
    with pytest.raises(Unavailable):
        use()
    return time.monotonic() - start_s < BOUND_S


def test_frozen_server_delays_requests_only_until_the_deadline(server):
    url = server.url("postgres")
    with open_store(url) as store, closing(store.work_reader(None)) as work:
        current = Current(store)
        assert put(current, "CUSTOM_A")
        assert work.now_s() > 0
        uses = (lambda: put(current, "CUSTOM_B"), current.refresh, work.now_s)
        with freeze(server):
            assert [is_refused_in_time(use) for use in uses] == [True] * len(uses)
        assert "CUSTOM_A" in custom(refresh(current))
        assert put(current, "CUSTOM_C")
        assert work.now_s() > 0
        with open_store(url) as fresh:
            assert digest(Current(fresh).state) == digest(current.state)


def test_requests_queued_for_a_frozen_server_end_together(server):
    with open_store(server.url("postgres")) as store:
        serving = Serving(Current(store), group_max=1)
        assert serving.run(lambda current: len(current.state.hosts)) == 0
        outcomes = [Future() for _ in range(8)]
        with freeze(server):
            start_s = time.monotonic()
            for outcome in outcomes:
                serving.submit(lambda _current: "read", outcome)
            errors = [outcome.exception(60) for outcome in outcomes]
            assert time.monotonic() - start_s < BOUND_S
        assert [type(error) for error in errors] == [StoreGone] * len(outcomes)
        wait_until(lambda: is_available(serving))
        serving.stop()


def is_available(serving):
    try:
        return serving.run(lambda _current: "read") == "read"
    except Unavailable:
        return False


def test_load_from_a_frozen_server_ends(server):
    with open_store(server.url("postgres")) as store:
        loaded = store.load()
        with freeze(server), pytest.raises(Unavailable, match="no answer within 1 s"):
            list(loaded.writes)
        assert list(store.load().writes) == []


@pytest.mark.parametrize("is_one_statement", [True, False])
def test_commit_that_a_frozen_server_finishes_later_is_made_once(server, is_one_statement):
    settings = StoreSettings(deadline_s=0.5, wait_s=30)
    with open_store(server.url("postgres"), settings) as store:
        current = Current(store)
        assert put(current, "CUSTOM_A")
        connection, answers = store._link.connection, []
        names = ["CUSTOM_B"] if is_one_statement else ["CUSTOM_B", "CUSTOM_C"]
        items = [item(current.new_symbol("trait", name)) for name in names]
        server.freeze()
        worker = threading.Thread(target=lambda: answers.append(current.commit(items)))
        try:
            worker.start()
            wait_until(lambda: connection.closed)
        finally:
            server.thaw()
        worker.join()
        assert answers == [[None] * len(names)]
        with open_store(server.url("postgres")) as fresh:
            again = Current(fresh)
            assert custom(again) == {"CUSTOM_A", *names}
            assert digest(again.state) == digest(refresh(current).state)
        assert feed_rows(store) == 1 + 1


def feed_rows(store):
    return store._link.read("SELECT count(*) FROM feed WHERE body <> ''", ())[0][0]


def test_standby_that_replaces_a_frozen_primary_has_all_acknowledged_commits(servers):
    servers.make_synchronous()
    with open_store(servers.url) as reading, open_store(servers.url) as writing:
        reader, writer = Current(reading), Current(writing)
        acknowledged = {name for name in ("CUSTOM_A", "CUSTOM_B") if put(writer, name)}
        with freeze(servers.primary):
            assert is_refused_in_time(lambda: put(writer, "CUSTOM_LOST"))
            servers.promote()
            refresh(writer)
            acknowledged |= {name for name in ("CUSTOM_C", "CUSTOM_D") if put(writer, name)}
            assert custom(refresh(reader)) == acknowledged == {"CUSTOM_A", "CUSTOM_B", "CUSTOM_C", "CUSTOM_D"}
            with open_store(servers.standby_url) as fresh:
                assert digest(Current(fresh).state) == digest(writer.state) == digest(reader.state)


def test_reader_of_work_leaves_a_frozen_primary_with_the_store(servers):
    with open_store(servers.url) as store, closing(store.work_reader(None)) as work:
        current = Current(store)
        assert put(current, "CUSTOM_A")
        assert work.now_s() > 0
        with freeze(servers.primary):
            assert is_refused_in_time(current.refresh)
            servers.promote()
            refresh(current)
            assert work.now_s() > 0, "the reader waited for an answer of the frozen primary"
