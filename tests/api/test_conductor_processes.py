"""``roost conductor`` in processes of its own, beside a server without a conductor."""

import re
import signal
import time
from contextlib import ExitStack

import pytest

from tests.support.fleets.products import roost
from tests.support.servers.clusters import running_agents
from tests.support.servers.servers import serve
from tests.support.wait import wait_until

pytestmark = pytest.mark.long

ADMIN = {"x-auth-token": "admin"}
# The hosts with the most memory are chosen first, and all their builds fail. The others have less and less.
SCRIPTS = {
    "east": '[[fault]]\naction = "spawn"\nmessage = "no network"',
    "spare": "[[node]]\nmemory_mb = 32768",
    "west": "[[node]]\nmemory_mb = 16384",
}
SMALL = {"name": "small", "vcpus": 1, "memory_mb": 64}


@pytest.fixture
def stack():
    with ExitStack() as opened:
        yield opened


@pytest.fixture
def server(request, stack, postgres_url, tmp_path):
    """A server without a conductor; the parameter has its settings, if any."""
    (tmp_path / "server").mkdir()
    settings, options = getattr(request, "param", ""), ("--no-conductor", "--database", postgres_url)
    return stack.enter_context(serve(*options, noun="up", folder=tmp_path / "server", settings=settings))


@pytest.fixture
def conductor(stack, server, postgres_url, tmp_path):  # noqa: ARG001  # the server makes the tables
    """A function that starts a conductor; operations of a dead one are free after two seconds."""

    def begin(name, *options, settings=""):
        (tmp_path / name).mkdir()
        settings = f"{settings}\n[conductor]\nowner_s = 2.0"
        return stack.enter_context(
            serve("--database", postgres_url, *options, noun="conductor", folder=tmp_path / name, settings=settings)
        )

    return begin


def hosts(server):
    return [each["host"] for each in server.ask("GET", "/v1/hosts", headers=ADMIN)[2]["hosts"]]


def create_instances(server, name, count=1, *, ignored=()):
    body = {"name": name, "flavor": SMALL, "count": count, "ignore_hosts": list(ignored)}
    return server.ask("POST", "/v1/instances", body, headers=ADMIN)[2]["instances"]


def statuses(server, uuids):
    return [server.ask("GET", f"/v1/instances/{uuid}", headers=ADMIN)[2]["status"] for uuid in uuids]


def test_builds_continue_after_one_of_two_conductors_is_killed(server, conductor, tmp_path):
    first, second = conductor("first"), conductor("second")
    with running_agents(server, tmp_path, "--host", "fake", "--fleet", 3):
        wait_until(lambda: len(hosts(server)) == 3)
        before = create_instances(server, "before", 5)
        wait_until(lambda: statuses(server, before) == ["ACTIVE"] * 5)
        uuids = create_instances(server, "while", 20)
        first.process.kill()
        later = create_instances(server, "after", 5)
        wait_until(lambda: set(statuses(server, [*uuids, *later])) == {"ACTIVE"})
        assert second.ask("GET", "/healthz", headers={})[2] == b"ok\n"
        assert second.ask("GET", "/readyz", headers={})[2]["checks"]["conductor"]["ok"]
        text = second.ask("GET", "/metrics", headers={})[2].decode()
        assert re.search(r"^roost_builds_started_total [1-9]", text, re.MULTILINE)
        assert "roost_conductor_last_turn_timestamp_seconds" in text
        assert "roost_requests_total" not in text
        assert second.stop(signal.SIGTERM) == 0


def create_and_wait(server, name, *, ignored):
    """Create an instance and return it when its build has ended."""
    (uuid,) = create_instances(server, name, ignored=ignored)
    wait_until(lambda: statuses(server, [uuid]) != ["BUILD"])
    return server.ask("GET", f"/v1/instances/{uuid}", headers=ADMIN)[2]


@pytest.mark.shows("S163", "S175")
def test_build_waits_for_the_conductor_of_its_cell(server, conductor, tmp_path):
    conductor("super", "--cell", "")
    with running_agents(server, tmp_path, "--host", "east-1", "--cell", "east"):
        wait_until(lambda: hosts(server) == ["east-1"])
        (uuid,) = create_instances(server, "web")
        wait_until(lambda: server.ask("GET", f"/v1/instances/{uuid}", headers=ADMIN)[2]["host"] == "east-1")
        time.sleep(2.0)
        assert statuses(server, [uuid]) == ["BUILD"]
        east = conductor("east", "--cell", "east")
        wait_until(lambda: statuses(server, [uuid]) == ["ACTIVE"])
        wait_until(lambda: re.search(r'"event":"conductor_begins".*east', east.said))


@pytest.mark.shows("S163", "S172", "S175", "S176")
def test_failed_builds_try_alternates_of_their_cell_up_to_the_limit(server, conductor, stack, tmp_path):
    for name in ("", "east", "west"):
        conductor(f"of {name}", "--cell", name)
    for name, count, cell in (("east", 3, "east"), ("spare", 1, "east"), ("west", 2, "west")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "script.toml").write_text(SCRIPTS[name])
        options = ("--host", name, "--fleet", count, "--cell", cell, "--option", "script=script.toml")
        stack.enter_context(running_agents(server, tmp_path / name, *options))
    wait_until(lambda: len(hosts(server)) == 6)
    built = create_and_wait(server, "web", ignored=["east-2", "east-3"])
    assert (built["status"], built["fault"], built["host"]) == ("ACTIVE", "", "spare-1")
    assert [(each["host"], each["cell"], each["problem"]) for each in built["attempts"]] == [
        ("east-1", "east", "no network"),
        ("spare-1", "east", ""),
    ]
    assert [each["kind"] for each in built["story"]] == ["build.sent", "spawn.failed", "spawn.built"]
    assert len(built["allocations"]) == 1
    failed = create_and_wait(server, "too often", ignored=["spare-1"])
    assert (failed["status"], failed["host"], failed["allocations"]) == ("ERROR", "", {})
    assert "Exceeded max scheduling attempts 3" in failed["fault"]
    assert sorted((each["host"], each["cell"], each["problem"]) for each in failed["attempts"]) == [
        (f"east-{number}", "east", "no network") for number in (1, 2, 3)
    ]


@pytest.mark.parametrize("server", ["[DEFAULT]\nservice_down_time = 4"], indirect=True)
def test_server_marks_a_dead_agent_as_gone_beside_a_conductor(server, conductor, tmp_path):
    conductor("first")
    with running_agents(server, tmp_path, "--host", "host-1") as process:
        wait_until(lambda: hosts(server) == ["host-1"])
        assert server.ask("GET", "/v1/agents/host-1", headers=ADMIN)[2]["state"] == "ready"
        process.kill()
        wait_until(lambda: server.ask("GET", "/v1/agents/host-1", headers=ADMIN)[2]["state"] == "gone")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            ["conductor"],
            (
                "store.url: must be a URL of PostgreSQL or MariaDB: a SQLite database has one process, which includes "
                "the conductor"
            ),
        ),
        (
            ["up", "--no-conductor"],
            "conductor.in_server: must be true on SQLite, where no other process can be the conductor",
        ),
    ],
)
def test_conductor_runs_inside_the_server_on_sqlite(options, sentence, tmp_path):
    result = roost(*options, "--listen", "127.0.0.1:0", "--data", tmp_path, cwd=tmp_path)
    assert (result.returncode, result.stdout, result.stderr) == (3, "", f"roost: {sentence}\n")
