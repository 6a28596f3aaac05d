"""A bounded buffer of recent events, and its readers, each at its own position."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import islice
from threading import Lock
from typing import Generic, Protocol, TypeVar

import msgspec

from roost.errors import Unavailable
from roost.model.settings.notification_settings import Notifications
from roost.model.work.notification import VERSION, ChangeEvent, HostSelection, Notification, StoryEvent
from roost.observe import metrics

# Bytes of events passed to a connection at once; further events stay in the bounded buffer.
_BATCH_BYTES = 64 * 2**10
# Readers wake one after the other, since each costs some time of the event loop. A round has at least five turns, so a
# reader wakes every 50 ms at most; further readers make a round longer, up to half a second.
_TURN_S, _TURNS_MIN, _TURNS_MAX = 0.01, 5, 50


class ReaderTooSlow(Exception):
    """A reader is so far behind that its next event was dropped."""


class Waiting(Protocol):
    """A reader that waits on the event loop."""

    awake: asyncio.Event


AnyReader = TypeVar("AnyReader", bound=Waiting)


class Readers(Generic[AnyReader]):
    """The readers of a buffer, all on one event loop; the thread that fills the buffer wakes them.

    Call all methods but ``wake_now`` under the lock of the buffer.
    """

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._readers: set[AnyReader] = set()
        self._is_woken = False
        self._round_end_s = 0.0  # on the clock of the loop

    def __len__(self) -> int:
        return len(self._readers)

    def __iter__(self) -> Iterator[AnyReader]:
        return iter(self._readers)

    def add(self, reader: AnyReader) -> None:
        """Add a reader; call this on the event loop."""
        self._loop = asyncio.get_running_loop()
        self._readers.add(reader)

    def discard(self, reader: AnyReader) -> None:
        """Remove a reader; call this on the event loop."""
        self._readers.discard(reader)

    def wake(self) -> None:
        """Schedule a wake-up of the readers; it serves everything that the buffer gets before it runs."""
        if self._readers and not self._is_woken and self._loop is not None:
            self._is_woken = True
            with suppress(RuntimeError):  # The loop and its readers have ended.
                self._loop.call_soon_threadsafe(self._wake_soon)

    def _wake_soon(self) -> None:
        """Begin a round now, or as soon as the present one is over."""
        assert self._loop is not None
        wait_s = self._round_end_s - self._loop.time()
        if wait_s > 0:
            self._loop.call_later(wait_s, self._begin_round)
        else:
            self._begin_round()

    def _begin_round(self) -> None:
        """Wake the readers in turns."""
        assert self._loop is not None
        # Cleared first, so that later content leads to a further round.
        self._is_woken = False
        sleeping = list(self._readers)
        turns = min(max(len(sleeping), _TURNS_MIN), _TURNS_MAX)
        self._round_end_s = self._loop.time() + turns * _TURN_S
        self._take_turn(sleeping, -(-len(sleeping) // turns))

    def _take_turn(self, sleeping: list[AnyReader], count: int) -> None:
        for reader in sleeping[:count]:
            reader.awake.set()
        if len(sleeping) > count and self._loop is not None:
            self._loop.call_later(_TURN_S, self._take_turn, sleeping[count:], count)

    def wake_now(self) -> None:
        """Wake all readers; call this on the event loop."""
        for reader in self._readers:
            reader.awake.set()


def join_batch(frames: Iterable[bytes]) -> tuple[bytes, int]:
    """Return the first frames for one passage to a connection, and their number."""
    batch, size = [], 0
    for frame in frames:
        batch.append(frame)
        size += len(frame)
        if size >= _BATCH_BYTES:
            break
    return b"".join(batch), len(batch)


class Source(Protocol):
    """Further parts of a stream. It sets ``Reader.awake`` if it has some."""

    def read(self) -> bytes:
        """Return some parts, encoded; empty if it has none now."""

    def leave(self) -> None:
        """End; called on the event loop."""


class Events:
    """The newest events of this process.

    Any thread may publish; all readers run on one event loop.

    Args:
        limits: bounds of buffered events and of readers.
        run: prefix of event ids, without a hyphen; unique for each start of a process.
        publisher: machine and process of the decisions and stories.
        sink: also receives the JSON of each event; must not block.
    """

    def __init__(
        self, limits: Notifications, *, run: str, publisher: str = "", sink: Callable[[bytes], None] | None = None
    ) -> None:
        self.limits = limits
        self._run, self._publisher, self._sink = run, publisher, sink
        self._lock = Lock()
        self._frames: deque[bytes] = deque()  # encoded events; the newest has the number ``_last``
        self._frame_bytes = 0
        self._last = 0
        self._readers: Readers[Reader] = Readers()
        self.is_closed = False

    def publish(
        self, event_type: str, payload: HostSelection | StoryEvent | ChangeEvent, *, time_s: float, is_sent: bool = True
    ) -> str:
        """Add an event; return its id.

        Args:
            is_sent: whether the sink also receives it.
        """
        with self._lock:
            number = self._last + 1
            event = Notification(
                id=f"{self._run}-{number}",
                event_type=event_type,
                version=VERSION,
                publisher=self._publisher,
                time_s=time_s,
                payload=payload,
            )
            body = msgspec.json.encode(event)
            frame = f"id: {event.id}\nevent: {event_type}\ndata: ".encode() + body + b"\n\n"
            self._frames.append(frame)
            self._frame_bytes += len(frame)
            self._last = number
            while self._frame_bytes > self.limits.buffer_max_bytes and len(self._frames) > 1:
                self._frame_bytes -= len(self._frames.popleft())
            self._readers.wake()
        if is_sent and self._sink is not None:
            self._sink(body)
        return event.id

    def open(self, last_id: str, *, owner: str = "") -> "Reader":
        """Return a new reader; call this on the event loop.

        Args:
            last_id: id of the last event that the client received; empty: start with the next event.
            owner: identity of the client; the number of its readers is bounded.

        Raises:
            Unavailable: there are too many readers, or the server is stopping.
        """
        if self.is_closed:
            raise Unavailable("the server is stopping; try again")
        if len(self._readers) >= self.limits.subscribers_max:
            text = f"{self.limits.subscribers_max:,} readers follow the events (limit notifications.subscribers_max)"
            raise Unavailable(f"{text}; try again")
        if sum(reader.owner == owner for reader in self._readers) >= self.limits.subscribers_each_max:
            text = f"{self.limits.subscribers_each_max:,} readers of this identity follow the events"
            raise Unavailable(f"{text} (limit notifications.subscribers_each_max); end one of them")
        with self._lock:
            reader = self._create_reader(last_id)
            reader.owner = owner
            self._readers.add(reader)
        metrics.EVENT_READERS.set(len(self._readers))
        return reader

    def leave(self, reader: "Reader") -> None:
        """Remove a reader; call this on the event loop."""
        with self._lock:
            self._readers.discard(reader)
        if reader.source is not None:
            reader.source.leave()
        metrics.EVENT_READERS.set(len(self._readers))

    def close(self) -> None:
        """End all readers; call this on the event loop."""
        self.is_closed = True
        self._readers.wake_now()

    def read_after(self, number: int) -> tuple[bytes, int]:
        """Return some encoded events after a number, and the number of the last of them.

        Raises:
            ReaderTooSlow: the next event was dropped.
        """
        with self._lock:
            at = len(self._frames) - (self._last - number)
            if at < 0:
                raise ReaderTooSlow
            body, count = join_batch(islice(self._frames, at, None))
            return body, number + count

    def _create_reader(self, last_id: str) -> "Reader":
        if not last_id:
            return Reader(self, after=self._last, has_gap=False)
        run, _, text = last_id.rpartition("-")
        oldest = self._last - len(self._frames)
        is_own = run == self._run and text.isascii() and text.isdecimal() and len(text) < 20
        if is_own and oldest <= int(text) <= self._last:
            return Reader(self, after=int(text), has_gap=False)
        return Reader(self, after=oldest, has_gap=True)


class Reader:
    """A reader of the events.

    Args:
        events: the buffer.
        after: number of the last received event.
        has_gap: whether events after that one were dropped.
    """

    def __init__(self, events: Events, *, after: int, has_gap: bool) -> None:
        self._events = events
        self._after = after
        self.has_gap = has_gap
        self.owner = ""
        self.awake = asyncio.Event()
        self.source: Source | None = None

    def join(self, source: Source) -> None:
        """Also read the parts of another source, after the events."""
        self.source = source

    async def next(self) -> bytes | None:
        """Wait for events and return some of them, encoded; empty after a pause without events, None at the end.

        Raises:
            ReaderTooSlow: the next event was dropped.
        """
        self.awake.clear()
        frames = self._read()
        # What wakes a reader may have been read before.
        with suppress(TimeoutError):
            async with asyncio.timeout(self._events.limits.heartbeat_s):
                while not frames and not self._events.is_closed:
                    await self.awake.wait()
                    self.awake.clear()
                    frames = self._read()
        return None if not frames and self._events.is_closed else frames

    def _read(self) -> bytes:
        frames, self._after = self._events.read_after(self._after)
        return frames if self.source is None else frames + self.source.read()
