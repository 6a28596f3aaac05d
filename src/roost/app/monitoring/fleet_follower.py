"""Snapshots of the fleet and their differences, for the readers of ``/v1/fleet`` and of the stream of events.

A thread beside the deciding one reads the columns without a lock, as the surveys do, while clients need snapshots. Its
share of a processor is bounded: an expensive snapshot is repeated less often.
"""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from threading import Event, Lock, Thread

import msgspec

from roost.api.v1.fleet.fleet_file import FleetFile
from roost.api.v1.fleet.fleet_frames import FleetFrames
from roost.app.monitoring.host_zones import zone_finder
from roost.app.monitoring.open_drains import OpenDrains
from roost.engine.columns.state import State
from roost.engine.survey.fleet_snapshot import FleetSnapshot, SnapshotReader
from roost.errors import RoostError, Unavailable
from roost.model.settings.roost_settings import Settings
from roost.observe import log
from roost.placement.current import Current
from roost.placement.deciding_thread import Serving

# Seconds between snapshots after changes, and without changes of the feed.
_INTERVAL_S, _QUIET_S = 0.2, 1.0
_SHARE_MAX = 0.1  # of one processor
# Seconds after the last request of a snapshot until the thread rests, and between two readings at rest.
_IDLE_S, _REST_S = 60.0, 30.0
# More changed hosts than both are not sent: a new snapshot is shorter.
_CHANGED_MIN, _CHANGED_SHARE = 1_000, 0.05
# Seconds between two orders to load a snapshot.
_RELOAD_S = 2.0
# Maximum wait of a request for a snapshot, and seconds until the next attempt after a failure.
_WAIT_S, _RETRY_S = 20.0, 1.0
_REFRESH_S = 0.1  # for the deciding thread to read the commits of other processes
# Consecutive snapshots that a change of the columns may disturb before the error is logged.
_DISTURBED_MAX = 3
_PAUSE_S = 0.0005
_STOP_S = 1.0
_PROBLEM = "the fleet cannot be read now; try again"


