import os

import pytest

from roost.api.access.private_file import lock_folder, replace_file
from roost.errors import RoostError


def test_new_file_is_private_and_an_old_one_keeps_its_mode(tmp_path):
    path = tmp_path / "tokens"
    replace_file(path, "one")
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("one", 0o600)
    path.chmod(0o640)
    replace_file(path, "two")
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("two", 0o640)
    assert list(tmp_path.iterdir()) == [path]


def test_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "tokens"
    replace_file(path, "one")

    def fail(_descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(RoostError, match="tokens cannot be written: No space left"), lock_folder(path):
        replace_file(path, "two")
    assert (path.read_text(), list(tmp_path.iterdir())) == ("one", [path])


def test_folder_that_does_not_exist_is_an_error(tmp_path):
    with pytest.raises(RoostError, match="cannot be written: No such file"), lock_folder(tmp_path / "none" / "tokens"):
        pass
