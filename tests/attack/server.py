"""A live server to attack: a process of its own, with a fleet, whose memory is measured."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from roost.api.access.authentication import as_toml, new_token
from roost.app import open_roost
from roost.model.fleet import Fleet
from tests.support.fleets.products import fleet
from tests.support.servers.servers import Served, serve

_HOSTS = 20
_VCPUS = 100_000  # of each host, so that decisions are granted as long as anybody asks


class Target:
    """A server, and what an administrator of it sends.

    Args:
        served: the server.
        headers: that say who an administrator is.
        agent: that say who the agent of host-1 is; empty: there is none.
    """

    def __init__(self, served: Served, headers: dict[str, str], agent: dict[str, str]) -> None:
        self.served, self.headers, self.agent = served, headers, agent
        self.host, self.port = "127.0.0.1", served.port
        self._begun_kib = 0

    def begin(self) -> None:
        """Measure memory from now on."""
        Path(f"/proc/{self.served.process.pid}/clear_refs").write_text("5")  # The peak is what there is now.
        self._begun_kib = self._status("VmRSS")

    def rss_growth_mib(self) -> float:
        """Return the most memory that the server had since ``begin``, less what it had then."""
        return (self._status("VmHWM") - self._begun_kib) / 1024

    def rss_mib(self) -> float:
        """Return the memory that the server has now."""
        return self._status("VmRSS") / 1024

    def _status(self, name: str) -> int:
        text = Path(f"/proc/{self.served.process.pid}/status").read_text()
        found = re.search(rf"{name}:\s+(\d+) kB", text)
        assert found is not None, text
        return int(found[1])


@contextmanager
def target(
    folder: Path, *, has_tokens: bool = True, settings: str = "", others: Fleet | None = None
) -> Iterator[Target]:
    """Serve the whole product with twenty hosts that are never full.

    Args:
        folder: of its data.
        has_tokens: whether only a token says who asks, else everybody is believed.
        settings: further lines of section ``placement``.
        others: hosts beside those.
    """
    with open_roost(None, folder) as roost:
        roost.install(fleet(_HOSTS, vcpus=_VCPUS))
        if others is not None:
            roost.install(others)
    token, agent = "admin", {}
    if has_tokens:
        token, kept = new_token("admin", roles=("admin",))
        agent["x-auth-token"], kept_agent = new_token("agent of host-1", hosts=("host-1",))
        path = folder / "tokens.toml"
        path.write_text(as_toml(kept) + as_toml(kept_agent))
        settings = f'auth_strategy = "tokens"\ntokens_file = "{path}"\n{settings}'
    with serve(noun="up", folder=folder, settings=settings) as served:
        yield Target(served, {"x-auth-token": token}, agent)
