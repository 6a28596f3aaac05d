"""A server with an instance, for the tests of agents."""

import pytest

from tests.support.conductors.builders import ladder
from tests.support.conductors.conductors import played_agent, run_until_idle, server
from tests.support.fleets.named_uuids import uuid_named


@pytest.fixture
def app():
    """Yield a server with two agents, and an instance on the first one."""
    with server(None, ladder(2)) as app:
        app.hands = [played_agent(app, f"h{number}") for number in range(2)]
        app.build("one")
        run_until_idle(app, *app.hands)
        assert app.hands[0].guests == {uuid_named("one"): "running"}
        yield app
