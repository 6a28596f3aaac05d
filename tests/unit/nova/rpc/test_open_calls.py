"""The calls in progress."""

import json
import math

import pytest

from roost.nova.rpc.envelope import decode
from roost.nova.rpc.open_calls import OpenCalls
from roost.nova.rpc.rpc_call import Call


class World:
    """Open calls with a clock."""

    def __init__(self):
        self.now_s, self.counts, self.wakes = 0.0, [], 0
        self.calls = OpenCalls(2, clock=lambda: self.now_s, note_count=self.counts.append, wake_receiver=self.wake)

    def wake(self):
        """Count."""
        self.wakes += 1

    def add(self, timeout=None):
        """Add a call."""
        inner = json.dumps({"method": "run", "_msg_id": "m", "_reply_q": "q", "_timeout": timeout})
        message = decode(json.dumps({"oslo.version": "2.0", "oslo.message": inner}).encode())
        call = Call(message, lambda *_: None)
        self.calls.add(call, received_s=self.now_s)
        return call


@pytest.fixture
def world():
    return World()


def test_sign_of_life_is_due_each_half_timeout(world):
    call, _ = world.add(60), world.add()
    assert world.calls.take_due() == []
    assert world.calls.until_due_s() == 30
    for now_s in (30, 60, 95):
        world.now_s = now_s
        assert world.calls.take_due() == [call]
        assert world.calls.take_due() == []
    assert world.calls.until_due_s() == 30
    world.calls.end(call)
    assert world.calls.until_due_s() == math.inf


def test_tiny_timeout_does_not_flood_the_broker(world):
    world.add(1e-9)
    assert world.calls.until_due_s() == 0.2


def test_slot_is_free_after_the_confirmation_of_the_reply(world):
    first, _ = world.add(), world.add()
    assert world.calls.is_full
    world.calls.end(first)
    assert world.calls.is_full
    world.calls.release_slot()
    assert not world.calls.is_full
    assert world.wakes == 1
    assert world.counts == [1, 2, 1]


def test_wait_ends_with_the_last_reply(world):
    assert world.calls.wait_until_idle(0) == 0
    world.calls.end(world.add())
    assert world.calls.wait_until_idle(0.01) == 1
    world.calls.release_slot()
    assert world.calls.wait_until_idle(0.01) == 0
