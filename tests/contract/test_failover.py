"""Another PostgreSQL server takes over: what a process knows is read again, whatever transaction numbers say."""

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
from tests.support.fleets.worlds import digest, hosts, roost_on, wish
from tests.support.waiting import until

pytestmark = pytest.mark.long


@pytest.fixture
def servers():
    with pair() as found:
        yield found


def opened(servers):
    return closing(PostgresStore(servers.url))


def names(current):
    return {name for name in ("CUSTOM_A", "CUSTOM_B", "CUSTOM_C") if name in current.state.trait_ids}


def put(current, name):
    """Let a process define a trait; give whether it was told that it did."""
    return current.commit([item(current.new_symbol("trait", name))]) == [None]


def refreshed(current):
    """Let a process look at the database, again where it is told to try again."""

    def look():
        try:
            current.refresh()
        except Unavailable:
            return False
        return True

    until(look)
    return current


def test_commits_of_others_after_a_failover_are_seen_although_numbers_come_again(servers, capfd):
    with opened(servers) as reading, opened(servers) as writing:
        reader, writer = Current(reading), Current(writing)
        assert put(writer, "CUSTOM_A")
        servers.burn_numbers(100)
        reader.refresh()
        servers.fail_over()
        for name in ("CUSTOM_B", "CUSTOM_C"):
            refreshed(writer)
            assert put(writer, name)
        assert names(refreshed(reader)) == {"CUSTOM_A", "CUSTOM_B", "CUSTOM_C"}
        with opened(servers) as fresh:
            assert digest(reader.state) == digest(writer.state) == digest(Current(fresh).state)
    events = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    taken = [each for each in events if each["event"] == "database_failed_over"]
    assert [(each["before"], each["after"]) for each in taken] == [("00000001", "00000002")] * 2


def test_identities_that_were_reserved_before_a_failover_are_not_used_after_it(servers):
    with opened(servers) as store:
        current = Current(store)
        before = current.new_id("consumer")
        servers.fail_over()
        refreshed(current)
        with opened(servers) as another:
            others = {Current(another).new_id("consumer") for _ in range(3)}
        assert current.new_id("consumer") not in {before, *others}


def test_a_commit_on_its_way_that_another_server_has_is_acknowledged(servers, monkeypatch):
    with opened(servers) as store:
        current = Current(store)
        commit = store._commit

        def lost(items):
            commit(items)
            until(lambda: servers.lag() == 0)
            servers.fail_over()
            return commit(items)  # Its answer never came: the client cannot know that it was done.

        monkeypatch.setattr(store, "_find", found_after(store))
        monkeypatch.setattr(store, "_commit", lost)
        assert put(current, "CUSTOM_A")
        assert names(refreshed(current)) == {"CUSTOM_A"}


def test_a_write_on_its_way_when_a_standby_takes_over_is_made_there(servers):
    with opened(servers) as store:
        serving = Serving(Current(store))
        serving.run(lambda current: put(current, "CUSTOM_A"))
        taken_over = []

        def write(current):
            if not taken_over:
                until(lambda: servers.lag() == 0)
                servers.fail_over()
            taken_over.append(names(current))
            return Plan(answer="written", writes=(current.new_symbol("trait", "CUSTOM_B"),))

        assert serving.run(write) == "written"
        assert taken_over == [{"CUSTOM_A"}, {"CUSTOM_A"}], "it was planned again, on what the new server has"
        assert serving.run(names) == {"CUSTOM_A", "CUSTOM_B"}
        serving.stop()


def found_after(store):
    find = store._find

    def find_first(items):
        store._tokens -= 1  # Of the attempt that was made; the one that met the new server was none.
        return find(items)

    return find_first


def test_a_decision_of_before_a_failover_is_not_replayed_from_a_snapshot_of_another_timeline(servers):
    with roost_on(PostgresStore(servers.url)) as roost:
        roost.install(hosts(2))
        decision = roost.decide(wish())
        assert roost.replay(decision.uuid).is_same
        until(lambda: servers.lag() == 0)
        servers.fail_over()
        refreshed(roost._current)
        newer = roost.decide(wish())
        assert newer.is_granted
        with pytest.raises(StateLost):  # The first snapshot of a database does not say its timeline.
            roost.replay(decision.uuid)
        assert history.write_snapshot(servers.url)
        newest = roost.decide(wish())
        assert roost.replay(newest.uuid).is_same
