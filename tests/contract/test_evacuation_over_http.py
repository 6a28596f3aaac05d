"""Instances leave hosts: a server and agents as processes of their own, one of which is killed, and commands."""

import json
import subprocess
from contextlib import ExitStack, contextmanager

import pytest

from roost.compute.drivers.fake.guests import FolderShelf, read_kept
from tests.support.fleets.products import command, environ, kill, roost
from tests.support.servers.servers import serve
from tests.support.waiting import until

pytestmark = pytest.mark.long

ADMIN = {"x-auth-token": "admin"}
HOSTS = ("host-a", "host-b", "host-c")


class Deployment:
    """A server, the agents of its hosts, and whoever types commands."""

    def __init__(self, server, folder):
        self.server, self.folder, self.agents = server, folder, {}

    def begin(self, host):
        """Let the agent of a host live; what its driver has outlives it."""
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

    def ask(self, method, path, body=None):
        """Ask the server; give what came back."""
        return self.server.ask(method, f"/v1{path}", body, headers=ADMIN)[2]

    def run(self, *words):
        """Type a command; give its exit code and what it says as JSON."""
        done = roost(*words, "--json", "--url", self.server.address, cwd=self.folder)
        return done.returncode, json.loads(done.stdout) if done.stdout else done.stderr

    def used(self):
        """Give the hosts where VCPU are in use, with how many."""
        found = {each["host"]: each["resources"]["VCPU"]["used"] for each in self.ask("GET", "/hosts")["hosts"]}
        return {host: used for host, used in found.items() if used}

    def guests(self):
        """Give the states of what runs on hosts, by host; who arrived runs, whether its driver has looked or not."""
        shelf, found = FolderShelf(self.folder / "guests"), {}
        for host in HOSTS:
            kept = read_kept(shelf.load(host), host)
            arrived = [uuid for uuid in kept.coming if shelf.load_arrival(shelf.address(host), uuid)]
            found[host] = [*(each.state for each in kept.guests.values()), *("running" for _ in arrived)]
        return {host: states for host, states in found.items() if states}

    def agent(self, host):
        """Give what the server knows of an agent."""
        return self.ask("GET", f"/agents/{host}")


@pytest.fixture
def deployment(request, tmp_path):
    """Give a server that gives agents up soon, and three hosts; what they pretend is the parameter, if there is one."""
    if hasattr(request, "param"):
        (tmp_path / "script.toml").write_text(request.param, encoding="utf-8")
    settings = "[DEFAULT]\nservice_down_time = 4\n"
    with serve(noun="up", folder=tmp_path, settings=settings) as server, ExitStack() as stack:
        made = Deployment(server, tmp_path)
        stack.enter_context(ended(made))
        for host in HOSTS:
            made.begin(host)
        until(lambda: len(made.ask("GET", "/hosts")["hosts"]) == len(HOSTS))
        until(lambda: all(made.agent(host).get("state") == "ready" for host in HOSTS))
        yield made


@contextmanager
def ended(made):
    """See to it that no agent outlives the test."""
    try:
        yield
    finally:
        for process in made.agents.values():
            kill(process)


def test_it_migrates_while_it_runs_its_host_is_killed_and_comes_back_and_nothing_is_left(deployment):
    code, built = deployment.run("instance", "create", "web", "--flavor", "vcpus=2,memory_mb=64", "--wait")
    assert (code, built["instances"][0]["status"]) == (0, "ACTIVE")
    first = built["instances"][0]["host"]
    assert (deployment.used(), deployment.guests()) == ({first: 2}, {first: ["running"]})

    code, moved = deployment.run("instance", "live-migrate", "web", "--wait")
    second = moved["instances"][0]["host"]
    assert (code, moved["outcome"], second != first) == (0, "done", True)
    assert (deployment.used(), deployment.guests()) == ({second: 2}, {second: ["running"]})

    code, said = deployment.run("instance", "evacuate", "web", "--wait")
    assert (code, f"the agent of {second} is there" in said) == (5, True)
    kill(deployment.agents[second])
    until(lambda: deployment.agent(second)["state"] == "gone")
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
    (kept,) = deployment.run("migration", "list", "--status", "finished", "--source", second)[1]
    assert [each["VCPU"] for each in deployment.run("migration", "show", kept["uuid"])[1]["allocations"].values()] == [
        2
    ]

    deployment.begin(second)
    until(lambda: deployment.agent(second)["state"] == "ready")
    until(lambda: deployment.used() == {third: 2})
    assert deployment.guests() == {third: ["running"]}
    assert deployment.run("migration", "list", "--status", "finished")[1] == []

    assert deployment.run("instance", "delete", "web", "--wait")[0] == 0
    assert (deployment.used(), deployment.guests()) == ({}, {})


SLOW = "".join(f'[[fault]]\naction = "spawn"\ndelay_s = 3\nhost = "{host}"\n' for host in HOSTS[1:])


@pytest.mark.parametrize("deployment", [SLOW], indirect=True)
def test_a_host_that_is_back_meanwhile_holds_what_it_has_and_lets_it_run_on_where_nobody_else_can(deployment):
    words = ("--flavor", "vcpus=2,memory_mb=64", "--host", "host-a", "--wait")
    assert deployment.run("instance", "create", "web", *words)[0] == 0
    kill(deployment.agents["host-a"])
    until(lambda: deployment.agent("host-a")["state"] == "gone")
    code, asked = deployment.run("instance", "evacuate", "web")
    assert code == 0
    deployment.begin("host-a")
    until(lambda: deployment.guests().get("host-a") == ["stopped"])
    assert deployment.agent("host-a")["state"] == "arriving"
    assert deployment.ask("GET", f"/operations/{asked['operation']}")["outcome"] == "open"
    until(lambda: deployment.ask("GET", f"/operations/{asked['operation']}")["outcome"] == "failed")
    until(lambda: deployment.guests() == {"host-a": ["running"]})
    until(lambda: deployment.agent("host-a")["state"] == "ready")
    shown = deployment.run("instance", "show", "web")[1]
    assert (shown["status"], shown["host"], "no other host can take it" in shown["fault"]) == ("ACTIVE", "host-a", True)
    assert deployment.used() == {"host-a": 2}
