"""A host whose agent is a process of its own, with the server that it works for."""

from contextlib import contextmanager

from tests.support.servers.clusters import AgentsProgram, ServerProgram

HOST = "host-1"


class AgentHost:
    """A host with an agent that may be started again and again, whose guests and books outlive it.

    Args:
        folder: of all that is kept.
        words: further ones of the command of the agent.
        settings: of the server.
    """

    def __init__(self, folder, *words, settings=""):
        self.script, self.guests = folder / "fake.toml", folder / "guests"
        self.server = ServerProgram(folder=folder, settings=settings)
        self.server.start()
        self.agent = AgentsProgram(
            self.server.address, *words, folder=folder, guests=self.guests, host=HOST, options={"script": self.script}
        )

    def start(self, script):
        """Start the agent with a script of its driver."""
        self.script.write_text(script)
        self.agent.start()

    def asked(self, method, path, body=None):
        """Ask for something that is accepted; give the path of the operation."""
        status, told = self.server.asked(method, path, body)
        assert status == 202, told
        return f"/v1/operations/{told['operation']}?wait_s=1"

    def ended(self, operation):
        """Wait until an operation is over; give it."""
        self.agent.until(lambda: self.server.asked("GET", operation)[1]["outcome"] != "open")
        return self.server.asked("GET", operation)[1]

    def over(self, method, path, body=None):
        """Ask for something, and wait for its end; give the operation."""
        return self.ended(self.asked(method, path, body))

    def build(self, flavor, count=1):
        """Ask for instances; give how that ended, and their uuids."""
        built = self.over("POST", "/v1/instances", {"flavor": flavor, "name": "live", "count": count})
        return built["outcome"], [each["uuid"] for each in built["instances"]]


@contextmanager
def agent_host(folder, script, *words, settings=""):
    """Give a host whose agent has told of it."""
    host = AgentHost(folder, *words, settings=settings)
    try:
        host.start(script)
        host.agent.until(lambda: host.server.listed("hosts"))
        yield host
    finally:
        host.agent.kill()
        host.server.kill()
