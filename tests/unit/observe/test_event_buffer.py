import asyncio

import pytest

from roost.errors import Unavailable
from roost.model.settings.notification_settings import Notifications
from roost.model.work.notification import ChangeEvent
from roost.observe.event_buffer import Events, Readers


def test_subscriber_limits_hold_per_identity_and_in_total():
    async def follow():
        events = Events(Notifications(subscribers_max=4, subscribers_each_max=2), run="test")
        first, _ = events.open("", owner="joe"), events.open("", owner="joe")
        with pytest.raises(Unavailable, match="subscribers_each_max"):
            events.open("", owner="joe")
        events.open("", owner="ann")
        events.open("", owner="ann")
        events.leave(first)
        events.open("", owner="joe")
        with pytest.raises(Unavailable, match="subscribers_max"):
            events.open("", owner="eve")

    asyncio.run(follow())


class Sleeper:
    """A reader that waits."""

    def __init__(self):
        self.awake = asyncio.Event()


def test_readers_wake_once_for_content_in_quick_succession():
    async def fill(times):
        readers, sleeper, wake_ups = Readers(), Sleeper(), 0
        readers.add(sleeper)
        for _ in range(times):
            readers.wake()
            await asyncio.sleep(0)
            wake_ups += sleeper.awake.is_set()
            sleeper.awake.clear()
        readers.wake()
        async with asyncio.timeout(30):
            await sleeper.awake.wait()  # The last content wakes it too.
        return wake_ups

    assert 1 <= asyncio.run(fill(2_000)) < 1_000


def test_readers_wake_in_turns():
    async def wake(count):
        readers, sleepers = Readers(), [Sleeper() for _ in range(count)]
        for sleeper in sleepers:
            readers.add(sleeper)
        readers.wake()
        await asyncio.sleep(0)
        first = sum(sleeper.awake.is_set() for sleeper in sleepers)
        async with asyncio.timeout(30):
            for sleeper in sleepers:
                await sleeper.awake.wait()
        return first

    assert asyncio.run(wake(20)) == 1
    assert asyncio.run(wake(200)) == 4


def test_reader_that_wakes_for_nothing_goes_on_waiting():
    async def follow():
        events = Events(Notifications(), run="test")
        reader = events.open("")
        waiting = asyncio.ensure_future(reader.next())
        await asyncio.sleep(0)
        reader.awake.set()
        await asyncio.sleep(0.02)
        assert not waiting.done()
        change = ChangeEvent(number=1, object="h0", user_id="", project_id="", request_id="")
        events.publish("host.update", change, time_s=1.0)
        return await waiting

    assert b"host.update" in asyncio.run(follow())


def test_end_of_the_buffer_ends_a_waiting_reader():
    async def follow():
        events = Events(Notifications(), run="test")
        waiting = asyncio.ensure_future(events.open("").next())
        await asyncio.sleep(0)
        events.close()
        return await waiting

    assert asyncio.run(follow()) is None
