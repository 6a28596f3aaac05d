"""Builds whose decision loses its races, or whose UUID is in use."""

import pytest

from roost.errors import Conflict
from tests.support.conductors.builders import ladder
from tests.support.conductors.conductors import played_agent, run_until_idle, server
from tests.support.fleets.named_uuids import uuid_named
from tests.support.fleets.worlds import small_request

LOST = "the request lost 96 races against other processes; try again"


@pytest.fixture
def app():
    with server(None, ladder(2)) as app:
        app.hands = [played_agent(app, f"h{number}") for number in range(2)]
        yield app


def lose_races(app, monkeypatch, count):
    """Make the next decisions fail after too many lost races."""
    decide, losses = app.serving._decide, [Conflict(LOST)] * count
    monkeypatch.setattr(app.serving, "_decide", lambda acts: [losses.pop()] if losses else decide(acts))


def test_decision_with_too_many_lost_races_is_retried_after_a_second(app, monkeypatch):
    lose_races(app, monkeypatch, 2)
    app.build("one")
    for _ in range(2):
        app.turn()
        assert (app.status("one").status, app.status("one").task) == ("BUILD", "scheduling")
        assert app.turn() == 0
        app.clock.time_s += 1
    run_until_idle(app, *app.hands)
    assert (app.status("one").status, app.status("one").fault) == ("ACTIVE", "")


def test_build_of_a_uuid_in_use_fails_and_keeps_the_other_allocations(app):
    app.build("one")
    app.run(lambda _current: app.roost.decide(small_request(instance_uuids=(uuid_named("one"),), force_hosts=("h1",))))
    run_until_idle(app, *app.hands)
    fault = f"the instance {uuid_named('one')} exists already"
    assert (app.status("one").status, app.status("one").fault) == ("ERROR", fault)
    assert app.held("one")[0] == "h1"
    assert app.open_operations() == []
