"""Files of guests: full disks, saved images, and concurrent deletes."""

import resource
import signal
from contextlib import contextmanager

import pytest

from roost.compute.drivers.libvirt import disks as libvirt_disks
from roost.compute.drivers.libvirt.disks import Disks, copy_sparse
from roost.model.work.guest import TransferTarget
from tests.support.agents.driver_doubles import spec_of
from tests.support.fleets.worlds import uuid_named

GUEST = uuid_named("guest")
ROOM = 2**20


@pytest.fixture
def disks(tmp_path):
    """Return the files of a host, with one image larger than the free space."""
    images = tmp_path / "images"
    images.mkdir()
    (images / "large").write_bytes(b"image" * ROOM)
    return Disks(tmp_path / "hosts", "host-a", images=images)


@contextmanager
def full_disk():
    """Limit the size of files, as if the disk were full."""
    before, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (ROOM, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def files(folder):
    """Return the names of all files below a folder."""
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def test_full_disk_leaves_no_partial_files(disks, tmp_path):
    large, guest_folder = tmp_path / "images" / "large", tmp_path / "hosts" / "host-b" / GUEST
    guest_folder.mkdir(parents=True)
    (guest_folder / "coming.json").write_text(
        '{"spec":{"uuid":"u","node":"n","flavor":{"name":"f"}},"operation":"move"}'
    )
    to = TransferTarget(uuid=GUEST, node="host-b", address="host-b", disk=str(guest_folder / "move.raw"))
    before = files(tmp_path)
    writes = (
        lambda: disks.save(GUEST, large),
        lambda: disks.make(spec_of("guest", image="large"), "build"),
        lambda: disks.send(large, to),
    )
    for write in writes:
        with full_disk(), pytest.raises(OSError, match="File too large"):
            write()
        assert files(tmp_path) == before
    assert disks.save(GUEST, large) == f"saved-{GUEST}"


def test_replaced_definitions_are_listed_for_existing_guests(disks):
    disks.store_replaced(GUEST, "<domain/>")
    (disks.folder / uuid_named("other")).mkdir()
    (disks.folder / "a file of somebody else").touch()
    assert (disks.list_replaced(), disks.guest_before_move(GUEST)) == (["<domain/>"], "<domain/>")
    assert disks.guest_before_move(uuid_named("other")) is None


def test_dropping_saved_images_keeps_operator_files_links_and_folders(disks, tmp_path):
    images, other = tmp_path / "images", uuid_named("other")
    operator_names = [
        f"saved-{GUEST}.qcow2",
        f"saved-{GUEST}-copy",
        f"my-saved-{GUEST}",
        f"saved-{GUEST}.mine.new",
        "saved-debian",
        f"saved-{GUEST.upper()}",
        f"{GUEST}",
        f"saved-{GUEST}.1.new.old",
    ]
    for name in operator_names:
        (images / name).write_bytes(b"of an operator")
    (images / f"saved-{uuid_named('link')}").symlink_to(images / "large")
    (images / f"saved-{uuid_named('folder')}").mkdir()
    before = sorted(images.iterdir())
    assert disks.list_saved() == []
    disks.save(GUEST, images / "large")
    (images / f"saved-{GUEST}.77.new").write_bytes(b"part")
    disks.save(other, images / "large")
    assert disks.list_saved() == sorted([GUEST, other])
    for uuid in (GUEST, other, uuid_named("link"), uuid_named("folder"), "debian", "*", "../images/large", ""):
        disks.drop_saved(uuid)
    assert (disks.list_saved(), sorted(images.iterdir())) == ([], before)


def test_image_dropped_during_its_save_is_not_saved(disks, tmp_path, monkeypatch):
    images = tmp_path / "images"

    def copy_and_drop(disk, fresh):
        copy_sparse(disk, fresh)
        assert disks.list_saved() == [GUEST]
        disks.drop_saved(GUEST)

    monkeypatch.setattr(libvirt_disks, "copy_sparse", copy_and_drop)
    with pytest.raises(FileNotFoundError):
        disks.save(GUEST, images / "large")
    assert files(images) == ["large"]


def test_missing_image_folder_is_an_error(disks, tmp_path):
    (tmp_path / "images").rename(tmp_path / "elsewhere")
    with pytest.raises(FileNotFoundError):
        disks.list_saved()
