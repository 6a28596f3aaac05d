"""The thread of snapshots: its differences lead from each snapshot to the newest one."""

import asyncio
import json
import threading
import time
from random import Random
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roost.api.v1.fleet import fleet_frames
from roost.app.monitoring import fleet_follower
from roost.app.monitoring.fleet_follower import FleetFollower
from roost.engine.columns.state import State
from roost.errors import Unavailable
from roost.model.settings.notification_settings import Notifications
from roost.model.settings.roost_settings import Settings
from roost.observe import log
from tests.support.fleets.changing_fleets import ChangingFleet
from tests.support.servers.fleet_files import FleetColumns
from tests.support.wait import wait_until


def follower_of(state, *, bytes_max=2**20):
    """Return a follower of columns, without a thread."""
    product = Settings(notifications=Notifications(buffer_max_bytes=bytes_max))
    serving = SimpleNamespace(state=state, store=SimpleNamespace(is_shared=False))
    return FleetFollower(serving, settings=lambda: product, down_time_s=lambda: 60.0)


@pytest.fixture
def opened():
    """Return a function that returns a follower, which ends with the test."""
    found = []

    def build(state):
        found.append(follower_of(state))
        return found[-1]

    yield build
    for each in found:
        each.close()


def columns_of(follower):
    return FleetColumns(follower._file.columns.read(is_compressed=False))


def read_frames(follower, after):
    """Return the data of all frames for a client with a snapshot of a position."""

    async def read():
        reader, found = follower.frames.open(after, asyncio.Event()), b""
        while part := reader.read():
            found += part
        return found

    follower.frames._on_open = lambda: None  # The test runs without a thread.
    blocks = asyncio.run(read()).decode().split("\n\n")[:-1]
    return [json.loads(block.removeprefix("event: fleet\ndata: ")) for block in blocks]


@pytest.mark.parametrize("act", ["make_quiet_change", "change"])
@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1), steps=st.lists(st.integers(0, 3), max_size=12), overlap_s=st.sampled_from([0, 5])
)
def test_frames_lead_from_every_snapshot_to_the_newest_one(act, seed, steps, overlap_s):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fleet_frames, "OVERLAP_S", overlap_s)
        patch.setattr(fleet_follower, "_RELOAD_S", 0.0)
        fleet = ChangingFleet(Random(seed))
        follower = follower_of(fleet.state)
        follower.follow()
        taken = [columns_of(follower)]
        for count in steps:
            for _ in range(count):
                getattr(fleet, act)()
            follower.follow()
            taken.append(columns_of(follower))
        newest = taken[-1]
        for snapshot in taken:
            frames = read_frames(follower, snapshot.head["position"])
            assert act == "change" or not any("reload" in frame for frame in frames)
            must_reload = [snapshot.apply(frame) for frame in frames]
            if not any(must_reload):
                assert snapshot.changing == newest.changing
                assert all(snapshot.columns[name] == newest.columns[name] for name in ("place", "rack", "kind"))
                assert all(snapshot.head[name] == newest.head[name] for name in ("places", "racks", "kinds"))


def test_change_of_many_hosts_is_an_order_to_reload(monkeypatch):
    monkeypatch.setattr(fleet_follower, "_CHANGED_MIN", 1)
    fleet = ChangingFleet(Random(5), providers=30)
    follower = follower_of(fleet.state)
    follower.follow()
    first = columns_of(follower)
    fleet.state.hosts.columns["num_instances"].data[:] += 1
    fleet.state.position += 1
    follower.follow()
    position = fleet.state.position
    assert read_frames(follower, first.head["position"]) == [{"reload": True, "position": fleet.state.position}]
    assert read_frames(follower, position) == []
    assert columns_of(follower).columns["instances"] != first.columns["instances"]


def test_orders_to_reload_have_a_distance(monkeypatch):
    monkeypatch.setattr(fleet_follower, "_CHANGED_MIN", 1)
    fleet = ChangingFleet(Random(5), providers=30)
    follower = follower_of(fleet.state)
    follower.follow()
    for _ in range(2):
        fleet.state.hosts.columns["num_instances"].data[:] += 1
        fleet.state.position += 1
        follower.follow()
    first, second = fleet.state.position - 1, fleet.state.position
    assert follower.frames._floor == first
    monkeypatch.setattr(fleet_follower, "_RELOAD_S", 0.0)
    fleet.state.position += 1
    follower.follow()
    assert follower.frames._floor == second + 1


