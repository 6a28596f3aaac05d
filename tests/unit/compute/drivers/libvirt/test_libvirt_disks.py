"""Files of guests, where the disk of the host is full or others take files away."""

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
    """Give the files of a host, with one image that is larger than what there will be room for."""
    images = tmp_path / "images"
    images.mkdir()
    (images / "large").write_bytes(b"image" * ROOM)
    return Disks(tmp_path / "hosts", "host-a", images=images)


@contextmanager
def little_room():
    """Let no file become larger than so much, as if the disk were full."""
    before, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (ROOM, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def files(folder):
    """Give the names of all files below a folder."""
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def test_what_there_is_no_room_for_leaves_no_part_of_it(disks, tmp_path):
    large, there = tmp_path / "images" / "large", tmp_path / "hosts" / "host-b" / GUEST
    there.mkdir(parents=True)
    (there / "coming.json").write_text('{"spec":{"uuid":"u","node":"n","flavor":{"name":"f"}},"operation":"move"}')
    to = TransferTarget(uuid=GUEST, node="host-b", address="host-b", disk=str(there / "move.raw"))
    before = files(tmp_path)
    acts = (
        lambda: disks.save(GUEST, large),
        lambda: disks.make(spec_of("guest", image="large"), "build"),
        lambda: disks.send(large, to),
    )
    for act in acts:
        with little_room(), pytest.raises(OSError, match="File too large"):
            act()
        assert files(tmp_path) == before
    assert disks.save(GUEST, large) == f"saved-{GUEST}"


def test_what_guests_were_is_told_of_those_that_are_there(disks):
    disks.keep_replaced(GUEST, "<domain/>")
    (disks.folder / uuid_named("other")).mkdir()
    (disks.folder / "a file of somebody else").touch()
    assert (disks.all_replaced(), disks.guest_before_move(GUEST)) == (["<domain/>"], "<domain/>")
    assert disks.guest_before_move(uuid_named("other")) is None


def test_of_saved_images_those_of_operators_and_what_is_no_file_stay(disks, tmp_path):
    images, other = tmp_path / "images", uuid_named("other")
    strange = [
        f"saved-{GUEST}.qcow2",
        f"saved-{GUEST}-copy",
        f"my-saved-{GUEST}",
        f"saved-{GUEST}.mine.new",
        "saved-debian",
        f"saved-{GUEST.upper()}",
        f"{GUEST}",
        f"saved-{GUEST}.1.new.old",
    ]
    for name in strange:
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


def test_an_image_that_is_dropped_while_it_is_written_is_not_saved(disks, tmp_path, monkeypatch):
    images = tmp_path / "images"

    def copied(disk, fresh):
        copy_sparse(disk, fresh)
        assert disks.list_saved() == [GUEST]
        disks.drop_saved(GUEST)

    monkeypatch.setattr(libvirt_disks, "copy_sparse", copied)
    with pytest.raises(FileNotFoundError):
        disks.save(GUEST, images / "large")
    assert files(images) == ["large"]


def test_a_folder_of_images_that_is_gone_is_no_folder_without_images(disks, tmp_path):
    (tmp_path / "images").rename(tmp_path / "elsewhere")
    with pytest.raises(FileNotFoundError):
        disks.list_saved()
