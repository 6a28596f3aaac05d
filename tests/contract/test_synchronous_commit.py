"""Commits that wait for a standby: none is acknowledged before it is known to last."""

import json
import threading
from contextlib import closing, contextmanager

import psycopg
import pytest

from roost.errors import Unavailable
from roost.model.settings.roost_settings import Store as StoreSettings
from roost.placement.current import Current
from roost.store.postgresql.store import PostgresStore
from tests.contract.stores import item
from tests.support.databases import postgres
from tests.support.databases.standbys import pair
from tests.support.waiting import until

pytestmark = pytest.mark.long

WAITING = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND application_name LIKE 'roost%'"


@pytest.fixture
def server():
    found = postgres.Server(fsync=False)
    try:
        yield found
    finally:
        found.stop()


class Operator:
    """Who sets up the server, on a connection that waits for no standby."""

    def __init__(self, connection):
        self._connection = connection
        self.ask("SET synchronous_commit = local")

    def ask(self, text):
        """Run a statement; return the first column of its rows."""
        return [row[0] for row in self._connection.execute(text)] if text.startswith("SELECT") else self._do(text)

    def _do(self, text):
        self._connection.execute(text)

    def wait_for_standby(self, name):
        """Let commits wait for a standby of this name; empty: for none."""
        self.ask(f"ALTER SYSTEM SET synchronous_standby_names = '{name}'")
        self.ask("SELECT pg_reload_conf()")
        until(lambda: self.ask("SELECT current_setting('synchronous_standby_names')") == [name])

    def cancel_wait(self):
        """Cancel a wait for the standby once there is one."""
        (waiting,) = until(lambda: self.ask(WAITING))
        assert self.ask(f"SELECT pg_cancel_backend({waiting})") == [True]
        return waiting


@contextmanager
def operated(server):
    with psycopg.connect(server.url("postgres"), autocommit=True) as connection:
        yield Operator(connection)


@contextmanager
def current_on(server, **settings):
    with closing(PostgresStore(server.url("postgres"), settings=StoreSettings(**settings))) as store:
        yield Current(store)


def writes_of(current, is_one_statement):
    names = ("CUSTOM_A",) if is_one_statement else ("CUSTOM_A", "CUSTOM_B")
    return [item(current.new_symbol("trait", name)) for name in names]


def begun(current, items):
    """Commit in a thread; return it, and where its answer comes."""
    answers = []

    def run():
        try:
            answers.append(current.commit(items))
        except Unavailable as error:
            answers.append(str(error))

    thread = threading.Thread(target=run)
    thread.start()
    return thread, answers


def custom(current):
    return [name for name in current.state.trait_ids if name.startswith("CUSTOM_")]


@pytest.mark.parametrize("is_one_statement", [True, False])
def test_a_commit_whose_wait_is_cancelled_is_not_acknowledged(server, is_one_statement):
    with operated(server) as operator, current_on(server, wait_s=1) as current:
        items = writes_of(current, is_one_statement)
        operator.wait_for_standby("nowhere")
        thread, answers = begun(current, items)
        operator.cancel_wait()
        thread.join()
        (answer,) = answers
        assert "no synchronous standby confirms" in answer
        until(lambda: not operator.ask(WAITING))
        operator.wait_for_standby("")
        current.refresh()
        assert len(custom(current)) == len(items), "it was committed all the same"


def test_a_commit_whose_wait_is_cancelled_is_acknowledged_once_the_standby_confirms_it(server):
    with operated(server) as operator, current_on(server, wait_s=60) as current:
        items = writes_of(current, is_one_statement=True)
        operator.wait_for_standby("nowhere")
        thread, answers = begun(current, items)
        operator.cancel_wait()
        until(lambda: operator.ask(f"{WAITING} AND query LIKE '%emit_message%'"))
        assert answers == []
        operator.wait_for_standby("")
        thread.join()
        assert answers == [[None]]
        assert custom(current) == ["CUSTOM_A"]


def test_a_commit_that_waits_beyond_its_deadline_is_not_acknowledged_and_leaves_no_process(server):
    with operated(server) as operator, current_on(server, deadline_s=0.5, wait_s=1) as current:
        items = writes_of(current, is_one_statement=True)
        operator.wait_for_standby("nowhere")
        thread, answers = begun(current, items)
        thread.join()
        assert "no synchronous standby confirms" in answers[0]
        until(lambda: not operator.ask(WAITING))
        operator.wait_for_standby("")
        current.refresh()
        assert custom(current) == ["CUSTOM_A"]


def test_a_timeout_that_the_server_sets_for_the_role_does_not_end_the_wait(server):
    with operated(server) as operator:
        operator.ask("ALTER ROLE roost SET statement_timeout = '1min'")
        with closing(PostgresStore(server.url("postgres"))) as store:
            assert store._link.read("SELECT current_setting('statement_timeout')", ()) == [("0",)]


def test_standbys_that_no_commit_waits_for_are_warned_of_at_the_start(capfd):
    with pair() as servers:
        for make in (lambda: None, servers.make_synchronous):
            make()
            with closing(PostgresStore(servers.primary.url("roost"))):
                pass
    lines = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    assert [(line["event"], line["standbys"]) for line in lines] == [("commits_not_synchronous", 1)]
