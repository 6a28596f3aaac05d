"""Database and agent files are private to their owner, and a missing lock file is detected."""

import stat
from contextlib import closing

import pytest

from roost.compute.agent.agent_journal import Journal
from roost.errors import StoreBroken
from roost.model.writes import PutSymbol
from roost.store.sqlite.store import SqliteStore
from tests.contract.stores import commit, item

TRAIT = item(PutSymbol("trait", 70_000, "CUSTOM_A"))


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_new_database_is_readable_only_by_its_owner(tmp_path):
    path = tmp_path / "data" / "roost.db"
    with closing(SqliteStore(path)) as store:
        assert commit(store, TRAIT) == [""]
        files = {each.name: mode(each) for each in path.parent.iterdir()}
    assert files == dict.fromkeys(("roost.db", "roost.db-wal", "roost.db-shm", "roost.db.lock"), 0o600)
    assert mode(path.parent) == 0o700


def test_existing_folder_keeps_its_mode(tmp_path):
    tmp_path.chmod(0o750)
    SqliteStore(tmp_path / "roost.db").close()
    assert mode(tmp_path) == 0o750


def test_new_agent_journal_is_readable_only_by_its_owner(tmp_path):
    path = tmp_path / "agent" / "journal.db"
    with closing(Journal(path)):
        assert {mode(each) for each in path.parent.iterdir()} == {0o600}


@pytest.mark.parametrize("replace", [False, True])
def test_missing_lock_file_stops_all_writes(tmp_path, replace):
    path = tmp_path / "roost.db"
    with closing(SqliteStore(path)) as store:
        (tmp_path / "roost.db.lock").unlink()
        if replace:
            (tmp_path / "roost.db.lock").touch()
        with pytest.raises(StoreBroken, match="lock file"):
            commit(store, TRAIT)
