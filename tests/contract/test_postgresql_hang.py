"""A PostgreSQL server that hangs: requests end in bounded time, and nothing acknowledged is lost."""

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
from tests.support.waiting import until

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


def opened(url, settings=SETTINGS):
    return closing(PostgresStore(url, settings=settings))


def put(current, name):
    """Define a trait; return whether that was acknowledged."""
    return current.commit([item(current.new_symbol("trait", name))]) == [None]


def custom(current):
    """Return the names of the traits that tests defined."""
    return {name for name in current.state.trait_ids if name.startswith("CUSTOM_")}


def refreshed(current):
    """Refresh until the database answers."""

    def look():
        try:
            current.refresh()
        except Unavailable:
            return False
        return True

    until(look)
    return current


@contextmanager
def frozen(server):
    """Freeze a server, and thaw it in any case."""
    server.freeze()
    try:
        yield
    finally:
        server.thaw()


def refused_in_time(use):
    """Return whether a call ends with Unavailable within the promised time."""
    begun_s = time.monotonic()
    with pytest.raises(Unavailable):
        use()
    return time.monotonic() - begun_s < BOUND_S


def test_a_frozen_server_holds_no_request_longer_than_the_deadline_and_is_used_again(server):
    url = server.url("postgres")
    with opened(url) as store, closing(store.work_reader(None)) as work:
        current = Current(store)
        assert put(current, "CUSTOM_A")
        assert work.now_s() > 0
        uses = (lambda: put(current, "CUSTOM_B"), current.refresh, work.now_s)
        with frozen(server):
            assert [refused_in_time(use) for use in uses] == [True] * len(uses)
        assert "CUSTOM_A" in custom(refreshed(current))
        assert put(current, "CUSTOM_C")
        assert work.now_s() > 0
        with opened(url) as fresh:
            assert digest(Current(fresh).state) == digest(current.state)


def test_requests_that_queue_for_a_frozen_server_end_together(server):
    with opened(server.url("postgres")) as store:
        serving = Serving(Current(store), group_max=1)
        assert serving.run(lambda current: len(current.state.hosts)) == 0
        outcomes = [Future() for _ in range(8)]
        with frozen(server):
            begun_s = time.monotonic()
            for outcome in outcomes:
                serving.submit(lambda _current: "read", outcome)
            errors = [outcome.exception(60) for outcome in outcomes]
            assert time.monotonic() - begun_s < BOUND_S
        assert [type(error) for error in errors] == [StoreGone] * len(outcomes)
        until(lambda: answered(serving))
        serving.stop()


def answered(serving):
    try:
        return serving.run(lambda _current: "read") == "read"
    except Unavailable:
        return False


def test_a_load_that_meets_a_frozen_server_ends(server):
    with opened(server.url("postgres")) as store:
        loaded = store.load()
        with frozen(server), pytest.raises(Unavailable, match="no answer within 1 s"):
            list(loaded.writes)
        assert list(store.load().writes) == []


@pytest.mark.parametrize("is_one_statement", [True, False])
def test_a_commit_that_a_frozen_server_finishes_later_is_found_and_made_once(server, is_one_statement):
    settings = StoreSettings(deadline_s=0.5, wait_s=30)
    with opened(server.url("postgres"), settings) as store:
        current = Current(store)
        assert put(current, "CUSTOM_A")
        connection, answers = store._link.connection, []
        names = ["CUSTOM_B"] if is_one_statement else ["CUSTOM_B", "CUSTOM_C"]
        items = [item(current.new_symbol("trait", name)) for name in names]
        server.freeze()
        worker = threading.Thread(target=lambda: answers.append(current.commit(items)))
        try:
            worker.start()
            until(lambda: connection.closed)
        finally:
            server.thaw()
        worker.join()
        assert answers == [[None] * len(names)]
        with opened(server.url("postgres")) as fresh:
            again = Current(fresh)
            assert custom(again) == {"CUSTOM_A", *names}
            assert digest(again.state) == digest(refreshed(current).state)
        assert feed_rows(store) == 1 + 1


def feed_rows(store):
    return store._link.read("SELECT count(*) FROM feed", ())[0][0]


def test_a_standby_that_takes_over_from_a_frozen_primary_serves_all_that_was_acknowledged(servers):
    servers.make_synchronous()
    with opened(servers.url) as reading, opened(servers.url) as writing:
        reader, writer = Current(reading), Current(writing)
        acknowledged = {name for name in ("CUSTOM_A", "CUSTOM_B") if put(writer, name)}
        with frozen(servers.primary):
            assert refused_in_time(lambda: put(writer, "CUSTOM_LOST"))
            servers.promote()
            refreshed(writer)
            acknowledged |= {name for name in ("CUSTOM_C", "CUSTOM_D") if put(writer, name)}
            assert custom(refreshed(reader)) == acknowledged == {"CUSTOM_A", "CUSTOM_B", "CUSTOM_C", "CUSTOM_D"}
            with opened(servers.standby_url) as fresh:
                assert digest(Current(fresh).state) == digest(writer.state) == digest(reader.state)
