"""A failover of PostgreSQL: processes reload their state, although transaction numbers repeat."""

import json
from concurrent.futures import Future
from contextlib import closing

import pytest

from roost.errors import StoreReplaced, Unavailable
from roost.model.fleet import Departure
from roost.model.names import uuid_text
from roost.placement.current import Current
from roost.placement.deciding_thread import Serving
from roost.placement.write_plan import Act, Plan
from roost.store.audit import audit
from roost.store.postgresql import history
from roost.store.postgresql.link import ConnectionLost
from roost.store.postgresql.store import PostgresStore
from tests.contract.stores import item
from tests.support.databases.standbys import ignore_timelines, pair
from tests.support.fleets.worlds import digest, hosts, roost_on, settings_of, small_request
from tests.support.wait import wait_until

pytestmark = pytest.mark.long


@pytest.fixture
def servers():
    with pair() as found:
        yield found


@pytest.fixture
def constant_timeline(monkeypatch):
    """Report the same timeline for all servers, so only vectors show a loss."""
    ignore_timelines(monkeypatch)


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
            store._writer._last, store._writer._is_pending = -1, True  # The reply was lost.
            wait_until(lambda: servers.lag() == 0)
            servers.fail_over()
            raise ConnectionLost

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


def test_decisions_pending_at_a_takeover_are_made_once_on_the_new_server(servers, monkeypatch):
    settings = settings_of(group_max=1)  # The first decision and the departure are durable.
    leaving, *uuids = ("fa0e1f1c-0000-4000-8000-00000000000" + digit for digit in "1234")
    with roost_on(PostgresStore(servers.url), settings=settings) as roost:
        roost.install(hosts(2))
        roost.decide(small_request(instance_uuids=(leaving,)))
        store, commits, deeds = roost._current.store, [], []

        def decide(acts):
            deeds.extend(acts)
            return roost.scheduler.work(acts)

        def commit(items):
            commits.append(items)
            if len(commits) == 3:
                wait_until(lambda: servers.lag() == 0)
                servers.fail_over()
            return original(items)

        original = store.commit
        monkeypatch.setattr(store, "commit", commit)
        serving = Serving(roost._current, decide=decide)
        departure = Departure(instance_uuids=(leaving,))
        requests = [small_request(instance_uuids=(uuid,)) for uuid in uuids]
        outcomes = [Future() for _ in (departure, *requests)]
        acts = [Act(deed=deed, answer=lambda result: result) for deed in (departure, *requests)]
        serving.submit_all([(lambda _, act=act: act, outcome) for act, outcome in zip(acts, outcomes, strict=True)])
        left, *decisions = [outcome.result(90) for outcome in outcomes]
        assert left is None
        assert [each.is_granted for each in decisions] == [True] * 3
        assert len(deeds) == 4 + 2, "the durable departure and decision were repeated, or the others were not"
        assert len(store.evidence()) == 1 + 3
        assert {uuid_text(each) for each in roost._current.state.holders} == set(uuids)
        assert audit(servers.standby_url) == []
        serving.stop()


def test_decision_is_replayed_from_a_snapshot_before_the_failover(servers):
    with roost_on(PostgresStore(servers.url)) as roost:
        roost.install(hosts(2))
        decision = roost.decide(small_request())
        assert roost.replay(decision.uuid).is_same
        wait_until(lambda: servers.lag() == 0)
        servers.fail_over()
        refresh(roost._current)
        newer = roost.decide(small_request())
        assert newer.is_granted
        assert roost.replay(decision.uuid).is_same
        assert roost.replay(newer.uuid).is_same
        assert history.write_snapshot(servers.url)
        newest = roost.decide(small_request())
        assert roost.replay(newest.uuid).is_same


@pytest.mark.usefixtures("constant_timeline")
def test_reader_notices_lost_changes_without_a_timeline(servers):
    with open_store(servers) as reading, open_store(servers) as writing:
        reader, writer = Current(reading), Current(writing)
        assert put(writer, "CUSTOM_A")
        wait_until(lambda: servers.lag() == 0)
        servers.starve()
        assert put(writer, "CUSTOM_B")
        reader.refresh()
        assert names(reader) == {"CUSTOM_A", "CUSTOM_B"}
        servers.fail_over()
        with open_store(servers) as another:
            assert put(Current(another), "CUSTOM_C")
        assert names(refresh(reader)) == {"CUSTOM_A", "CUSTOM_C"}
        with open_store(servers) as fresh:
            assert digest(reader.state) == digest(Current(fresh).state)


@pytest.mark.usefixtures("constant_timeline")
def test_writer_notices_its_lost_changes_at_the_next_commit_without_a_timeline(servers):
    with open_store(servers) as reading, open_store(servers) as writing:
        writer, reader = Current(writing), Current(reading)
        assert put(writer, "CUSTOM_A")
        wait_until(lambda: servers.lag() == 0)
        servers.starve()
        assert put(writer, "CUSTOM_B")
        reader.refresh()
        servers.fail_over()
        with pytest.raises(StoreReplaced, match="the database lost changes"):
            put(writer, "CUSTOM_C")
        refresh(writer)
        assert put(writer, "CUSTOM_C")
        assert names(refresh(reader)) == names(writer) == {"CUSTOM_A", "CUSTOM_C"}


@pytest.mark.usefixtures("constant_timeline")
def test_number_of_an_unknown_commit_is_not_used_again(servers):
    with open_store(servers) as reading, open_store(servers) as writing:
        writer, reader = Current(writing), Current(reading)
        assert put(writer, "CUSTOM_A")
        wait_until(lambda: servers.lag() == 0)
        servers.starve()
        assert put(writer, "CUSTOM_B")
        writing._writer._last, writing._writer._is_pending = 0, True  # The reply was lost, but the reader has it.
        reader.refresh()
        servers.fail_over()
        assert put(writer, "CUSTOM_C")
        assert names(refresh(reader)) == {"CUSTOM_A", "CUSTOM_C"}


@pytest.mark.usefixtures("constant_timeline")
def test_reader_notices_the_loss_of_a_closed_writer_without_a_timeline(servers):
    with open_store(servers) as reading:
        reader = Current(reading)
        with open_store(servers) as writing:
            writer = Current(writing)
            assert put(writer, "CUSTOM_A")
            wait_until(lambda: servers.lag() == 0)
            servers.starve()
            assert put(writer, "CUSTOM_B")
        reader.refresh()
        assert names(reader) == {"CUSTOM_A", "CUSTOM_B"}
        servers.fail_over()
        assert names(refresh(reader)) == {"CUSTOM_A"}
