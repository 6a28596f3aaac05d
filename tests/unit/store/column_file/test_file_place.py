"""Paths of column files."""

from pathlib import Path

import pytest

from roost.model.settings.roost_settings import Store as Settings
from roost.store.column_file.file_layout import ColumnFileRefused
from roost.store.column_file.file_place import find_file, open_private, place_beside, place_in_folder

FOLDER = Settings(column_folder="/var/cache/roost")


def test_file_is_beside_a_sqlite_file_or_in_the_folder():
    assert place_beside(Path("/data/roost.db"), Settings()) == Path("/data/roost.db.columns")
    assert place_beside(Path("/data/roost.db"), FOLDER) == Path("/var/cache/roost/roost.db.columns")
    assert place_beside(Path("/data/roost.db"), Settings(column_file=False)) is None


def test_database_on_a_server_needs_a_folder():
    assert place_in_folder("postgresql://a@h/db", Settings()) is None
    assert place_in_folder("postgresql://a@h/db", Settings(column_file=False, column_folder="/x")) is None


def test_each_database_has_its_own_name_without_its_password():
    names = [
        place_in_folder(url, FOLDER)
        for url in (
            "postgresql://a:secret@h1:1,h2:2/db?target_session_attrs=read-write",
            "postgresql://a:other@h1:1,h2:2/db?password=p",
            "postgresql://a@h1:1,h2:2/other",
            "postgresql:///db?host=/socket",
            "postgresql:///db?host=/other",
        )
    ]
    assert names[0] == names[1]
    assert len(set(names)) == 4


def test_absent_file_is_no_error(tmp_path):
    assert open_private(tmp_path / "absent") is None
    assert find_file(tmp_path / "absent") is None


def test_file_of_another_kind_is_not_found(tmp_path):
    path = tmp_path / "other"
    path.write_bytes(bytes(100))
    path.chmod(0o644)
    with pytest.raises(ColumnFileRefused, match="other users"):
        open_private(path)
    path.chmod(0o600)
    assert find_file(path) is None