def test_reloaded_columns_with_the_same_hosts_need_no_reload():
    fleet = ChangingFleet(Random(7))
    follower = follower_of(fleet.state)
    follower.follow()
    first = columns_of(follower)
    fleet.state = fleet.state.fork()
    fleet.make_quiet_change()
    follower._serving.state = fleet.state
    follower.follow()
    for frame in read_frames(follower, first.head["position"]):
        assert not first.apply(frame)
    assert first.changing == columns_of(follower).changing


def test_earlier_position_of_the_feed_is_an_order_to_reload():
    """The database was restored from a backup."""
    fleet = ChangingFleet(Random(7))
    fleet.state.position = 50
    follower = follower_of(fleet.state)
    follower.follow()
    fleet.state.position = 20
    follower.follow()
    assert follower.frames._floor == 20


def test_refused_claim_is_corrected_although_the_position_stays(monkeypatch):
    fleet = ChangingFleet(Random(7))
    follower = follower_of(fleet.state)
    follower.follow()
    fleet.state.hosts.columns["num_instances"].data[:] += 1
    follower.follow()
    assert read_frames(follower, 0) == []
    monkeypatch.setattr(fleet_follower, "_QUIET_S", 0.0)
    follower.follow()
    assert len(read_frames(follower, 0)) == 1


def test_thread_runs_only_while_somebody_watches(opened, monkeypatch):
    monkeypatch.setattr(fleet_follower, "_IDLE_S", 0.1)
    monkeypatch.setattr(fleet_follower, "_INTERVAL_S", 0.01)
    fleet = ChangingFleet(Random(7))
    follower = opened(fleet.state)
    assert follower._thread is None

    async def request():
        return await follower.newest()

    assert asyncio.run(request()).position == 0
    wait_until(lambda: not follower._is_demanded.is_set())
    fleet.make_quiet_change()
    time.sleep(0.1)
    assert follower._file.position == 0  # It waits.

    async def follow():
        reader = follower.frames.open(0, awake := asyncio.Event())
        await asyncio.wait_for(awake.wait(), 10)
        await asyncio.sleep(0.5)
        assert follower._is_demanded.is_set()  # A reader is enough.
        reader.leave()

    monkeypatch.setattr(fleet_follower, "_QUIET_S", 0.0)
    fleet.state.hosts.columns["num_instances"].data[:] += 1
    asyncio.run(follow())
    wait_until(lambda: not follower._is_demanded.is_set())


def test_expensive_snapshots_are_repeated_less_often(opened, monkeypatch):
    monkeypatch.setattr(fleet_follower, "_INTERVAL_S", 0.001)
    times = []

    def follow():
        times.append(time.monotonic())
        end_s = time.thread_time() + 0.03
        while time.thread_time() < end_s:
            pass
        follower._confirmed_s = time.monotonic()

    follower = opened(State())
    follower.follow = follow
    follower._demand()
    wait_until(lambda: len(times) == 3)
    assert times[2] - times[0] >= 2 * 0.3


def test_snapshot_that_always_fails_is_logged_once_and_requests_are_refused(opened, monkeypatch):
    monkeypatch.setattr(fleet_follower, "_WAIT_S", 0.5)
    monkeypatch.setattr(fleet_follower, "_RETRY_S", 0.01)
    monkeypatch.setattr(fleet_follower, "_INTERVAL_S", 0.01)
    received, calls = [], []

    def fail():
        calls.append(1)
        raise IndexError("the columns shrank")

    follower = opened(State())
    follower.follow = fail
    with log.redirect_events(received.append):

        async def request():
            with pytest.raises(Unavailable, match="cannot be read"):
                await follower.newest()

        asyncio.run(request())
    assert len(calls) > 3
    assert [each["request_id"] for each in received] == ["fleet"]


def test_stop_fails_waiting_requests(opened):
    follower = opened(State())
    begun, release = threading.Event(), threading.Event()

    def hang():
        begun.set()
        release.wait(30)

    follower.follow = hang

    async def request():
        asking = asyncio.ensure_future(follower.newest())
        await asyncio.to_thread(begun.wait, 10)
        follower.stop()
        with pytest.raises(Unavailable):
            await asking

    asyncio.run(request())
    release.set()


def test_failed_requests_are_forgotten(opened, monkeypatch):
    monkeypatch.setattr(fleet_follower, "_WAIT_S", 0.01)
    follower, release = opened(State()), threading.Event()
    follower.follow = lambda: release.wait(30)

    async def request():
        for _ in range(3):
            with pytest.raises(Unavailable):
                await follower.newest()

    asyncio.run(request())
    assert follower._waiting == []
    release.set()


def test_request_after_the_stop_fails_at_once(opened):
    follower = opened(State())
    follower.stop()

    async def request():
        async with asyncio.timeout(5):
            with pytest.raises(Unavailable):
                await follower.newest()

    asyncio.run(request())
