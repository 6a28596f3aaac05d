"""A live server to attack: a process with a fleet, whose memory is measured."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from roost.api.access.authentication import as_toml, new_token
from roost.app import open_roost
from roost.model.fleet import Fleet
from tests.support.fleets.products import fleet
from tests.support.servers.servers import RunningServer, serve

_HOSTS = 20
_VCPUS = 100_000  # of each host, so that decisions are always granted


class Target:
    """A server, and headers for its users.

    Args:
        server: The server.
        headers: Identify an administrator.
        agent: Identify the agent of host-1; empty without tokens.
    """

    def __init__(self, server: RunningServer, headers: dict[str, str], agent: dict[str, str]) -> None:
        self.served, self.headers, self.agent = server, headers, agent
        self.host, self.port = "127.0.0.1", server.port
        self._start_kib = 0

    def start_measurement(self) -> None:
        """Measure memory from now on."""
        Path(f"/proc/{self.served.process.pid}/clear_refs").write_text("5")  # Resets the peak to the present value.
        self._start_kib = self._status("VmRSS")

    def rss_growth_mib(self) -> float:
        """Return the peak memory since ``start_measurement``, minus the memory at that time."""
        return (self._status("VmHWM") - self._start_kib) / 1024

    def rss_mib(self) -> float:
        """Return the present memory of the server."""
        return self._status("VmRSS") / 1024

    def _status(self, name: str) -> int:
        text = Path(f"/proc/{self.served.process.pid}/status").read_text()
        match = re.search(rf"{name}:\s+(\d+) kB", text)
        assert match is not None, text
        return int(match[1])


@contextmanager
def target(
    folder: Path, *, has_tokens: bool = True, settings: str = "", others: Fleet | None = None
) -> Iterator[Target]:
    """Serve the whole product with twenty hosts that never fill up.

    Args:
        folder: Of its data.
        has_tokens: Whether clients need a token; otherwise their headers are trusted.
        settings: Further lines of section ``placement``.
        others: Additional hosts.
    """
    with open_roost(None, folder) as roost:
        roost.install(fleet(_HOSTS, vcpus=_VCPUS))
        if others is not None:
            roost.install(others)
    token, agent = "admin", {}
    if has_tokens:
        token, stored = new_token("admin", roles=("admin",))
        agent["x-auth-token"], stored_agent = new_token("agent of host-1", hosts=("host-1",))
        path = folder / "tokens.toml"
        path.write_text(as_toml(stored) + as_toml(stored_agent))
        settings = f'auth_strategy = "tokens"\ntokens_file = "{path}"\n{settings}'
    with serve(noun="up", folder=folder, settings=settings) as server:
        yield Target(server, {"x-auth-token": token}, agent)
