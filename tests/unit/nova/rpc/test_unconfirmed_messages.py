import pytest

from roost.nova.rpc.broker_link import BrokerGone
from roost.nova.rpc.unconfirmed_messages import UnconfirmedMessages


class Channel:
    """A channel with confirmations."""

    def __init__(self):
        self.events = {"basic_ack": set(), "basic_nack": set()}
        self.is_confirming = False

    def confirm_select(self):
        """Begin to confirm messages."""
        self.is_confirming = True


@pytest.fixture
def clock():
    return [0.0]


@pytest.fixture
def unconfirmed(clock):
    found = UnconfirmedMessages("reply", max_count=3, confirm_s=5.0, clock=lambda: clock[0])
    channel = Channel()
    found.begin(channel, on_confirm=print, on_refuse=len)
    assert channel.is_confirming
    assert channel.events == {"basic_ack": {print}, "basic_nack": {len}}
    return found


def test_confirmation_is_of_one_message_or_of_all_before_it(unconfirmed):
    for message in "abc":
        assert not unconfirmed.is_full
        unconfirmed.add(message)
    assert unconfirmed.is_full
    assert unconfirmed.take(2, is_multiple=False) == ["b"]
    assert unconfirmed.take(2, is_multiple=False) == []
    assert unconfirmed.take(3, is_multiple=True) == ["a", "c"]
    assert len(unconfirmed) == 0


def test_messages_of_a_lost_channel_stay_in_order(unconfirmed):
    for message in "ab":
        unconfirmed.add(message)
    assert unconfirmed.messages == ["a", "b"]
    assert unconfirmed.take_all() == ["a", "b"]
    assert unconfirmed.take_all() == []
    unconfirmed.begin(Channel(), on_confirm=print, on_refuse=len)
    unconfirmed.add("c")
    assert unconfirmed.take(1, is_multiple=False) == ["c"]


def test_broker_without_confirmations_is_gone_unless_it_blocks(unconfirmed, clock):
    clock[0] = 9.0
    unconfirmed.check(is_blocked=False)
    unconfirmed.add("a")
    clock[0] = 14.0
    unconfirmed.check(is_blocked=False)
    clock[0] = 15.0
    with pytest.raises(BrokerGone, match="the broker has confirmed no reply for 5 s"):
        unconfirmed.check(is_blocked=False)
    unconfirmed.check(is_blocked=True)
    clock[0] = 19.0
    unconfirmed.check(is_blocked=False)
    unconfirmed.add("b")
    unconfirmed.take(1, is_multiple=False)
    clock[0] = 24.0
    unconfirmed.check(is_blocked=False)
