"""A bounded buffer of changes of the fleet, as parts of a stream of events, and its readers."""

import asyncio
import time
from bisect import bisect_left
from collections import deque
from collections.abc import Callable
from itertools import islice
from operator import attrgetter
from threading import Lock
from typing import NamedTuple

from roost.observe.event_buffer import Readers, ReaderTooSlow, join_batch

_FRAMES_MAX, _MARKS_MAX = 4096, 4096
# Seconds of earlier frames for a new reader. Another process may have counted a claim here before its commit, and
# commits of several processes may become visible out of order.
OVERLAP_S = 5.0


class _Frame(NamedTuple):
    position: int  # of the feed; the frame contains no later change
    at_s: float
    body: bytes


class _Mark(NamedTuple):
    position: int
    at_s: float


class FleetFrames:
    """The newest changes of the fleet, by position of the feed.

    One thread writes; all readers run on one event loop.

    Args:
        bytes_max: upper bound of kept bytes.
        on_open: called on the loop when a reader begins.
        clock: returns seconds of a monotonic clock.
    """

    def __init__(
        self,
        bytes_max: int,
        *,
        on_open: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._bytes_max, self._on_open, self._clock = bytes_max, on_open, clock
        self._lock = Lock()
        self._frames: deque[_Frame] = deque()  # the newest has the number ``_last``
        self._bytes = 0
        self._last = 0
        self._reload = 0  # number of the newest frame before which no reader continues
        self._floor: int | None = None  # position before the first kept frame; None: nothing was read yet
        self._marks: deque[_Mark] = deque(maxlen=_MARKS_MAX)  # when positions were first seen, rising
        self._readers: Readers[FleetReader] = Readers()

    @property
    def reader_count(self) -> int:
        """Number of readers."""
        return len(self._readers)

    def restart(self, position: int, frame: bytes = b"") -> None:
        """Drop all frames; present readers get the given one instead.

        Args:
            position: of the feed; readers with a snapshot of it can continue.
            frame: the order to load a snapshot; empty: for the first position.
        """
        with self._lock:
            self._frames.clear()
            self._marks.clear()
            self._bytes = 0
            self._floor = position
            self._marks.append(_Mark(position, self._clock()))
            if frame:
                self._add(_Frame(position, self._clock(), frame))
                self._reload = self._last
            self._readers.wake()

    def append(self, position: int, frame: bytes) -> None:
        """Add changes; the position as in ``mark``."""
        with self._lock:
            self._add(_Frame(position, self._clock(), frame))
            while len(self._frames) > 1 and (self._bytes > self._bytes_max or len(self._frames) > _FRAMES_MAX):
                dropped = self._frames.popleft()
                self._bytes -= len(dropped.body)
                self._floor = max(self._floor or 0, dropped.position)
            self._readers.wake()

    def mark(self, position: int) -> None:
        """Note a position of the feed; all changes up to it are in the frames."""
        with self._lock:
            if not self._marks or self._marks[-1].position < position:
                self._marks.append(_Mark(position, self._clock()))

    def open(self, after: int, awake: asyncio.Event) -> "FleetReader":
        """Return a new reader; call this on the event loop.

        Args:
            after: position of the client's snapshot.
            awake: set when there are frames.
        """
        reader = FleetReader(self, after=after, awake=awake)
        with self._lock:
            self._readers.add(reader)
        self._on_open()
        return reader

    def leave(self, reader: "FleetReader") -> None:
        """Remove a reader; call this on the event loop."""
        with self._lock:
            self._readers.discard(reader)

    def read(self, reader: "FleetReader") -> bytes:
        """Return some frames, and advance the reader.

        Raises:
            ReaderTooSlow: the next frame was dropped.
        """
        with self._lock:
            if reader.number is None:
                if self._floor is None:
                    return b""
                if self._floor > reader.after:
                    reader.number = self._last
                    return b'event: fleet\ndata: {"reload":true,"position":%d}\n\n' % self._newest_position()
                reader.number = self._find_start(reader.after)
            if reader.number < self._reload:
                reader.number = self._reload - 1
            at = len(self._frames) - (self._last - reader.number)
            if at < 0:
                raise ReaderTooSlow
            body, count = join_batch(frame.body for frame in islice(self._frames, at, None))
            reader.number += count
            return body

    def _newest_position(self) -> int:
        """Return the position of the newest frame or mark: a client with columns of it has missed nothing."""
        newest = self._marks[-1].position
        return max(newest, self._frames[-1].position) if self._frames else newest

    def _find_start(self, after: int) -> int:
        """Return the number of the frame before those for a client with a snapshot of a position."""
        oldest = max(self._last - len(self._frames), self._reload)
        if after <= self._marks[0].position:
            return oldest
        at = bisect_left(self._marks, after, key=attrgetter("position"))
        begun_s = (self._marks[at].at_s if at < len(self._marks) else self._clock()) - OVERLAP_S
        later = len(self._frames) - bisect_left(self._frames, begun_s, key=attrgetter("at_s"))
        return max(oldest, self._last - later)

    def _add(self, frame: _Frame) -> None:
        self._frames.append(frame)
        self._bytes += len(frame.body)
        self._last += 1


class FleetReader:
    """A reader of changes of the fleet.

    Args:
        frames: the buffer.
        after: position of the client's snapshot.
        awake: set when there are frames.
    """

    def __init__(self, frames: FleetFrames, *, after: int, awake: asyncio.Event) -> None:
        self._frames = frames
        self.after, self.awake = after, awake
        self.number: int | None = None  # of the last frame; None: it is not known yet where to begin

    def read(self) -> bytes:
        """Return some frames; empty if the reader has the newest one.

        Raises:
            ReaderTooSlow: the next frame was dropped.
        """
        return self._frames.read(self)

    def leave(self) -> None:
        """End; call this on the event loop."""
        self._frames.leave(self)
