import asyncio

import pytest

from roost.errors import Unavailable
from roost.model.settings.notification_settings import Notifications
from roost.observe.event_buffer import Events


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
