"""The reader process beside a live server: same responses, current data, limits and restarts."""

import os
import re
import signal
import threading
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from roost.app import Roost
from roost.model.settings.roost_settings import Settings
from roost.store.backends import open_store
from tests.attack.fleets import shared_disk
from tests.attack.questions import shared_capacity
from tests.support.fleets.nested_memory_hosts import nested_memory_host
from tests.support.fleets.products import fleet
from tests.support.servers.servers import serve
from tests.support.wait import wait_until

pytestmark = pytest.mark.long

ADMIN = {"x-auth-token": "admin"}
SMALL = {"flavor": {"name": "small", "vcpus": 2, "memory_mb": 16}}


def reader_pids(server):
    """Return the reader processes of a server."""
    tasks = Path(f"/proc/{server.process.pid}/task").iterdir()
    pids = [int(each) for task in tasks for each in (task / "children").read_text().split()]
    found = []
    for pid in pids:
        with suppress(OSError):  # The process has just ended.
            if b"reader_process" in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(pid)
    return found


def is_running(pid):
    """Return whether a process runs."""
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False


@contextmanager
def serve_fleet(url, folder, *, settings="", fleets):
    """Serve a fleet on a database."""
    with Roost(open_store(url, settings=Settings().store), Settings()) as roost:
        roost.install(fleets)
    with serve("--database", str(url), noun="up", folder=folder, settings=settings) as server:
        yield server


@pytest.fixture
def server(url, tmp_path):
    with serve_fleet(url, tmp_path, fleets=fleet(3, vcpus=4)) as server:
        yield server


def decide(server):
    """Make a decision and return it."""
    status, _, decision = server.ask("POST", "/v1/decisions", SMALL, headers=ADMIN)
    assert status == 201
    return decision


def test_reader_explains_and_replays_the_newest_decisions(server):
    for _ in range(3):
        decision = decide(server)
        status, _, why = server.ask("GET", f"/v1/decisions/{decision['uuid']}/why", headers=ADMIN)
        assert (status, why["decision"]["uuid"], why["explanation"]["hosts"]) == (200, decision["uuid"], 3)
        status, _, again = server.ask("POST", f"/v1/decisions/{decision['uuid']}/replay", {}, headers=ADMIN)
        assert (status, again["is_same"]) == (200, True)
    assert len(reader_pids(server)) == 1
    assert b"roost_questions_read_total 6.0" in server.ask("GET", "/metrics", headers={})[2]


def test_reader_errors_have_the_format_of_the_server(server):
    status, headers, problem = server.ask("GET", "/v1/decisions/nothing/why", headers=ADMIN)
    assert (status, headers["content-type"]) == (404, "application/problem+json")
    assert problem["request_id"] == headers["x-openstack-request-id"]
    assert server.ask("GET", "/v1/decisions/nothing/why", headers={})[0] == 401


@pytest.fixture
def shared_disk_server(url, tmp_path):
    """A server of hosts with a shared disk, where counting capacity takes longer than the budget."""
    with serve_fleet(url, tmp_path, fleets=shared_disk(), settings="question_budget_s = 3.0") as server:
        yield server


def test_decisions_continue_while_the_reader_counts_up_to_its_budget(shared_disk_server):
    answers = []

    def count():
        answers.append(shared_disk_server.ask("POST", "/v1/capacity", shared_capacity().body, headers=ADMIN))

    counting = threading.Thread(target=count)
    counting.start()
    assert wait_until(lambda: reader_pids(shared_disk_server))
    for _ in range(3):
        assert shared_disk_server.ask("POST", "/v1/decisions", SMALL, headers=ADMIN)[0] == 201
        assert shared_disk_server.ask("GET", "/healthz", headers={})[0] == 200
    assert counting.is_alive(), "the count ended before the decisions, so this shows nothing"
    counting.join()
    ((status, _, capacity),) = answers
    assert (status, capacity["is_at_least"]) == (200, True)
    assert capacity["count"] > 0


