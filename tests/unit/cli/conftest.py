"""Commands on a real server with three hosts; a test may act as their agents."""

import pytest

from tests.support.agents.http_agents import play_agents, three_hosts


@pytest.fixture
def server(tmp_path):
    """Return a new server with three hosts of 4 VCPU."""
    with three_hosts(tmp_path / "served") as server:
        yield server


@pytest.fixture
def players(server):
    """Yield agents of the three hosts that carry out their orders."""
    with play_agents(server) as players:
        yield players


@pytest.fixture
def command(server, run):
    """Return a function that runs a command on the server and returns exit code, output and error."""
    return lambda *words: run(*words, "--url", server.address)


@pytest.fixture
def instance(command):
    """Return a function that runs ``roost instance`` on the server."""
    return lambda *words: command("instance", *words)
