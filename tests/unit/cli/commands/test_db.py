"""``roost db`` on a SQLite file, which has one process."""

import json

from roost.store.rules.schema import SCHEMA_VERSION


def test_status_of_a_file_has_the_schema_and_no_processes(run, tmp_path):
    path = tmp_path / "roost.db"
    assert run("db", "sync", "--database", path)[0] == 0
    code, out, _ = run("db", "status", "--database", path)
    assert (code, out.splitlines()[0].split(",")[0]) == (0, f"schema {SCHEMA_VERSION}")
    found = json.loads(run("db", "status", "--database", path, "--json")[1])
    assert (found["schema"], found["program_schema"], found["processes"]) == (SCHEMA_VERSION, SCHEMA_VERSION, [])


def test_a_file_is_not_upgraded_beside_its_server(run, tmp_path):
    path = tmp_path / "roost.db"
    assert run("db", "sync", "--database", path)[0] == 0
    code, _, error = run("db", "upgrade", "--expand", "--database", path)
    assert (code, "a SQLite file has one server: stop it" in error) == (2, True)
