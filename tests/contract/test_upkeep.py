"""Counts for metrics, and the record of audits and backups, in both databases beside a server."""

import resource
import signal
from contextlib import closing

import pytest

from roost.errors import StoreBroken, Unavailable
from roost.model.work.work_rows import Put
from roost.store.sqlite.store import SqliteStore
from roost.store.upkeep.row_counts import OpenOperations, Upkeep, count_database, count_evidence
from roost.store.upkeep.upkeep_rows import record_upkeep
from tests.contract.stores import commit, evidence, item
from tests.support.conductors.work_rows import agent, migration, operation, order, status


def test_work_is_counted_beside_the_server(durable):
    store = durable.open()
    rows = [
        status(1, status="ACTIVE"),
        status(2, status="ACTIVE"),
        status(3, status="ERROR"),
        operation(1, kind="build", created_at_s=20.0),
        operation(2, kind="build", created_at_s=10.0),
        operation(3, kind="stop", outcome="done"),
        order(1, operation_id=1, number=1, state="waiting"),
        order(2, operation_id=1, number=2, state="answered"),
        migration(1, kind="live", status="moving"),
        migration(2, kind="live", status="failed"),
        agent("h1", heard_at_s=100.0, state="ready"),
        agent("h2", heard_at_s=50.0, state="ready"),
        agent("h3", heard_at_s=100.0, state="gone"),
    ]
    assert commit(store, item(work=tuple(map(Put, rows)))) == [""]
    counts = count_database(durable.url, contact_since_s=100.0)
    assert counts.instances == {"ACTIVE": 2, "ERROR": 1}
    assert counts.operations == {"build": OpenOperations(count=2, oldest_s=10.0)}
    assert counts.orders == {"waiting": 1}
    assert counts.migrations == {("live", "moving"): 1}
    assert counts.agents == {"ready": 2, "gone": 1}
    assert counts.agents_reporting == 1
    assert counts.size_bytes > 10_000
    assert counts.upkeep == {}


def test_evidence_is_counted_in_rows_and_bytes(durable):
    store = durable.open()
    rows = [evidence(1, body=b"x" * 100), evidence(2, body=b"y" * 50)]
    assert commit(store, item(rows=rows)) == [""]
    assert count_evidence(durable.url) == (2, 150)


def test_last_audit_and_backup_are_recorded_beside_the_server(durable):
    durable.open()
    record_upkeep(durable.url, "audit", findings=3)
    record_upkeep(durable.url, "audit", findings=2)
    record_upkeep(durable.url, "backup", size_bytes=4096)
    upkeep = count_database(durable.url, contact_since_s=0.0).upkeep
    assert sorted(upkeep) == ["audit", "backup"]
    assert upkeep["audit"] == Upkeep(at_s=upkeep["audit"].at_s, findings=2)
    assert upkeep["backup"].size_bytes == 4096


def test_write_check_leaves_one_row(durable):
    store = durable.open()
    store.check_writable(10.0)
    store.check_writable(20.0)
    assert count_database(durable.url, contact_since_s=0.0).upkeep == {"write check": Upkeep(at_s=20.0)}


def test_write_check_finds_a_full_disk(tmp_path):
    with closing(SqliteStore(tmp_path / "roost.db")) as store:
        store.check_writable(10.0)
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))  # As on a full disk, no file grows.
            with pytest.raises(StoreBroken):
                store.check_writable(20.0)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
            signal.signal(signal.SIGXFSZ, before)
        store.check_writable(30.0)


def test_absent_database_is_an_outage(tmp_path):
    with pytest.raises(Unavailable):
        count_database(str(tmp_path / "absent.db"), contact_since_s=0.0)
