"""Synchronous commits: no commit is acknowledged before the standby has confirmed it."""

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
from tests.support.wait import wait_until

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
    """Configures the server, on a connection that does not wait for a standby."""

    def __init__(self, connection):
        self._connection = connection
        self.execute("SET synchronous_commit = local")

    def execute(self, text):
        """Run a statement; return the first column of its rows."""
        return [row[0] for row in self._connection.execute(text)] if text.startswith("SELECT") else self._do(text)

    def _do(self, text):
        self._connection.execute(text)

    def wait_for_standby(self, name):
        """Make commits wait for a standby of this name; an empty name disables the wait."""
        self.execute(f"ALTER SYSTEM SET synchronous_standby_names = '{name}'")
        self.execute("SELECT pg_reload_conf()")
        wait_until(lambda: self.execute("SELECT current_setting('synchronous_standby_names')") == [name])

    def cancel_wait(self):
        """Wait until a commit waits for the standby, then cancel its wait."""
        (waiting,) = wait_until(lambda: self.execute(WAITING))
        assert self.execute(f"SELECT pg_cancel_backend({waiting})") == [True]
        return waiting


@contextmanager
def operator_on(server):
    with psycopg.connect(server.url("postgres"), autocommit=True) as connection:
        yield Operator(connection)


@contextmanager
def current_on(server, **settings):
    with closing(PostgresStore(server.url("postgres"), settings=StoreSettings(**settings))) as store:
        yield Current(store)


def writes_of(current, is_one_statement):
    names = ("CUSTOM_A",) if is_one_statement else ("CUSTOM_A", "CUSTOM_B")
    return [item(current.new_symbol("trait", name)) for name in names]


def start_commit(current, items):
    """Commit in a thread; return the thread and the list for its answer."""
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
def test_cancelled_standby_wait_is_not_acknowledged(server, is_one_statement):
    with operator_on(server) as operator, current_on(server, wait_s=1) as current:
        items = writes_of(current, is_one_statement)
        operator.wait_for_standby("nowhere")
        thread, answers = start_commit(current, items)
        operator.cancel_wait()
        thread.join()
        (answer,) = answers
        assert "no synchronous standby confirms" in answer
        wait_until(lambda: not operator.execute(WAITING))
        operator.wait_for_standby("")
        current.refresh()
        assert len(custom(current)) == len(items), "it was committed all the same"


def test_cancelled_commit_is_acknowledged_once_the_standby_confirms(server):
    with operator_on(server) as operator, current_on(server, wait_s=60) as current:
        items = writes_of(current, is_one_statement=True)
        operator.wait_for_standby("nowhere")
        thread, answers = start_commit(current, items)
        operator.cancel_wait()
        wait_until(lambda: operator.execute(f"{WAITING} AND query LIKE '%emit_message%'"))
        assert answers == []
        operator.wait_for_standby("")
        thread.join()
        assert answers == [[None]]
        assert custom(current) == ["CUSTOM_A"]


def test_commit_past_its_deadline_is_not_acknowledged_and_leaves_no_backend(server):
    with operator_on(server) as operator, current_on(server, deadline_s=0.5, wait_s=1) as current:
        items = writes_of(current, is_one_statement=True)
        operator.wait_for_standby("nowhere")
        thread, answers = start_commit(current, items)
        thread.join()
        assert "no synchronous standby confirms" in answers[0]
        wait_until(lambda: not operator.execute(WAITING))
        operator.wait_for_standby("")
        current.refresh()
        assert custom(current) == ["CUSTOM_A"]


def test_statement_timeout_of_the_role_does_not_end_the_wait(server):
    with operator_on(server) as operator:
        operator.execute("ALTER ROLE roost SET statement_timeout = '1min'")
        with closing(PostgresStore(server.url("postgres"))) as store:
            assert store._link.read("SELECT current_setting('statement_timeout')", ()) == [("0",)]


def test_standbys_without_synchronous_commit_cause_a_warning_at_the_start(capfd):
    with pair() as servers:
        for make in (lambda: None, servers.make_synchronous):
            make()
            with closing(PostgresStore(servers.primary.url("roost"))):
                pass
    lines = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    assert [(line["event"], line["standbys"]) for line in lines] == [("commits_not_synchronous", 1)]
