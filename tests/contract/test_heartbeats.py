"""Heartbeats: which processes of a PostgreSQL database live, and with which program."""

import os
import socket
import threading
import time
from contextlib import closing
from importlib import import_module

import psycopg
import pytest

from roost import __version__
from roost.cli.views.database_view import database_lines
from roost.errors import StoreGone
from roost.model.settings.roost_settings import Store as Settings
from roost.ports import LiveWriter
from roost.store.backends import open_store, status_of
from roost.store.peers import heartbeat
from roost.store.peers.live_processes import lowest_schema
from roost.store.postgresql.link import connect
from roost.store.postgresql.store import PostgresStore
from roost.store.postgresql.versions import heartbeats
from roost.store.rules.schema import SCHEMA_VERSION
from tests.contract.stores import commit, evidence, item, provider


@pytest.fixture
def database(postgres_url):
    with closing(connect(postgres_url)) as connection:
        yield connection


def live(database):
    return [writer.process for writer in heartbeats.live_writers(database)]


def test_a_store_is_live_from_its_opening_to_its_end(postgres_url, database):
    with closing(PostgresStore(postgres_url)) as store, closing(PostgresStore(postgres_url)) as other:
        assert live(database) == [store.process, other.process]
        assert [writer.process for writer in other.live_writers()] == [store.process, other.process]
        (own,) = (writer for writer in other.live_writers() if writer.process == other.process)
        assert (own.version, own.schema) == (__version__, SCHEMA_VERSION)
        assert own.machine.count(":") == 1
        other.close()
        assert live(database) == [store.process]
    assert live(database) == []


def test_status_of_a_database_lists_its_processes(postgres_url):
    name = "roost 8000000000000001"
    with closing(PostgresStore(postgres_url)), psycopg.connect(postgres_url, application_name=name):
        first, _, head, *lines = database_lines(status_of(postgres_url))
    assert first.startswith(f"schema {SCHEMA_VERSION}, for programs with schema ")
    assert head.split() == ["machine", "version", "schema", "started", "heartbeat"]
    own, older = sorted((" ".join(line.split()) for line in lines), key=lambda line: "older" in line)
    assert own.startswith(f"{socket.gethostname()}:{os.getpid()} {__version__} {SCHEMA_VERSION} ")
    assert own.endswith(" s ago")
    assert older.startswith("this machine unknown older")
    assert older.endswith(" none")


def test_readers_are_not_live_writers(postgres_url, database):
    with closing(PostgresStore(postgres_url, may_create=False)) as reader:
        assert live(database) == []
        assert reader.live_writers() == ()


def test_a_process_without_connection_and_heartbeat_is_not_live(postgres_url, database):
    crashed = heartbeats.Heartbeats(postgres_url, settings=Settings())
    assert [writer.process for writer in crashed.beat()] == [crashed.process]
    database.execute("UPDATE heartbeat SET heard_at_s = heard_at_s - 20")
    assert live(database) == [crashed.process]
    database.execute("UPDATE heartbeat SET heard_at_s = heard_at_s - 11")
    assert live(database) == []
    assert [writer.process for writer in crashed.beat()] == [crashed.process]
    crashed.end()


def test_a_frozen_process_is_live_as_long_as_it_is_connected(postgres_url, database):
    with closing(PostgresStore(postgres_url)) as store:
        database.execute("UPDATE heartbeat SET heard_at_s = heard_at_s - 3000")
        (writer,) = heartbeats.live_writers(database)
        assert writer.process == store.process
        assert writer.age_s > 2999


def test_a_program_without_heartbeats_is_live_by_its_connection(postgres_url, database):
    name = "roost 8000000000000001"
    with closing(PostgresStore(postgres_url)) as store, psycopg.connect(postgres_url, application_name=name):
        oldest, found = sorted(heartbeats.live_writers(database), key=lambda writer: writer.schema)
        assert (oldest.process, oldest.version, oldest.schema) == (1 - 2**63, "", "")
        assert oldest.machine == "this machine"
        assert found.process == store.process
        assert lowest_schema([oldest, found]) == ""


def test_rows_of_crashed_processes_are_deleted_later(postgres_url, database):
    database.execute("INSERT INTO heartbeat VALUES (1, '1', '0011', 'db1:2', 0, 0)")
    with closing(PostgresStore(postgres_url)) as store:
        store.prune(older_than_s=0.0, max_bytes=2**40)
        assert database.execute("SELECT process FROM heartbeat").fetchall() == [(store.process,)]


def test_heartbeats_do_not_abort_or_delay_commits(postgres_url, database):
    with closing(PostgresStore(postgres_url)) as store:
        list(store.load().writes)
        with database.transaction():
            database.execute("SELECT * FROM heartbeat FOR UPDATE")
            assert commit(store, item(provider(1), rows=[evidence(1)])) == [""]


class FlakyBeats:
    """Beats of a database that does not answer the first one with a decision."""

    process = 1

    def __init__(self):
        self.count = 0
        self.decided = []  # the heartbeats with a decision
        self.is_repeated = threading.Event()
        self.is_ended = False

    def begin(self):
        """See ``Beats``."""

    def beat(self, *, has_decided=False):
        """See ``Beats``."""
        self.count += 1
        if has_decided:
            self.decided.append(self.count)
            if len(self.decided) == 1:
                raise StoreGone("PostgreSQL: restarting")
        if self.decided and self.count > self.decided[0] + 2:
            self.is_repeated.set()
        return [LiveWriter(self.count, version="1", schema="0011", machine="db1:2", started_at_s=0.0, age_s=0.0)]

    def end(self):
        """See ``Beats``."""
        self.is_ended = True


def test_heartbeats_continue_after_an_error(monkeypatch):
    monkeypatch.setattr(heartbeat, "BEAT_S", 0.001)
    beats = FlakyBeats()
    beating = heartbeat.Heartbeat(beats)
    assert beating.process == 1
    beating.note_decision()
    assert beats.is_repeated.wait(10)
    beating.stop()
    first, second = beats.decided
    assert second == first + 1, "the next heartbeat has the decision"
    assert [writer.process for writer in beating.writers] == [beats.count]
    assert beats.is_ended


@pytest.mark.parametrize("server", ["postgresql", "mariadb"])
def test_store_that_cannot_be_opened_has_no_heartbeats(request, monkeypatch, server):
    url = request.getfixturevalue({"postgresql": "postgres_url", "mariadb": "mariadb_url"}[server])
    link = import_module(f"roost.store.{server}.link")

    class BrokenLink(link.Link):
        def __init__(self, *arguments, **options):
            if "role" not in options:
                raise StoreGone("too many connections")
            super().__init__(*arguments, **options)

    monkeypatch.setattr(link, "Link", BrokenLink)
    with pytest.raises(StoreGone, match="too many"):
        open_store(url, settings=Settings())
    assert status_of(url).processes == []
    assert not [thread for thread in threading.enumerate() if thread.name == "roost-heartbeat"]


def test_end_of_a_process_does_not_wait_for_a_lock(postgres_url, database):
    store = PostgresStore(postgres_url)
    with database.transaction():
        database.execute("SELECT * FROM heartbeat FOR UPDATE")
        begun_s = time.monotonic()
        store.close()
        assert time.monotonic() - begun_s < 5
