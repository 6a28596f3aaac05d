"""A request that another process accepts between two reads is answered with its operation."""

import pytest

from roost.errors import Conflict
from tests.support.conductors.builders import ladder
from tests.support.conductors.conductors import played_agent, run_until_idle, server


class LateReader:
    """A reader that does not see operations by their uuid at first."""

    def __init__(self, reader, *, late):
        self._reader, self._late = reader, late

    def __getattr__(self, name):
        return getattr(self._reader, name)

    def operation_by_uuid(self, uuid):
        """Return the operation, after some calls without one."""
        self._late -= 1
        return None if self._late >= 0 else self._reader.operation_by_uuid(uuid)


@pytest.fixture
def active():
    """Yield a server with an active instance."""
    with server(None, ladder(1)) as running:
        agent = played_agent(running, "h0")
        running.build("one")
        run_until_idle(running, agent)
        yield running


@pytest.mark.parametrize("kind", ["build", "stop", "delete"])
def test_operation_of_the_same_request_is_the_answer(active, kind):
    acts = {
        "build": lambda key: active.build("two", key=key),
        "stop": lambda key: active.power("one", "stop", key=key),
        "delete": lambda key: active.delete("one", key=key),
    }
    first = acts[kind]("a request")
    active.reader = LateReader(active.reader, late=1)
    assert acts[kind]("a request").id == first.id
    with pytest.raises(Conflict):
        acts[kind]("another request")
