"""A server with agents whose hosts really run guests, for tests of the dashboard."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.servers.clusters import running_agents
from tests.support.servers.servers import RunningServer, serve
from tests.support.wait import wait_until

# Two NUMA cells, and live migrations that take long enough to be seen.
_SCRIPT = """
layout = "numa"
[[node]]
[[node.cell]]
id = 0
memory_mb = 16384
cpus = [0, 1, 2, 3]
pcpus = [4, 5]
siblings = [[0, 1], [2, 3], [4, 5]]
[[node.cell]]
id = 1
memory_mb = 16384
cpus = [6, 7, 8, 9]
[[node.pci]]
address = "0000:06:00.0"
vendor_id = "15b3"
product_id = "1018"
dev_type = "type-PF"
numa_node = 1
[[fault]]
action = "live_migrate"
kind = "slow"
delay_s = 1
"""


@contextmanager
def running_cloud(folder: Path, *, hosts: int) -> Iterator[RunningServer]:
    """Run a server and the agents of node-1, node-2, … during the block."""
    script = folder / "script.toml"
    script.write_text(_SCRIPT, encoding="utf-8")
    words = ("--host", "node", "--fleet", str(hosts), "--state-dir", str(folder / "agents"))
    options = ("--option", f"state={folder / 'guests'}", "--option", f"script={script}")
    with serve(noun="up", folder=folder) as server, running_agents(server, folder, *words, *options):
        wait_until(lambda: len(get(server, "/hosts?up=true&fields=node")["hosts"]) == hosts)
        yield server


def get(server: RunningServer, path: str) -> dict[str, object]:
    """Return the answer to a request."""
    status, _, answer = server.ask("GET", f"/v1{path}")
    assert status == 200, answer
    return answer


def build(server: RunningServer, name: str, *, count: int = 1, host: str = "", **request: object) -> list[str]:
    """Build small instances, and wait for them; return their uuids."""
    body = {"flavor": {"name": "small", "vcpus": 1, "memory_mb": 64, "root_gb": 1}, "name": name, "count": count}
    status, _, accepted = server.ask(
        "POST", "/v1/instances", {**body, **({"force_hosts": [host]} if host else {}), **request}
    )
    assert status == 202, accepted
    operation = f"/operations/{accepted['operation']}"
    wait_until(lambda: get(server, operation)["outcome"] != "open")
    assert get(server, operation)["outcome"] == "done"
    return accepted["instances"]