class FleetFollower:
    """Snapshots of the fleet, as files, and their differences.

    The thread begins with the first request, or with ``start``. While it has neither readers nor requests it reads
    rarely, so that the next request finds the steady parts of a large fleet.

    Args:
        serving: owner of the columns.
        settings: the current settings.
        down_time_s: seconds of silence until a host is down.
        drains: the drains under way; None if this process knows no drains.
    """

    def __init__(
        self,
        serving: Serving,
        *,
        settings: Callable[[], Settings],
        down_time_s: Callable[[], float],
        drains: OpenDrains | None = None,
    ) -> None:
        self._serving, self._settings, self._down_time_s, self._drains = serving, settings, down_time_s, drains
        self.frames = FleetFrames(settings().notifications.buffer_max_bytes, on_open=self._demand)
        self._reader = SnapshotReader()
        self._read: FleetSnapshot | None = None  # the newest one
        self._sent: FleetSnapshot | None = None  # the one that the frames lead to
        self._state: State | None = None  # the columns of the newest one
        self._read_s = self._confirmed_s = self._reloaded_s = -1e9
        self._file: FleetFile | None = None
        self._refreshing: Future[None] | None = None
        self._lock = Lock()
        self._demanded_s = -1e9
        self._is_demanded, self._is_stopped = Event(), Event()
        self._waiting: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []
        self._thread: Thread | None = None

    @property
    def snapshot(self) -> FleetSnapshot | None:
        """The newest snapshot; None: none was read yet."""
        return self._read

    async def newest(self, *, is_fresh: bool = False) -> FleetFile:
        """Return the newest snapshot; call this on the event loop.

        Args:
            is_fresh: whether to wait for the end of the present or the next reading.

        Raises:
            Unavailable: it takes too long, or the server is stopping.
        """
        done = asyncio.Event()
        waiter = asyncio.get_running_loop(), done
        with self._lock:
            if self._is_stopped.is_set():  # Nothing would end the wait.
                raise Unavailable(_PROBLEM)
            is_recent = time.monotonic() - self._confirmed_s < _QUIET_S
            if self._file is not None and is_recent and not is_fresh:
                self._demanded_s = time.monotonic()
                return self._file
            self._waiting.append(waiter)
        self._demand()
        try:
            with suppress(TimeoutError):
                await asyncio.wait_for(done.wait(), _WAIT_S)
        finally:
            with self._lock, suppress(ValueError):  # A reading has ended, so it waits no more.
                self._waiting.remove(waiter)
        if not done.is_set() or self._file is None or self._is_stopped.is_set():
            raise Unavailable(_PROBLEM)
        return self._file

    def start(self) -> None:
        """Begin to read, so that the first request need not wait for the first reading."""
        self._demand()

    def stop(self) -> None:
        """Let the thread end, and fail the waiting requests."""
        self._is_stopped.set()
        self._is_demanded.set()
        self._confirm()

    def close(self) -> None:
        """Stop, and wait for the thread, a second at most."""
        self.stop()
        if self._thread is not None:
            self._thread.join(_STOP_S)
        if self._drains is not None and (self._thread is None or not self._thread.is_alive()):
            self._drains.close()

    def _demand(self) -> None:
        """Begin to read, if the thread waits."""
        with self._lock:
            self._demanded_s = time.monotonic()
            self._is_demanded.set()
            if self._thread is None and not self._is_stopped.is_set():
                self._thread = Thread(target=self._work, name="fleet", daemon=True)
                self._thread.start()

    def _work(self) -> None:
        disturbed = 0
        while not self._is_stopped.is_set():
            if not self.frames.reader_count and time.monotonic() - self._demanded_s > _IDLE_S:
                self._is_demanded.clear()
                if not self.frames.reader_count and time.monotonic() - self._demanded_s > _IDLE_S:
                    self._is_demanded.wait(_REST_S)
            if self._is_stopped.is_set():
                break
            begun_s, cpu_s = time.monotonic(), time.thread_time()
            try:
                self.follow()
            except Exception as error:  # noqa: BLE001  # the thread must keep running
                # The columns may grow or shrink meanwhile; the next attempt sees all of it.
                is_race = isinstance(error, RuntimeError | LookupError | ValueError)
                disturbed = disturbed + 1 if is_race else _DISTURBED_MAX
                if disturbed == _DISTURBED_MAX:
                    log.fault("fleet", error)
                self._is_stopped.wait(_RETRY_S if disturbed >= _DISTURBED_MAX else _INTERVAL_S)
                continue
            disturbed = 0
            interval_s = max(_INTERVAL_S, (time.thread_time() - cpu_s) / _SHARE_MAX)
            self._is_stopped.wait(max(0.0, begun_s + interval_s - time.monotonic()))

    def follow(self) -> None:
        """Read the fleet if it may have changed, and publish the changes; for the thread, and for tests."""
        self._refresh()
        begun_s, state = time.monotonic(), self._serving.state
        is_same = self._read is not None and self._state is state and self._read.position == state.position
        if not is_same or begun_s - self._read_s >= _QUIET_S:
            settings = self._settings()
            snapshot = self._reader.read(
                state,
                now_s=time.time(),
                down_time_s=self._down_time_s(),
                zone_of=zone_finder(state, default_zone=settings.default.default_availability_zone),
                pause=lambda: time.sleep(_PAUSE_S),
                draining=() if self._drains is None else self._drains.read(),
            )
            self._read, self._read_s, self._state = snapshot, begun_s, state
            self._publish(snapshot)
        self._confirmed_s = begun_s
        self._confirm()

    def _confirm(self) -> None:
        """Wake the waiting requests."""
        with self._lock:
            waiting, self._waiting = self._waiting, []
        for loop, done in waiting:
            with suppress(RuntimeError):  # The loop has ended.
                loop.call_soon_threadsafe(done.set)

    def _publish(self, snapshot: FleetSnapshot) -> None:
        self._file = FleetFile(snapshot, self._file)
        sent = self._sent
        if sent is None:
            self.frames.restart(snapshot.position)
            self._sent = snapshot
            return
        generation, position = snapshot.layout.generation, snapshot.last_position
        if position >= sent.position and snapshot.layout.equals(sent.layout):
            changed = snapshot.find_changed(sent)
            if len(changed) <= max(_CHANGED_MIN, _CHANGED_SHARE * len(snapshot)):
                if changed:
                    hosts = snapshot.list_hosts(changed)
                    body = {"generation": generation, "position": position, "hosts": hosts}
                    self.frames.append(position, _frame(body))
                self.frames.mark(position)
                self._sent = snapshot
                return
        if time.monotonic() - self._reloaded_s < _RELOAD_S:
            return  # Later changes are compared with the same snapshot.
        order = {"reload": True, "generation": generation, "position": position}
        self.frames.restart(snapshot.position, _frame(order))
        self._reloaded_s, self._sent = time.monotonic(), snapshot

    def _refresh(self) -> None:
        """Let the deciding thread read the commits of other processes, if there may be any; wait a moment for it."""
        if not self._serving.store.is_shared:
            return
        if self._refreshing is None or self._refreshing.done():
            outcome: Future[None] = Future()
            with suppress(Unavailable):  # The queue is full, so the thread reads them anyway.
                self._serving.submit(_do_nothing, outcome)
                self._refreshing = outcome
        if self._refreshing is not None:
            with suppress(RoostError, TimeoutError):
                self._refreshing.result(_REFRESH_S)


def _do_nothing(_current: Current) -> None:
    """Read nothing: the columns are refreshed before each group of tasks."""


def _frame(body: object) -> bytes:
    return b"event: fleet\ndata: " + msgspec.json.encode(body) + b"\n\n"
