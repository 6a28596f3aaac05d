"""The reader process beside a live server: same answers, the newest columns, limits, and what happens when it dies."""

import os
import signal
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest

from roost.app import Roost
from roost.model.settings.roost_settings import Settings
from roost.store.backends import open_store
from tests.attack.fleets import shared_disk
from tests.attack.questions import shared_capacity
from tests.support.fleets.products import fleet
from tests.support.fleets.several_ways import celled_host
from tests.support.servers.servers import serve
from tests.support.waiting import until

pytestmark = pytest.mark.long

ADMIN = {"x-auth-token": "admin"}
SMALL = {"flavor": {"name": "small", "vcpus": 2, "memory_mb": 16}}


def readers(server):
    """Return the reader processes of a server."""
    tasks = Path(f"/proc/{server.process.pid}/task").iterdir()
    pids = [int(each) for task in tasks for each in (task / "children").read_text().split()]
    return [pid for pid in pids if b"reader_process" in Path(f"/proc/{pid}/cmdline").read_bytes()]


def lives(pid):
    """Return whether a process runs."""
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False


@contextmanager
def served(url, folder, *, settings="", fleets):
    """Serve hosts on a database."""
    with Roost(open_store(url, settings=Settings().store), Settings()) as roost:
        roost.install(fleets)
    with serve("--database", str(url), noun="up", folder=folder, settings=settings) as server:
        yield server


@pytest.fixture
def server(url, tmp_path):
    with served(url, tmp_path, fleets=fleet(3, vcpus=4)) as found:
        yield found


def decided(server):
    """Return a decision that was just made."""
    status, _, made = server.ask("POST", "/v1/decisions", SMALL, headers=ADMIN)
    assert status == 201
    return made


def test_the_reader_explains_and_replays_what_was_decided_a_moment_ago(server):
    for _ in range(3):
        made = decided(server)
        status, _, why = server.ask("GET", f"/v1/decisions/{made['uuid']}/why", headers=ADMIN)
        assert (status, why["decision"]["uuid"], why["explanation"]["hosts"]) == (200, made["uuid"], 3)
        status, _, again = server.ask("POST", f"/v1/decisions/{made['uuid']}/replay", {}, headers=ADMIN)
        assert (status, again["is_same"]) == (200, True)
    assert len(readers(server)) == 1
    assert b"roost_questions_read_total 6.0" in server.ask("GET", "/metrics", headers={})[2]


def test_errors_of_the_reader_are_those_of_the_server(server):
    status, headers, problem = server.ask("GET", "/v1/decisions/nothing/why", headers=ADMIN)
    assert (status, headers["content-type"]) == (404, "application/problem+json")
    assert problem["request_id"] == headers["x-openstack-request-id"]
    assert server.ask("GET", "/v1/decisions/nothing/why", headers={})[0] == 401


@pytest.fixture
def lending(url, tmp_path):
    """Serve hosts that borrow from one disk, where a count takes longer than its budget."""
    with served(url, tmp_path, fleets=shared_disk(), settings="question_budget_s = 3.0") as found:
        yield found


def test_decisions_are_made_while_the_reader_counts_and_the_count_says_at_least(lending):
    answers = []

    def count():
        answers.append(lending.ask("POST", "/v1/capacity", shared_capacity().body, headers=ADMIN))

    counting = threading.Thread(target=count)
    counting.start()
    assert until(lambda: readers(lending))
    for _ in range(3):
        assert lending.ask("POST", "/v1/decisions", SMALL, headers=ADMIN)[0] == 201
        assert lending.ask("GET", "/healthz", headers={})[0] == 200
    assert counting.is_alive(), "the count ended before the decisions, so this shows nothing"
    counting.join()
    ((status, _, found),) = answers
    assert (status, found["is_at_least"]) == (200, True)
    assert found["count"] > 0


def test_a_question_that_needs_too_much_memory_is_told_which_limit_it_met(tmp_path):
    """Ten billion candidates fill the memory long before the time is over."""
    hosts = celled_host("host", cells=12, memory_mb=100_000)
    settings = "question_budget_s = 60.0\nquestion_memory_mib = 16\ncandidates_max_bytes = 1000000000000"
    groups = "&".join(f"resources{number}=MEMORY_MB:{number + 1}" for number in range(9))
    with served(tmp_path / "roost.db", tmp_path, fleets=hosts, settings=settings) as server:
        status, _, body = server.ask("GET", f"/placement/allocation_candidates?{groups}&group_policy=none")
        assert (status, "placement.question_memory_mib" in str(body)) == (503, True)


def test_a_reader_that_dies_is_started_again(server):
    made = decided(server)
    path = f"/v1/decisions/{made['uuid']}/why"
    assert server.ask("GET", path, headers=ADMIN)[0] == 200
    (pid,) = readers(server)

    os.kill(pid, signal.SIGKILL)
    assert until(lambda: server.ask("GET", path, headers=ADMIN)[0] == 200)
    assert readers(server) != [pid]


def test_the_reader_ends_with_its_server(server):
    made = decided(server)
    assert server.ask("GET", f"/v1/decisions/{made['uuid']}/why", headers=ADMIN)[0] == 200
    (pid,) = readers(server)
    server.process.kill()
    assert until(lambda: not lives(pid))


def test_without_a_reader_the_server_answers_itself(tmp_path):
    with served(tmp_path / "roost.db", tmp_path, fleets=fleet(3, vcpus=4), settings="has_reader = false") as server:
        made = decided(server)
        assert server.ask("GET", f"/v1/decisions/{made['uuid']}/why", headers=ADMIN)[0] == 200
        assert readers(server) == []


def test_the_reader_follows_a_changed_setting(server, tmp_path):
    made = decided(server)
    path = f"/v1/decisions/{made['uuid']}/why"
    assert server.ask("GET", path, headers=ADMIN)[0] == 200
    config = tmp_path / "roost.toml"
    config.write_text("[placement]\n[filter_scheduler]\nenabled_filters = []\n", encoding="utf-8")
    server.process.send_signal(signal.SIGHUP)
    assert until(lambda: any("settings_loaded" in line for line in server.errors))
    newer = decided(server)
    status, _, why = server.ask("GET", f"/v1/decisions/{newer['uuid']}/why", headers=ADMIN)
    assert (status, why["note"]) == (200, "")
