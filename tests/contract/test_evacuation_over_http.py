"""Live migration and evacuation through commands, with real processes, one of which is killed."""

import json
import subprocess
from contextlib import ExitStack, contextmanager

import pytest

from roost.compute.drivers.fake.guests import FolderShelf, read_record
from tests.support.fleets.products import command, environ, kill, roost
from tests.support.servers.servers import serve
from tests.support.wait import wait_until

pytestmark = pytest.mark.long

ADMIN = {"x-auth-token": "admin"}
HOSTS = ("host-a", "host-b", "host-c")


class Deployment:
    """A server, the agents of its hosts, and a command line."""

    def __init__(self, server, folder):
        self.server, self.folder, self.agents = server, folder, {}

    def start_agent(self, host):
        """Start the agent of a host; its driver state survives the process."""
        words = ["--host", host, "--state-dir", self.folder / "journals", "--option", f"state={self.folder / 'guests'}"]
        if (script := self.folder / "script.toml").exists():
            words += ["--option", f"script={script}"]
        with (self.folder / f"{host}.log").open("a") as errors:
            self.agents[host] = subprocess.Popen(
                command("agent", "--server", self.server.address, "--driver", "fake", *words),
                cwd=self.folder,
                env=environ(),
                text=True,
                stdout=subprocess.PIPE,
                stderr=errors,
            )

    def request(self, method, path, body=None):
        """Send a request to the server; return the response body."""
        return self.server.ask(method, f"/v1{path}", body, headers=ADMIN)[2]

    def run(self, *words):
        """Run a command; return its exit code and its JSON output, or its error text."""
        result = roost(*words, "--json", "--url", self.server.address, cwd=self.folder)
        return result.returncode, json.loads(result.stdout) if result.stdout else result.stderr

    def used(self):
        """Return the used VCPU of each host that has any."""
        found = {each["host"]: each["resources"]["VCPU"]["used"] for each in self.request("GET", "/hosts")["hosts"]}
        return {host: used for host, used in found.items() if used}

    def guests(self):
        """Return the states of guests, by host; an arrived guest counts as running before its driver notices it."""
        shelf, found = FolderShelf(self.folder / "guests"), {}
        for host in HOSTS:
            record = read_record(shelf.load(host), host)
            arrived = [uuid for uuid in record.coming if shelf.load_arrival(shelf.address(host), uuid)]
            found[host] = [*(each.state for each in record.guests.values()), *("running" for _ in arrived)]
        return {host: states for host, states in found.items() if states}

    def agent(self, host):
        """Return the server's record of an agent."""
        return self.request("GET", f"/agents/{host}")


@pytest.fixture
def deployment(request, tmp_path):
    """Yield a server with a short agent timeout, and three hosts; the optional parameter is the driver script."""
    if hasattr(request, "param"):
        (tmp_path / "script.toml").write_text(request.param, encoding="utf-8")
    settings = "[DEFAULT]\nservice_down_time = 4\n"
    with serve(noun="up", folder=tmp_path, settings=settings) as server, ExitStack() as stack:
        found = Deployment(server, tmp_path)
        stack.enter_context(agent_cleanup(found))
        for host in HOSTS:
            found.start_agent(host)
        wait_until(lambda: len(found.request("GET", "/hosts")["hosts"]) == len(HOSTS))
        wait_until(lambda: all(found.agent(host).get("state") == "ready" for host in HOSTS))
        yield found


@contextmanager
def agent_cleanup(deployment):
    """Kill all agents at the end of the test."""
    try:
        yield
    finally:
        for process in deployment.agents.values():
            kill(process)


def test_live_migration_and_evacuation_leave_nothing_behind(deployment):
    code, creation = deployment.run("instance", "create", "web", "--flavor", "vcpus=2,memory_mb=64", "--wait")
    assert (code, creation["instances"][0]["status"]) == (0, "ACTIVE")
    first = creation["instances"][0]["host"]
    assert (deployment.used(), deployment.guests()) == ({first: 2}, {first: ["running"]})

    code, moved = deployment.run("instance", "live-migrate", "web", "--wait")
    second = moved["instances"][0]["host"]
    assert (code, moved["outcome"], second != first) == (0, "done", True)
    assert (deployment.used(), deployment.guests()) == ({second: 2}, {second: ["running"]})

    code, problem = deployment.run("instance", "evacuate", "web", "--wait")
    assert (code, f"the agent of {second} is there" in problem) == (5, True)
    kill(deployment.agents[second])
    wait_until(lambda: deployment.agent(second)["state"] == "gone")
    code, rows = deployment.run("instance", "evacuate", "--host", second, "--wait")
    (row,) = rows
    third = row["host"]
    assert (code, row["outcome"], row["problem"], third != second) == (0, "done", "", True)
    assert deployment.used() == {second: 2, third: 2}
    assert deployment.guests() == {second: ["running"], third: ["running"]}
    shown = deployment.run("instance", "show", "web")[1]
    assert (shown["status"], shown["host"]) == ("ACTIVE", third)
    assert [(each["kind"], each["status"]) for each in shown["migrations"]] == [
        ("live", "confirmed"),
        ("evacuate", "finished"),
    ]
    (finished,) = deployment.run("migration", "list", "--status", "finished", "--source", second)[1]
    allocations = deployment.run("migration", "show", finished["uuid"])[1]["allocations"]
    assert [each["VCPU"] for each in allocations.values()] == [2]

    deployment.start_agent(second)
    wait_until(lambda: deployment.agent(second)["state"] == "ready")
    wait_until(lambda: deployment.used() == {third: 2})
    assert deployment.guests() == {third: ["running"]}
    assert deployment.run("migration", "list", "--status", "finished")[1] == []

    assert deployment.run("instance", "delete", "web", "--wait")[0] == 0
    assert (deployment.used(), deployment.guests()) == ({}, {})


SLOW = "".join(f'[[fault]]\naction = "spawn"\ndelay_s = 3\nhost = "{host}"\n' for host in HOSTS[1:])


@pytest.mark.parametrize("deployment", [SLOW], indirect=True)
def test_failed_evacuation_restarts_the_guest_on_the_host_that_returned(deployment):
    words = ("--flavor", "vcpus=2,memory_mb=64", "--host", "host-a", "--wait")
    assert deployment.run("instance", "create", "web", *words)[0] == 0
    kill(deployment.agents["host-a"])
    wait_until(lambda: deployment.agent("host-a")["state"] == "gone")
    code, evacuation = deployment.run("instance", "evacuate", "web")
    assert code == 0
    deployment.start_agent("host-a")
    wait_until(lambda: deployment.guests().get("host-a") == ["stopped"])
    assert deployment.agent("host-a")["state"] == "arriving"
    assert deployment.request("GET", f"/operations/{evacuation['operation']}")["outcome"] == "open"
    wait_until(lambda: deployment.request("GET", f"/operations/{evacuation['operation']}")["outcome"] == "failed")
    wait_until(lambda: deployment.guests() == {"host-a": ["running"]})
    wait_until(lambda: deployment.agent("host-a")["state"] == "ready")
    shown = deployment.run("instance", "show", "web")[1]
    assert (shown["status"], shown["host"], "no other host can take it" in shown["fault"]) == ("ACTIVE", "host-a", True)
    assert deployment.used() == {"host-a": 2}
