import asyncio

import pytest

from roost.errors import Unavailable
from roost.model.settings.notification_settings import Notifications
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


def test_readers_wake_once_for_content_in_quick_succession():
    class Sleeper:
        def __init__(self):
            self.awake = asyncio.Event()

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
