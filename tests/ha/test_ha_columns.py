"""The harness finds faults that a test plants in the tables, on one server with SQLite."""

import sqlite3
import time

import pytest

from roost.app import open_roost
from roost.store.audit import audit
from tests.ha.client import HOSTS, VCPUS
from tests.ha.columns import compare_server, read_tables
from tests.ha.load import Load
from tests.ha.record import find_decision_problems, find_problems
from tests.support.fleets.products import fleet
from tests.support.servers.clusters import ServerProgram


@pytest.fixture
def server(tmp_path):
    with open_roost(None, tmp_path) as roost:
        roost.install(fleet(HOSTS, vcpus=VCPUS))
    found = ServerProgram(folder=tmp_path, settings="")
    found.start()
    try:
        yield found
    finally:
        found.kill()


def write(server):
    """Let clients write for a while; return the load."""
    load = Load([server.port], seed=1, clients=3)
    load.start()
    time.sleep(1.5)
    load.stop()
    assert load.unexpected == []
    assert load.errors == {}
    assert load.outage_s > 0
    return load


def compare(server, load):
    """Return the kinds of problems, the differences of the server, and the findings of the audit."""
    tables = read_tables(server.folder / "roost.db")
    problems = find_problems(load.records, tables.holdings) + find_decision_problems(load.records, tables.decisions)
    consumers = {consumer for record in load.records for consumer in record.possible}
    findings = [each.check for each in audit(server.folder / "roost.db") if each.check != "orphan"]
    return [each.kind for each in problems], compare_server(server, tables, consumers=consumers), findings


@pytest.mark.long
def test_planted_faults_are_found(server):
    load = write(server)
    assert sum(record.acknowledged for record in load.records) > 20
    assert any(record.decisions for record in load.records)
    assert compare(server, load) == ([], [], [])
    with sqlite3.connect(server.folder / "roost.db") as connection:
        connection.execute("DELETE FROM allocation WHERE consumer_id = (SELECT min(consumer_id) FROM allocation)")
    connection.close()
    kinds, differences, findings = compare(server, load)
    assert kinds == ["lost"]
    assert any("consumers instead of" in each for each in differences)
    assert set(findings) >= {"used"}
    with sqlite3.connect(server.folder / "roost.db") as connection:
        connection.execute("DELETE FROM decision WHERE id = (SELECT max(id) FROM decision)")
    connection.close()
    assert compare(server, load)[0] == ["lost", "lost"]