def test_question_beyond_the_memory_limit_names_the_limit(tmp_path):
    """Ten billion candidates fill the memory long before the time limit."""
    hosts = nested_memory_host("host", cells=12, memory_mb=100_000)
    settings = "question_budget_s = 60.0\nquestion_memory_mib = 16\ncandidates_max_bytes = 1000000000000"
    groups = "&".join(f"resources{number}=MEMORY_MB:{number + 1}" for number in range(9))
    with serve_fleet(tmp_path / "roost.db", tmp_path, fleets=hosts, settings=settings) as server:
        status, _, body = server.ask("GET", f"/placement/allocation_candidates?{groups}&group_policy=none")
        assert status == 503, body
        assert "placement.question_memory_mib" in str(body)


def test_killed_reader_is_restarted(server):
    decision = decide(server)
    path = f"/v1/decisions/{decision['uuid']}/why"
    assert server.ask("GET", path, headers=ADMIN)[0] == 200
    (pid,) = reader_pids(server)

    os.kill(pid, signal.SIGKILL)
    assert wait_until(lambda: server.ask("GET", path, headers=ADMIN)[0] == 200)
    assert reader_pids(server) != [pid]


def test_reader_of_a_large_fleet_runs_before_the_first_question_and_again_after_its_death(tmp_path):
    with serve_fleet(tmp_path / "roost.db", tmp_path, fleets=fleet(1_000, vcpus=4)) as server:
        assert wait_until(lambda: reader_pids(server))
        (first,) = reader_pids(server)
        os.kill(first, signal.SIGKILL)
        assert wait_until(lambda: reader_pids(server) not in ([], [first]))
        status, _, overview = server.ask("GET", "/v1/status", headers=ADMIN)
        assert (status, overview["hosts"]["up"]) == (200, 1_000)


def test_long_list_of_hosts_is_the_same_from_the_reader(tmp_path):
    def asked():
        text = server.ask("GET", "/metrics", headers={})[2].decode()
        return float(re.search(r"^roost_questions_read_total ([\d.]+)$", text, re.MULTILINE)[1])

    with serve_fleet(tmp_path / "roost.db", tmp_path, fleets=fleet(999, vcpus=4)) as server:
        pages = [server.ask("GET", "/v1/hosts?limit=1000", headers=ADMIN)[2]]
        assert (len(pages[0]["hosts"]), reader_pids(server), asked()) == (999, [], 0.0)
        assert wait_until(lambda: pages.append(server.ask("GET", "/v1/hosts?limit=1000", headers=ADMIN)[2]) or asked())
        assert all(page == pages[0] for page in pages)
        # The reader sees each acknowledged write.
        assert server.ask("PATCH", "/v1/services/host-7", {"disabled": True}, headers=ADMIN)[0] == 200
        hosts = server.ask("GET", "/v1/hosts?limit=1000", headers=ADMIN)[2]["hosts"]
        assert [host["host"] for host in hosts if host["disabled"]] == ["host-7"]


def test_reader_ends_with_its_server(server):
    decision = decide(server)
    assert server.ask("GET", f"/v1/decisions/{decision['uuid']}/why", headers=ADMIN)[0] == 200
    (pid,) = reader_pids(server)
    server.process.kill()
    assert wait_until(lambda: not is_running(pid))


def test_server_answers_itself_without_a_reader(tmp_path):
    with serve_fleet(
        tmp_path / "roost.db", tmp_path, fleets=fleet(3, vcpus=4), settings="has_reader = false"
    ) as server:
        decision = decide(server)
        assert server.ask("GET", f"/v1/decisions/{decision['uuid']}/why", headers=ADMIN)[0] == 200
        assert reader_pids(server) == []


def test_reader_follows_a_settings_reload(server, tmp_path):
    decision = decide(server)
    path = f"/v1/decisions/{decision['uuid']}/why"
    assert server.ask("GET", path, headers=ADMIN)[0] == 200
    config = tmp_path / "roost.toml"
    config.write_text("[placement]\n[filter_scheduler]\nenabled_filters = []\n", encoding="utf-8")
    server.process.send_signal(signal.SIGHUP)
    assert wait_until(lambda: any("settings_loaded" in line for line in server.errors))
    newer = decide(server)
    status, _, why = server.ask("GET", f"/v1/decisions/{newer['uuid']}/why", headers=ADMIN)
    assert (status, why["note"]) == (200, "")
