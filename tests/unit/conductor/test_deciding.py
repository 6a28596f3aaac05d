"""Builds whose decision loses its races, or whose UUID is in use."""

import pytest

from roost.errors import Conflict
from tests.support.conductors.builders import ladder
from tests.support.conductors.conductors import hand, served, server
from tests.support.fleets.named_uuids import uuid_named
from tests.support.fleets.worlds import wish

LOST = "the request lost 96 races against other processes; try again"


@pytest.fixture
def here():
    with server(None, ladder(2)) as here:
        here.hands = [hand(here, f"h{number}") for number in range(2)]
        yield here


def lose_races(here, monkeypatch, count):
    """Make the next decisions fail after too many lost races."""
    decide, losses = here.serving._decide, [Conflict(LOST)] * count
    monkeypatch.setattr(here.serving, "_decide", lambda acts: [losses.pop()] if losses else decide(acts))


def test_decision_with_too_many_lost_races_is_retried_after_a_second(here, monkeypatch):
    lose_races(here, monkeypatch, 2)
    here.build("one")
    for _ in range(2):
        here.turn()
        assert (here.status("one").status, here.status("one").task) == ("BUILD", "scheduling")
        assert here.turn() == 0
        here.clock.time_s += 1
    served(here, *here.hands)
    assert (here.status("one").status, here.status("one").fault) == ("ACTIVE", "")


def test_build_of_a_uuid_in_use_fails_and_keeps_the_other_allocations(here):
    here.build("one")
    here.run(lambda _current: here.roost.decide(wish(instance_uuids=(uuid_named("one"),), force_hosts=("h1",))))
    served(here, *here.hands)
    fault = f"the instance {uuid_named('one')} exists already"
    assert (here.status("one").status, here.status("one").fault) == ("ERROR", fault)
    assert here.held("one")[0] == "h1"
    assert here.open_operations() == []
