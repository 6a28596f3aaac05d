"""Plans over HTTP at the end of their time budget: an answer without an error, and with the fact."""

import pytest

from roost.api.http import Request
from tests.support.conductors.conductors import server
from tests.support.conductors.move_servers import movers, run_agents_until_idle
from tests.support.fleets.worlds import hosts
from tests.support.servers.in_process_api import RoostApi

LARGE = {"flavor": {"name": "f", "vcpus": 1, "memory_mb": 64}}
PLANS = [("make-room", {"request": LARGE}), ("consolidate", {}), ("drain", {"hosts": ["h0"]}), ("balance", {})]


@pytest.fixture
def api():
    """Return the API of a server with an instance on each of two hosts."""
    with server(None, hosts(2, VCPU=4, MEMORY_MB=64)) as app:
        hands = movers(app, ("h0", "h1"))
        app.build("one", force_hosts=("h0",))
        app.build("two", key="other", force_hosts=("h1",))
        run_agents_until_idle(app, hands)
        api = RoostApi(app.roost, app.serving, clock=app.clock)
        yield api
        api.agents.close()


@pytest.mark.parametrize(("path", "body"), PLANS)
def test_plan_at_the_end_of_its_budget_is_an_answer(api, monkeypatch, path, body):
    complete = api.post(f"/plans/{path}", body)
    assert (complete.status, complete.json["is_over_budget"]) == (200, False), complete.json
    monkeypatch.setattr(Request, "budget_use", lambda _request: 1.0)
    cut = api.post(f"/plans/{path}", body)
    assert (cut.status, cut.json["is_over_budget"], cut.json["is_cut"]) == (200, True, True), cut.json
    assert (cut.json["moves"], bool(cut.json["problem"])) == ([], True)
