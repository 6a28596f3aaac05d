"""Several processes that answer on one socket, over one PostgreSQL database."""

import os
import re
import signal
import time
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest

from tests.support.servers.servers import serve

pytestmark = pytest.mark.long

DEADLINE_S = 60


@pytest.fixture
def server(tmp_path, postgres_url):
    with serve(
        "--workers", "2", "--metrics-listen", "127.0.0.1:0", "--database", postgres_url, folder=tmp_path
    ) as found:
        yield found


def workers(server):
    """Return the processes of the workers: what the parent has spawned and still runs."""
    return sorted(int(folder.name) for folder in Path("/proc").iterdir() if _is_worker(folder, server.process.pid))


def _is_worker(folder, parent):
    try:
        told = (folder / "stat").read_text().rpartition(")")[2].split()
        return int(told[1]) == parent and "spawn_main" in (folder / "cmdline").read_text()
    except OSError:  # No process, or one that has ended meanwhile.
        return False


def lives(process):
    return Path(f"/proc/{process}").exists()


def until(done):
    """Wait for something; say whether it came."""
    deadline = time.monotonic() + DEADLINE_S
    while not (found := done()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return found


def ask_often(server, count):
    """Send requests on connections of their own; return their answers."""
    return [server.ask("GET", "/resource_providers") for _ in range(count)]


def test_what_one_worker_wrote_the_other_shows(server):
    for number in range(10):
        assert server.ask("POST", "/resource_providers", {"name": f"p{number}"})[0] == 200
        for _, _, body in ask_often(server, 4):
            assert len(body["resource_providers"]) == number + 1


def test_a_killed_worker_is_missed_by_nobody_and_comes_back(server):
    before = workers(server)
    assert len(before) == 2
    server.ask("POST", "/resource_providers", {"name": "kept"})
    os.kill(before[0], signal.SIGKILL)
    statuses = set()

    def is_back():
        with suppress(ConnectionError):  # What the killed one had let in already is gone with it.
            statuses.add(server.ask("GET", "/resource_providers")[0])
        return len(workers(server)) == 2 and before[0] not in workers(server)

    assert until(is_back)
    assert statuses <= {200}
    assert server.watch("/healthz") == (200, "ok\n")
    assert '"event":"worker_ended","exit_code":-9' in server.said
    assert [each["name"] for each in server.ask("GET", "/resource_providers")[2]["resource_providers"]] == ["kept"]


def test_what_keeps_a_worker_from_coming_back_is_in_the_log(server, postgres_url):
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    os.kill(workers(server)[0], signal.SIGKILL)
    assert until(lambda: '"exit_code":7' in server.said)
    assert re.search(r'"exit_code":7,"problem":"[^"]*newer', server.said)
    assert server.ask("GET", "/resource_providers")[0] == 200  # The other one knows its columns.


def test_numbers_of_all_workers_are_added_up_and_none_is_lost_with_a_worker(server):
    def counted():
        text = server.watch("/metrics")[1]
        found = re.search(r'roost_requests_total{method="GET",route="/resource_providers",status="200"} ([\d.]+)', text)
        return float(found[1]) if found else 0.0

    ask_often(server, 20)
    assert until(lambda: counted() == 20)  # A request is counted once its answer is sent.
    os.kill(workers(server)[0], signal.SIGKILL)
    assert until(lambda: "worker_ended" in server.said)
    assert counted() == 20


def test_stopping_the_parent_stops_all(server):
    found = workers(server)
    assert server.stop() == 0
    assert not any(lives(worker) for worker in found)


def test_workers_end_when_their_parent_is_gone(server):
    found = workers(server)
    server.process.kill()
    assert until(lambda: not any(lives(worker) for worker in found))
