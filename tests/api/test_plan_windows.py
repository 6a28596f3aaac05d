"""A plan with a window of time, from the request to its end: it waits, and its moves begin when the window opens."""

import pytest

from tests.support.conductors.conductors import server
from tests.support.conductors.move_servers import advance_clock, movers, run_agents_until_idle
from tests.support.fleets.named_uuids import uuid_named
from tests.support.fleets.worlds import hosts
from tests.support.servers.in_process_api import RoostApi

MOVE = {"number": 1, "instance_uuid": uuid_named("one"), "source": "h0", "target": "h1"}


@pytest.fixture
def app():
    """Return a server with an instance on h0, and its API."""
    with server(None, hosts(2, VCPU=4, MEMORY_MB=64)) as app:
        app.hands = movers(app, ("h0", "h1"))
        app.build("one", force_hosts=("h0",))
        run_agents_until_idle(app, app.hands)
        app.api = RoostApi(app.roost, app.serving, clock=app.clock)
        yield app
        app.api.agents.close()


def apply(app, *windows, **more):
    """Request to apply a plan; return the response."""
    return app.api.post("/plans/apply", {"moves": [MOVE], "windows": list(windows), **more})


def test_plan_waits_for_its_window_and_begins_when_it_opens(app):
    accepted = apply(app, "00:30-01:00", "sun@03:00-04:00")
    assert accepted.status == 202, accepted.json
    path = f"/operations/{accepted.json['operation']}"
    for _ in range(3):
        app.turn()
        run_agents_until_idle(app, app.hands)
        advance_clock(app, app.hands, 60.0)
    waiting = app.api.get(path).json
    assert (waiting["outcome"], waiting["plan"]["windows"]) == ("open", ["00:30-01:00", "sun@03:00-04:00"])
    assert (waiting["plan"]["opens_at_s"], waiting["plan"]["moves"][0]["state"]) == (1800.0, "waiting")
    app.clock.time_s = 1800.0
    for _ in range(5):
        app.turn()
        run_agents_until_idle(app, app.hands)
        advance_clock(app, app.hands, 1.0)
    done = app.api.get(path).json
    assert (done["outcome"], done["plan"]["opens_at_s"], app.status("one").host) == ("done", 0.0, "h1")


def test_same_request_with_other_windows_is_another_request(app):
    key = {"idempotency-key": "k"}
    body = {"moves": [MOVE], "windows": ["12:00-13:00"]}
    first, again = (app.api.ask("POST", "/plans/apply", body, headers=key) for _ in range(2))
    assert (first.status, again.json) == (202, first.json)
    assert app.api.ask("POST", "/plans/apply", {"moves": [MOVE]}, headers=key).status == 422


@pytest.mark.parametrize(
    ("windows", "problem"),
    [
        (["22-6"], "the window '22-6' must have the form HH:MM-HH:MM or sat,sun@HH:MM-HH:MM"),
        (["12:00-12:00"], "the window '12:00-12:00' is empty: it begins and ends at the same time"),
        (["12:00-13:00"] * 21, "$.windows: Expected array of length <= 20"),
    ],
)
@pytest.mark.parametrize("is_dry", [False, True])
def test_wrong_windows_change_nothing(app, windows, problem, is_dry):
    refused = apply(app, *windows, dry_run=is_dry)
    assert (refused.status, refused.json["detail"]) == (400, problem)
    assert app.open_operations() == []
