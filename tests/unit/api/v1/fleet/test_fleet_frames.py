"""The buffer of changes of the fleet: where readers begin, and what they lose."""

import asyncio

import pytest

from roost.api.v1.fleet.fleet_frames import OVERLAP_S, FleetFrames, ReaderTooSlow


def reload(position):
    return b'event: fleet\ndata: {"reload":true,"position":%d}\n\n' % position


class Clock:
    """A clock that a test moves."""

    now_s = 0.0

    def __call__(self):
        """Return the time."""
        return self.now_s


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def frames(clock):
    return FleetFrames(1000, clock=clock)


def read(frames, after):
    """Return the frames for a new reader."""

    async def open_and_read():
        return frames.open(after, asyncio.Event()).read()

    return asyncio.run(open_and_read())


def test_reader_gets_the_frames_from_its_position_on(frames, clock):
    frames.restart(10)
    for position in (11, 12, 13):
        clock.now_s += OVERLAP_S + 1
        frames.append(position, b"%d " % position)
        frames.mark(position)
    assert [read(frames, after) for after in (10, 11, 12, 13, 99)] == [
        b"11 12 13 ",
        b"11 12 13 ",
        b"12 13 ",
        b"13 ",
        b"13 ",
    ]


def test_reader_also_gets_frames_of_the_seconds_before_its_position(frames, clock):
    """Such a frame may have a claim that another process saw only after its commit."""
    frames.restart(10)
    for position in (11, 12, 20):
        clock.now_s += OVERLAP_S - 1
        frames.append(position, b"%d " % position)
        frames.mark(position)
    assert read(frames, 15) == b"12 20 "


def test_position_without_changes_of_hosts_counts(frames, clock):
    frames.restart(10)
    clock.now_s += 10
    frames.append(11, b"11 ")
    frames.mark(11)
    clock.now_s += 1
    frames.mark(12)  # No host changed.
    clock.now_s += 100
    frames.append(13, b"13 ")
    frames.mark(13)
    assert read(frames, 12) == b"11 13 "


def test_reader_with_an_older_snapshot_than_the_buffer_must_reload(frames):
    frames.restart(10)
    assert (read(frames, 9), read(frames, 10)) == (reload(10), b"")
    for position in range(11, 60):
        frames.append(position, b"%100d" % position)
    assert read(frames, 20) == reload(59)
    assert read(frames, 59).split() == [b"%d" % position for position in range(50, 60)]


def test_reader_waits_until_the_fleet_was_read(frames):
    async def follow():
        early, late = frames.open(9, asyncio.Event()), frames.open(10, asyncio.Event())
        assert (early.read(), late.read()) == (b"", b"")
        frames.restart(10)
        frames.append(11, b"11 ")
        assert (early.read(), late.read()) == (reload(11), b"11 ")
        frames.append(12, b"12 ")
        assert (early.read(), late.read()) == (b"12 ", b"12 ")

    asyncio.run(follow())


def test_present_readers_get_the_order_to_reload_once_and_new_ones_do_not(frames):
    async def follow():
        frames.restart(10)
        frames.append(11, b"11 ")
        reader = frames.open(10, asyncio.Event())
        assert reader.read() == b"11 "
        frames.append(12, b"12 ")
        frames.restart(20, b"reload ")
        frames.append(21, b"21 ")
        assert (reader.read(), reader.read()) == (b"reload 21 ", b"")
        assert frames.open(20, asyncio.Event()).read() == b"21 "
        assert frames.open(11, asyncio.Event()).read() == reload(21)

    asyncio.run(follow())


def test_reader_behind_the_kept_frames_is_too_slow(frames):
    async def follow():
        frames.restart(10)
        reader = frames.open(10, asyncio.Event())
        assert reader.read() == b""
        for position in range(11, 40):
            frames.append(position, b"x" * 100)
        with pytest.raises(ReaderTooSlow):
            reader.read()

    asyncio.run(follow())


def test_one_frame_larger_than_the_buffer_is_kept(frames):
    async def follow():
        frames.restart(10)
        reader = frames.open(10, asyncio.Event())
        frames.append(11, b"x" * 5000)
        assert len(reader.read()) == 5000

    asyncio.run(follow())


def test_frames_wake_their_readers(frames):
    async def follow():
        frames.restart(10)
        awake = asyncio.Event()
        reader = frames.open(10, awake)
        await asyncio.to_thread(frames.append, 11, b"11 ")
        await asyncio.wait_for(awake.wait(), 10)
        assert (frames.reader_count, reader.read()) == (1, b"11 ")
        reader.leave()
        assert frames.reader_count == 0

    asyncio.run(follow())
