"""A cluster with all kinds of metrics: agents, instances, refusals, a lost agent, an audit and a backup."""

import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.support.fleets.products import roost
from tests.support.servers.clusters import running_agents
from tests.support.servers.servers import ADMIN, RunningServer, serve
from tests.support.wait import wait_until

SETTINGS = """
[monitoring]
survey_interval_s = 0.5
[DEFAULT]
service_down_time = 4
"""
# The hosts with the most memory are chosen first, and all their builds fail.
_FAILING = '[[node]]\nmemory_mb = 131072\n[[fault]]\naction = "spawn"\nmessage = "no network"'
_TINY = "[[node]]\nmemory_mb = 2048"  # This host is never chosen.
# Lines of the metrics after the surveys have seen the whole work.
_SURVEYED = (
    b'roost_hosts{state="down",zone="nova"} 1.0',
    b'roost_agents{state="gone"} 1.0',
    b"roost_backup_timestamp_seconds",
    b"roost_evidence_bytes",
)
_SMALL = {"name": "small", "vcpus": 2, "memory_mb": 1024}
_HUGE = {"name": "huge", "vcpus": 2, "memory_mb": 10_000_000}


@contextmanager
def monitored_cluster(folder: Path) -> Iterator[RunningServer]:
    """Run the cluster during the block, with its work done."""
    with ExitStack() as stack:
        (folder / "server").mkdir()
        server = stack.enter_context(serve(noun="up", folder=folder / "server", settings=SETTINGS))
        for name, count, script in (("good", 3, ""), ("bad", 1, _FAILING)):
            (folder / name).mkdir()
            (folder / name / "script.toml").write_text(script)
            options = ("--host", name, "--fleet", count, "--option", "script=script.toml")
            stack.enter_context(running_agents(server, folder / name, *options))
        (folder / "lost").mkdir()
        (folder / "lost" / "script.toml").write_text(_TINY)
        options = ("--host", "lost", "--option", "script=script.toml")
        lost = stack.enter_context(running_agents(server, folder / "lost", *options))
        wait_until(lambda: len(server.ask("GET", "/v1/hosts")[2]["hosts"]) == 5)
        _work(server)
        lost.send_signal(signal.SIGKILL)
        for words in (("audit",), ("db", "backup", folder / "backup")):
            assert roost(*words, "--data", folder / "server", cwd=folder).returncode == 0
        wait_until(lambda: server.ask("GET", "/v1/agents/lost")[2]["state"] == "gone")
        for line in _SURVEYED:
            wait_until(lambda line=line: line in server.ask("GET", "/metrics", headers={})[2])
        yield server


def _work(server: RunningServer) -> None:
    """Build an instance after a failed attempt and stop it, and refuse another."""
    (uuid,) = _create(server, "web", _SMALL)
    assert _ended(server, uuid)["status"] == "ACTIVE"
    assert server.ask("POST", f"/v1/instances/{uuid}/stop", {})[0] == 202
    assert _ended(server, uuid)["status"] == "SHUTOFF"
    (uuid,) = _create(server, "refused", _HUGE)
    assert _ended(server, uuid)["status"] == "ERROR"
    assert server.ask("GET", "/placement/resource_providers")[0] == 200


def _create(server: RunningServer, name: str, flavor: dict[str, object]) -> list[str]:
    status, _, answer = server.ask("POST", "/v1/instances", {"name": name, "flavor": flavor}, headers=ADMIN)
    assert status == 202, answer
    return answer["instances"]


def _ended(server: RunningServer, uuid: str) -> dict[str, object]:
    """Return an instance when its operation has ended."""

    def find() -> dict[str, object] | None:
        found = server.ask("GET", f"/v1/instances/{uuid}")[2]
        return None if found["task"] or found["status"] == "BUILD" else found

    return wait_until(find)
