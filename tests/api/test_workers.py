"""Several worker processes on one socket and one PostgreSQL database."""

import os
import re
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from http.client import HTTPConnection
from pathlib import Path

import psycopg
import pytest

from tests.support.servers.servers import ADMIN, serve

pytestmark = pytest.mark.long

DEADLINE_S = 60


@pytest.fixture
def server(tmp_path, postgres_url):
    with serve(
        "--workers", "2", "--metrics-listen", "127.0.0.1:0", "--database", postgres_url, folder=tmp_path
    ) as server:
        yield server


def workers(server):
    """Return the worker processes: children of the parent that are still running."""
    return sorted(int(folder.name) for folder in Path("/proc").iterdir() if _is_worker(folder, server.process.pid))


def _is_worker(folder, parent):
    try:
        fields = (folder / "stat").read_text().rpartition(")")[2].split()
        return int(fields[1]) == parent and "spawn_main" in (folder / "cmdline").read_text()
    except OSError:  # Not a process, or one that has just ended.
        return False


def is_running(process):
    return Path(f"/proc/{process}").exists()


def until(done):
    """Wait for a condition; return its last value."""
    deadline = time.monotonic() + DEADLINE_S
    while not (value := done()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return value


def readiness(server):
    return server.ask("GET", "/readyz", headers={}, port=server.metrics_port)[2]["checks"]


def send_requests(server, count):
    """Send requests on separate connections; return their responses."""
    return [server.ask("GET", "/resource_providers") for _ in range(count)]


def test_writes_of_one_worker_are_visible_in_the_other(server):
    for number in range(10):
        assert server.ask("POST", "/resource_providers", {"name": f"p{number}"})[0] == 200
        for _, _, body in send_requests(server, 4):
            assert len(body["resource_providers"]) == number + 1


def test_killed_worker_is_replaced_without_failed_requests(server):
    before = workers(server)
    assert len(before) == 2
    server.ask("POST", "/resource_providers", {"name": "kept"})
    os.kill(before[0], signal.SIGKILL)
    statuses = set()

    def is_back():
        with suppress(ConnectionError):  # Requests that the killed worker had accepted are lost with it.
            statuses.add(server.ask("GET", "/resource_providers")[0])
        return len(workers(server)) == 2 and before[0] not in workers(server)

    assert until(is_back)
    assert statuses <= {200}
    assert server.watch("/healthz") == (200, "ok\n")
    assert until(lambda: readiness(server)["workers"]["detail"] == "2 of 2 workers are ready")
    assert '"event":"worker_ended","exit_code":-9' in server.said
    assert [each["name"] for each in server.ask("GET", "/resource_providers")[2]["resource_providers"]] == ["kept"]


def test_reason_why_a_worker_cannot_restart_is_logged(server, postgres_url):
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("UPDATE compatibility SET readable_from = '9999'")
    os.kill(workers(server)[0], signal.SIGKILL)
    assert until(lambda: '"exit_code":7' in server.said)
    assert re.search(r'"exit_code":7,"problem":"[^"]*newer', server.said)
    assert server.ask("GET", "/resource_providers")[0] == 200  # The other worker has the columns in memory.


def test_sighup_replaces_workers_without_a_failed_request(server):
    before, statuses, is_done = workers(server), [], threading.Event()

    def send_until_done():
        with closing(HTTPConnection("127.0.0.1", server.port, timeout=30)) as client:
            while not is_done.is_set():
                client.request("GET", "/resource_providers", headers=ADMIN)
                response = client.getresponse()
                response.read()
                statuses.append(response.status)

    with ThreadPoolExecutor() as pool:
        clients = [pool.submit(send_until_done) for _ in range(4)]
        server.process.send_signal(signal.SIGHUP)
        assert until(lambda: '"event":"workers_replaced","count":2' in server.said)
        is_done.set()
        for client in clients:
            client.result()
    assert set(statuses) == {200}
    assert len(workers(server)) == 2
    assert not set(before) & set(workers(server))
    assert not any(is_running(worker) for worker in before)
    assert server.stop() == 0


def test_sighup_with_wrong_settings_replaces_no_worker(server, tmp_path):
    before = workers(server)
    (tmp_path / "roost.toml").write_text("[placement]\nqueue_max = 0\n")
    server.process.send_signal(signal.SIGHUP)
    assert until(lambda: '"event":"settings_refused"' in server.said)
    assert "placement.queue_max" in server.said
    assert workers(server) == before


def test_workers_stay_if_a_new_one_cannot_start(server, postgres_url):
    before = workers(server)
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("UPDATE compatibility SET readable_from = '9999'")
    server.process.send_signal(signal.SIGHUP)
    assert until(lambda: '"event":"worker_not_replaced"' in server.said)
    assert re.search(r'"problem":"[^"]*newer[^"]*","replaced":0,"count":2', server.said)
    assert workers(server) == before
    assert server.ask("GET", "/resource_providers")[0] == 200
    assert readiness(server)["workers"]["detail"] == "2 of 2 workers are ready"


def test_replaced_workers_use_settings_that_need_a_restart(server, tmp_path):
    (tmp_path / "roost.toml").write_text("[placement]\nuri_max_bytes = 100\n")
    server.process.send_signal(signal.SIGHUP)
    assert until(lambda: '"event":"workers_replaced"' in server.said)
    assert server.ask("GET", f"/resource_providers?name={'x' * 100}")[0] == 414


def test_metrics_add_up_all_workers_including_dead_ones(server):
    def request_count():
        text = server.watch("/metrics")[1]
        match = re.search(
            r'roost_requests_total{method="GET",route="/placement/resource_providers",status="200"} ([\d.]+)', text
        )
        return float(match[1]) if match else 0.0

    send_requests(server, 20)
    assert until(lambda: request_count() == 20)  # A request is counted once its response is sent.
    os.kill(workers(server)[0], signal.SIGKILL)
    assert until(lambda: "worker_ended" in server.said)
    assert request_count() == 20


def test_one_survey_serves_all_workers(server):
    def surveys():
        return re.findall(r'^roost_survey_timestamp_seconds{survey="(\w+)"}', server.watch("/metrics")[1], re.MULTILINE)

    assert until(lambda: sorted(surveys()) == ["database", "evidence", "fleet"])


def test_stopping_the_parent_stops_all_workers(server):
    pids = workers(server)
    assert server.stop() == 0
    assert not any(is_running(worker) for worker in pids)


def test_workers_end_when_their_parent_is_killed(server):
    pids = workers(server)
    server.process.kill()
    assert until(lambda: not any(is_running(worker) for worker in pids))


def test_readers_of_workers_add_no_zeros_to_the_metrics(tmp_path, postgres_url):
    headers = {"x-auth-token": "admin"}

    def revision():
        text = server.ask("GET", "/metrics", headers={})[2].decode()
        match = re.search(r"^roost_revision ([\d.]+)$", text, re.MULTILINE)
        assert match, text
        return float(match[1])

    with serve("--workers", "2", "--database", postgres_url, noun="up", folder=tmp_path) as server:
        assert server.ask("PUT", "/v1/flavors/small", {"vcpus": 1}, headers=headers)[0] in {200, 201}
        assert until(lambda: revision() > 0)
        for _ in range(8):  # The reader of each worker lists the decisions.
            assert server.ask("GET", "/v1/decisions?host=none", headers=headers)[0] == 200
        assert revision() > 0
