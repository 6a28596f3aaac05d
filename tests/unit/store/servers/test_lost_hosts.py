"""Hosts that do not answer are tried last for some seconds."""

import pytest

from roost.store.servers.lost_hosts import Losses, SilentHosts

HOSTS = ["one", "two", "three"]


@pytest.fixture
def clock():
    return [100.0]


@pytest.fixture
def silent(clock):
    return SilentHosts(clock=lambda: clock[0])


def order(silent):
    return silent.order(HOSTS, address=str)


def test_silent_hosts_are_last_in_their_order(silent):
    assert order(silent) == HOSTS
    silent.note("one")
    assert order(silent) == ["two", "three", "one"]
    silent.note("two")
    assert order(silent) == ["three", "one", "two"]
    silent.note("three")
    assert order(silent) == HOSTS


def test_host_is_in_its_place_after_an_answer_or_half_a_minute(silent, clock):
    silent.note("one")
    silent.forget("one")
    silent.forget("two")
    assert order(silent) == HOSTS
    silent.note("one")
    clock[0] += 29.9
    assert order(silent)[-1] == "one"
    clock[0] += 0.2
    assert order(silent) == HOSTS


def test_loss_concerns_connections_opened_before_it():
    losses = Losses()
    assert not losses.has_any_since(0.0)
    losses.note()
    assert losses.has_any_since(0.0)
    assert not losses.has_any_since(float("inf"))
