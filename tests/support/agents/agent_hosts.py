"""A host whose agent runs as a process of its own, with its server."""

from contextlib import contextmanager

from tests.support.servers.clusters import AgentsProgram, ServerProgram

HOST = "host-1"


class AgentHost:
    """A host whose agent can be restarted; its guests and its journal outlive the agent.

    Args:
        folder: holds all files of the host.
        words: additional arguments of the agent command.
        settings: the settings file of the server.
    """

    def __init__(self, folder, *words, settings=""):
        self.script, self.guests = folder / "fake.toml", folder / "guests"
        self.server = ServerProgram(folder=folder, settings=settings)
        self.server.start()
        self.agent = AgentsProgram(
            self.server.address, *words, folder=folder, guests=self.guests, host=HOST, options={"script": self.script}
        )

    def start(self, script):
        """Start the agent with a script for its driver."""
        self.script.write_text(script)
        self.agent.start()

    def asked(self, method, path, body=None):
        """Send a request that the server accepts; return the path of its operation."""
        status, reply = self.server.asked(method, path, body)
        assert status == 202, reply
        return f"/v1/operations/{reply['operation']}?wait_s=1"

    def ended(self, operation):
        """Wait until an operation ends; return it."""
        self.agent.until(lambda: self.server.asked("GET", operation)[1]["outcome"] != "open")
        return self.server.asked("GET", operation)[1]

    def over(self, method, path, body=None):
        """Send a request and wait until its operation ends; return the operation."""
        return self.ended(self.asked(method, path, body))

    def build(self, flavor, count=1):
        """Build instances; return the outcome and their uuids."""
        built = self.over("POST", "/v1/instances", {"flavor": flavor, "name": "live", "count": count})
        return built["outcome"], [each["uuid"] for each in built["instances"]]


@contextmanager
def agent_host(folder, script, *words, settings=""):
    """Yield a host that its agent has reported."""
    host = AgentHost(folder, *words, settings=settings)
    try:
        host.start(script)
        host.agent.until(lambda: host.server.listed("hosts"))
        yield host
    finally:
        host.agent.kill()
        host.server.kill()
