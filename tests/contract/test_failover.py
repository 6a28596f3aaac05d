"""A failover of PostgreSQL: processes reload their state, although transaction numbers repeat."""

import json
from contextlib import closing

import pytest

from roost.errors import StateLost, Unavailable
from roost.placement.current import Current
from roost.placement.deciding_thread import Serving
from roost.placement.write_plan import Plan
from roost.store.postgresql import history
from roost.store.postgresql.store import PostgresStore
from tests.contract.stores import item
from tests.support.databases.standbys import pair
from tests.support.fleets.worlds import digest, hosts, roost_on, small_request
from tests.support.wait import wait_until

pytestmark = pytest.mark.long


@pytest.fixture
def servers():
    with pair() as found:
        yield found


def open_store(servers):
    return closing(PostgresStore(servers.url))


def names(current):
    return {name for name in ("CUSTOM_A", "CUSTOM_B", "CUSTOM_C") if name in current.state.trait_ids}


def put(current, name):
    """Define a trait; return whether the commit was acknowledged."""
    return current.commit([item(current.new_symbol("trait", name))]) == [None]


def refresh(current):
    """Refresh until the database answers; return ``current``."""

    def try_refresh():
        try:
            current.refresh()
        except Unavailable:
            return False
        return True

    wait_until(try_refresh)
    return current


def test_commits_after_a_failover_are_seen_despite_reused_transaction_ids(servers, capfd):
    with open_store(servers) as reading, open_store(servers) as writing:
        reader, writer = Current(reading), Current(writing)
        assert put(writer, "CUSTOM_A")
        servers.burn_numbers(100)
        reader.refresh()
        servers.fail_over()
        for name in ("CUSTOM_B", "CUSTOM_C"):
            refresh(writer)
            assert put(writer, name)
        assert names(refresh(reader)) == {"CUSTOM_A", "CUSTOM_B", "CUSTOM_C"}
        with open_store(servers) as fresh:
            assert digest(reader.state) == digest(writer.state) == digest(Current(fresh).state)
    events = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    failovers = [each for each in events if each["event"] == "database_failed_over"]
    assert [(each["before"], each["after"]) for each in failovers] == [("00000001", "00000002")] * 2


def test_identities_reserved_before_a_failover_are_not_reused(servers):
    with open_store(servers) as store:
        current = Current(store)
        before = current.new_id("consumer")
        servers.fail_over()
        refresh(current)
        with open_store(servers) as another:
            others = {Current(another).new_id("consumer") for _ in range(3)}
        assert current.new_id("consumer") not in {before, *others}


def test_pending_commit_found_on_the_new_server_is_acknowledged(servers, monkeypatch):
    with open_store(servers) as store:
        current = Current(store)
        commit = store._commit

        def commit_then_fail_over(items):
            commit(items)
            wait_until(lambda: servers.lag() == 0)
            servers.fail_over()
            return commit(items)  # The first reply was lost: the client does not know that the commit exists.

        monkeypatch.setattr(store, "_find", find_first_attempt(store))
        monkeypatch.setattr(store, "_commit", commit_then_fail_over)
        assert put(current, "CUSTOM_A")
        assert names(refresh(current)) == {"CUSTOM_A"}


def test_write_pending_at_a_takeover_is_made_on_the_new_server(servers):
    with open_store(servers) as store:
        serving = Serving(Current(store))
        serving.run(lambda current: put(current, "CUSTOM_A"))
        names_seen = []

        def write(current):
            if not names_seen:
                wait_until(lambda: servers.lag() == 0)
                servers.fail_over()
            names_seen.append(names(current))
            return Plan(answer="written", writes=(current.new_symbol("trait", "CUSTOM_B"),))

        assert serving.run(write) == "written"
        assert names_seen == [{"CUSTOM_A"}, {"CUSTOM_A"}], "the write was not planned again on the new server"
        assert serving.run(names) == {"CUSTOM_A", "CUSTOM_B"}
        serving.stop()


def find_first_attempt(store):
    find = store._find

    def find_first(items):
        store._tokens -= 1  # Look for the first attempt; the second one on the new server wrote nothing.
        return find(items)

    return find_first


def test_decision_is_not_replayed_from_a_snapshot_of_another_timeline(servers):
    with roost_on(PostgresStore(servers.url)) as roost:
        roost.install(hosts(2))
        decision = roost.decide(small_request())
        assert roost.replay(decision.uuid).is_same
        wait_until(lambda: servers.lag() == 0)
        servers.fail_over()
        refresh(roost._current)
        newer = roost.decide(small_request())
        assert newer.is_granted
        with pytest.raises(StateLost):  # The first snapshot of a database has no timeline.
            roost.replay(decision.uuid)
        assert history.write_snapshot(servers.url)
        newest = roost.decide(small_request())
        assert roost.replay(newest.uuid).is_same
