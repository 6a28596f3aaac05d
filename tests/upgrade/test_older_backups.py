"""Backups of the program before are restored by this one, into both kinds of database."""

import sqlite3
from contextlib import closing

import pytest

from roost.app import audit
from roost.store.backends import status_of
from roost.store.rules.schema import SCHEMA_VERSION
from tests.support.fleets.products import roost
from tests.support.servers.servers import ADMIN, serve
from tests.upgrade.older_program import fill_older, run_older

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def backup(older, tmp_path_factory):
    """A backup with hosts and claims, written by the program before."""
    folder = tmp_path_factory.mktemp("backup")
    fill_older(older, f"sqlite:///{folder}/roost.db", 3, cwd=folder)
    with serve("--database", f"{folder}/roost.db", noun="up", folder=folder, sources=older) as server:
        for _ in range(5):
            body = {"flavor": {"name": "small", "vcpus": 2, "memory_mb": 64}}
            assert server.ask("POST", "/v1/decisions", body, headers=ADMIN)[0] == 201
        assert server.stop() == 0
    run_older(older, "db", "backup", "older.backup", "--database", folder / "roost.db", cwd=folder)
    with closing(sqlite3.connect(folder / "roost.db")) as connection:
        used = connection.execute("SELECT id, used FROM inventory ORDER BY id").fetchall()
    return folder / "older.backup", used


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_backup_of_the_program_before_is_restored(kind, backup, tmp_path, postgres_url):
    path, used = backup
    url = postgres_url if kind == "postgresql" else f"{tmp_path}/roost.db"
    assert b'"schema":"0010"' in path.read_bytes()[:500].replace(b" ", b"")
    result = roost("db", "restore", path, "--database", url, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert audit(url) == []
    found = status_of(url)
    assert (found.schema, found.readable_from) == (SCHEMA_VERSION, SCHEMA_VERSION)
    with serve("--database", url, noun="up", folder=tmp_path) as server:
        usages = 0
        for provider in server.ask("GET", "/placement/resource_providers", headers=ADMIN)[2]["resource_providers"]:
            path = f"/placement/resource_providers/{provider['uuid']}/usages"
            usages += sum(server.ask("GET", path, headers=ADMIN)[2]["usages"].values())
        assert usages == sum(amount for number, amount in used if number & 0xFFFF) == 5 * (2 + 64)
