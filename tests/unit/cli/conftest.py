"""Commands on a real server, with three hosts whose agents a test may play."""

import pytest

from tests.support.agents.http_agents import three_hosts


@pytest.fixture
def server(tmp_path):
    """Give a server of its own with three hosts of 4 VCPU."""
    with three_hosts(tmp_path / "served") as found:
        yield found


@pytest.fixture
def asked(server, run):
    """Run a command on the server; give its exit code and what it says."""
    return lambda *words: run(*words, "--url", server.address)


@pytest.fixture
def instance(asked):
    """Run ``roost instance`` on the server likewise."""
    return lambda *words: asked("instance", *words)
