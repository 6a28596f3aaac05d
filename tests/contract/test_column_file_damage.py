"""A damaged, foreign or outdated column file is refused with its reason, and the fleet is that of the rows."""

import os
import shutil
import signal
import threading
import time
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from roost.model.settings.roost_settings import Store as Settings
from roost.placement.current import Current
from roost.store import snapshot_program
from roost.store.backends import database_at, open_reader
from roost.store.column_file import column_schedule, file_layout, part_codec, write_columns
from roost.store.column_file.file_layout import ColumnFile, ColumnFileRefused
from roost.store.column_file.file_place import open_private
from roost.store.sqlite.store import SqliteStore
from tests.contract.column_fleets import Fleet, continue_history, run_history
from tests.contract.stores import SqliteWorld
from tests.support.fleets.content_by_id import content_by_id
from tests.support.fleets.products import kill, worker


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Let a small fleet need several blocks."""
    monkeypatch.setattr(part_codec, "_ROWS_MAX", 16)


@pytest.fixture
def events(monkeypatch) -> list[tuple[str, dict[str, object]]]:
    """Collect the events of the log."""
    found: list[tuple[str, dict[str, object]]] = []
    monkeypatch.setattr("roost.observe.log.event", lambda name, **fields: found.append((name, fields)))
    return found


@pytest.fixture
def fleet(tmp_path):
    """Yield a fleet on SQLite with its column file beside it, and some later changes."""
    tmp_path.chmod(0o700)
    found = Fleet(SqliteWorld(tmp_path / "roost.db"), tmp_path)
    history = run_history(found, 4, 60)
    found.write()
    continue_history(found, history, 10)
    found.close()
    yield found
    found.close()


def check_refusal(fleet, events, reason):
    """Check that the file is refused once, and that the content is that of the rows."""
    events.clear()
    state = Current(fleet.open()).state
    assert [name for name, _ in events] == ["column_file_refused"]
    assert reason in events[0][1]["reason"]
    assert content_by_id(state) == content_by_id(fleet.load_rows())


def open_file(path: Path) -> ColumnFile:
    file = open_private(path)
    assert file is not None
    try:
        return ColumnFile(file)
    except ColumnFileRefused:
        file.close()
        raise


def test_each_flipped_byte_is_noticed(fleet):
    whole = fleet.path.read_bytes()
    unnoticed = []
    for at in range(len(whole)):
        fleet.path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x40]) + whole[at + 1 :])
        try:
            with closing(open_file(fleet.path)) as file:
                file.check()
            unnoticed.append(at)
        except ColumnFileRefused:
            pass
    assert unnoticed == []


def test_each_truncation_and_addition_is_noticed(fleet):
    whole = fleet.path.read_bytes()
    for size in [*range(0, len(whole), 7), len(whole) - 1]:
        fleet.path.write_bytes(whole[:size])
        with pytest.raises(ColumnFileRefused), closing(open_file(fleet.path)) as file:
            file.check()
    fleet.path.write_bytes(whole + bytes(64))
    with pytest.raises(ColumnFileRefused, match="truncated"):
        open_file(fleet.path)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_damage_leads_to_a_read_of_all_rows(fleet, events, share):
    whole = bytearray(fleet.path.read_bytes())
    whole[int(len(whole) * share)] ^= 1
    fleet.path.write_bytes(whole)
    check_refusal(fleet, events, "damaged")


def test_damage_after_the_check_leads_to_a_read_of_all_rows(fleet, events, monkeypatch):
    whole = bytearray(fleet.path.read_bytes())
    whole[int(len(whole) * 0.6)] ^= 1
    fleet.path.write_bytes(whole)
    monkeypatch.setattr(ColumnFile, "check", lambda _: None)
    check_refusal(fleet, events, "a block is damaged")


def test_content_with_valid_checksums_that_cannot_be_understood_is_refused(fleet, events):
    with closing(open_file(fleet.path)) as file:
        header = file.header
        blocks = [part_codec.Block(kind, b"\xc1") for kind in ("hosts", "claims")]
    with fleet.path.open("wb") as file:
        file_layout.write_file(file, header, blocks, size_max=10**6)
    check_refusal(fleet, events, "malformed")


def test_block_with_wrong_lengths_is_refused(fleet, events):
    with closing(open_file(fleet.path)) as file:
        header = file.header
    body = msgspec.msgpack.encode((2**40, [(0, "<u1", b"abc"), (0, "<u1", b"abc")]))
    with fleet.path.open("wb") as file:
        file_layout.write_file(file, header, [part_codec.Block("traits", body)], size_max=10**6)
    check_refusal(fleet, events, "has 3 bytes")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"program": "0.0.1"}, "Roost 0.0.1 wrote it"),
        ({"program_schema": "9999"}, "wrote it"),
        ({"token": "0" * 32}, "does not have its token"),
        ({"token": "' OR 1 = 1"}, "invalid literal"),
    ],
)
def test_file_of_another_program_or_database_is_refused(fleet, events, change, reason):
    rewrite_header(fleet.path, **change)
    check_refusal(fleet, events, reason)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"schema": "0010"}, "schema 0010"),
        ({"epoch": 5}, "restored since"),
        ({"position": 10**9}, "lost changes"),
    ],
)
def test_file_of_another_past_is_refused(fleet, events, change, reason):
    with closing(open_file(fleet.path)) as file:
        base = msgspec.structs.replace(file.header.base, **change)
    rewrite_header(fleet.path, base=base)
    check_refusal(fleet, events, reason)


def rewrite_header(path: Path, **change: object) -> None:
    """Write the file again with another header."""
    with closing(open_file(path)) as file:
        header = msgspec.structs.replace(file.header, **change)
        parts = list(file.parts())
    with path.open("wb") as target:
        file_layout.write_file(target, header, part_codec.encode_parts(parts), size_max=10**9)


def test_another_format_is_refused(fleet, events, monkeypatch):
    monkeypatch.setattr(file_layout, "_FORMAT", 2)
    check_refusal(fleet, events, "format 1, not 2")


def test_restored_older_file_of_the_database_refuses_a_newer_column_file(fleet, events, tmp_path):
    """The older file has another history after the copy, with the same positions."""
    history = run_history(fleet, 6, 30)
    fleet.close()
    copy = tmp_path / "copy.db"
    shutil.copyfile(fleet.world.path, copy)
    continue_history(fleet, history, 30)
    fleet.write()
    fleet.close()
    copy.replace(fleet.world.path)
    check_refusal(fleet, events, "does not have its token")
    run_history(fleet, 7, 90)
    check_refusal(fleet, events, "does not have its token")


def test_copy_of_the_database_may_use_its_column_file(fleet, events, tmp_path):
    other = Fleet(SqliteWorld(tmp_path / "moved.db"), tmp_path)
    shutil.copyfile(fleet.world.path, other.world.path)
    shutil.copy(fleet.path, other.path)
    cached = other.load()
    assert cached is not None
    assert events == []
    assert content_by_id(cached) == content_by_id(fleet.load_rows())
    other.close()


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660])
def test_file_with_access_for_others_is_refused(fleet, events, mode):
    fleet.path.chmod(mode)
    check_refusal(fleet, events, "other users have access")


def test_link_pipe_and_folder_are_refused(fleet, events, tmp_path):
    target = tmp_path / "target"
    fleet.path.rename(target)
    fleet.path.symlink_to(target)
    check_refusal(fleet, events, "cannot be opened")
    fleet.path.unlink()
    os.mkfifo(fleet.path)
    check_refusal(fleet, events, "is not a file")
    fleet.path.unlink()
    fleet.path.mkdir()
    check_refusal(fleet, events, "is not a file")


def test_file_of_another_user_is_refused(fleet, events, monkeypatch):
    uid = os.geteuid()
    monkeypatch.setattr("roost.store.column_file.file_place.os.geteuid", lambda: uid + 1)
    check_refusal(fleet, events, "another user")


def test_too_many_changes_refuse_the_file(fleet, events, monkeypatch):
    monkeypatch.setattr("roost.store.column_file.cached_load._CHANGES_MIN_BYTES", 10)
    monkeypatch.setattr("roost.store.column_file.cached_load._CHANGES_SHARE", 0.0)
    check_refusal(fleet, events, "the changes since have")


def test_new_file_is_private_and_whole(fleet):
    assert fleet.path.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in fleet.path.parent.iterdir() if path.suffix == ".new"] == []


def test_settings_can_turn_the_file_off(fleet, events):
    fleet.close()
    with closing(SqliteStore(fleet.world.path)) as store:
        assert not store.load().is_cached
        assert not store.start_column_file()
    fleet.settings = Settings(column_file=False, column_folder=fleet.settings.column_folder)
    store = fleet.open()
    assert not store.load().is_cached
    assert events == []


def test_file_beyond_its_maximum_size_leaves_the_previous_one(fleet):
    before = fleet.path.read_bytes()
    database = database_at(fleet.world.url)
    with pytest.raises(ColumnFileRefused, match="larger than"):
        write_columns.write_columns(fleet.path, load=database.load_columns, write=database.write, size_max=1000)
    assert fleet.path.read_bytes() == before
    assert not fleet.path.with_name(fleet.path.name + ".new").exists()


def test_slow_write_leaves_the_previous_file(fleet, monkeypatch):
    before = fleet.path.read_bytes()
    monkeypatch.setattr(write_columns, "_TIME_MAX_S", -1.0)
    with pytest.raises(ColumnFileRefused, match="takes more than"):
        database_at(fleet.world.url).write_column_file(fleet.path)
    assert fleet.path.read_bytes() == before
    assert fleet.load() is not None


def write_slowly(url: str, path: str) -> None:
    """Write a column file; print a line before each block and wait for a line of input."""
    blocks = write_columns.encode_parts

    def announce(parts):
        for block in blocks(parts):
            print("block", flush=True)
            input()
            yield block

    write_columns.encode_parts = announce
    print("done", snapshot_program.write_column_file(url, Path(path)), flush=True)


def test_killed_writer_leaves_the_previous_file(fleet):
    before = fleet.path.read_bytes()
    child = worker("tests.contract.test_column_file_damage:write_slowly", fleet.world.url, str(fleet.path))
    try:
        for _ in range(3):
            assert child.stdout.readline() == "block\n"
            child.stdin.write("\n")
        # While one process writes, another one does not.
        assert not database_at(fleet.world.url).write_column_file(fleet.path)
        child.send_signal(signal.SIGKILL)
        child.wait()
    finally:
        kill(child)
    assert fleet.path.read_bytes() == before
    assert fleet.load() is not None
    fleet.write()
    assert fleet.load() is not None


def test_concurrent_writers_leave_a_valid_file(fleet):
    fleet.close()
    outcomes = []

    def write() -> None:
        outcomes.append(database_at(fleet.world.url).write_column_file(fleet.path))

    threads = [threading.Thread(target=write) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(outcomes) == 6
    assert any(outcomes)
    assert fleet.load() is not None


def test_serving_store_writes_a_due_file_in_another_process(fleet, events, monkeypatch):
    monkeypatch.setattr(column_schedule, "_ROWS_MIN", 1)
    fleet.path.unlink()
    store = fleet.open()
    assert not store.load().is_cached
    assert store.start_column_file()
    process = store._columns.process
    assert not any(fleet.world.url in word for word in process._process.args)
    process.wait(60)
    assert process._process.returncode == 0
    assert store.load().is_cached
    assert not store.start_column_file()  # It is new.
    assert events == []


def test_failed_writer_is_reported(fleet, events, monkeypatch):
    monkeypatch.setattr(column_schedule, "_ROWS_MIN", 1)
    monkeypatch.setattr(column_schedule, "_LOOK_S", 0.0)
    fleet.path.unlink()
    fleet.path.with_name(fleet.path.name + ".new").mkdir()
    store = fleet.open()
    assert store.start_column_file()
    store._columns.process.wait(60)
    assert not store.start_column_file()
    assert [name for name, _ in events] == ["column_file_fails"]
    assert "Is a directory" in events[0][1]["problem"]
    assert not store.start_column_file()
    assert len(events) == 1


def test_refused_file_is_written_again(fleet, monkeypatch):
    monkeypatch.setattr(column_schedule, "_ROWS_MIN", 1)
    rewrite_header(fleet.path, token="0" * 32)
    time.sleep(0.01)
    store = fleet.open()
    assert not store.load().is_cached
    assert store.start_column_file()
    store._columns.process.wait(60)
    assert store.load().is_cached


def test_reader_uses_the_file_beside_a_database(tmp_path):
    tmp_path.chmod(0o700)
    fleet = Fleet(SqliteWorld(tmp_path / "roost.db"), tmp_path)
    run_history(fleet, 4, 30)
    fleet.write()
    with closing(open_reader(fleet.world.url)) as reader:
        assert reader.load().is_cached
    fleet.close()
