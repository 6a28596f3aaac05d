"""Acknowledged commits survive SIGKILL completely, and the next start needs no repair."""

import os
import random
import select
import signal
import subprocess
import sys
import time
from contextlib import closing

import psycopg
import pytest

from roost.model.settings.roost_settings import Store as StoreSettings
from roost.model.writes import CLASS_BITS
from roost.store.audit import audit
from roost.store.backends import open_store
from tests.contract.stores import (
    SHARED,
    URL_FIXTURES,
    VCPU,
    claim,
    commit,
    evidence,
    inventory,
    item,
    offer,
    provider,
    release,
    state,
    uuid_of,
)
from tests.support.databases import mariadb, postgres
from tests.support.fleets.products import ROOT, environ
from tests.support.missing_programs import skip_test
from tests.support.wait import wait_until

pytestmark = pytest.mark.long

PROVIDERS = 20


def work(url: str, seed: int) -> None:
    """Claim and release forever; print each claimed or released consumer once its commit is durable.

    Runs in a process of its own, until it is killed.
    """
    draw = random.Random(seed)
    with closing(open_store(url, settings=StoreSettings())) as store:
        list(store.load().writes)
        held = []
        while True:
            count = draw.choice((1, 4, 32))
            first = store.reserve("consumer", count)
            items, names = [], []
            for at in range(count):
                one = claim(first + at, *((inventory(each), 1) for each in draw.sample(range(1, PROVIDERS + 1), 3)))
                items.append(item(one, rows=[evidence(first + at, body=bytes(300))]))
                names.append(f"+{first + at}")
                held.append(one)
            while len(held) > 200:
                gone = held.pop(draw.randrange(len(held) - count))
                items.append(item(release(gone)))
                names.append(f"-{gone.consumers[0].id}")
            if draw.random() < 0.1:  # also covers commits whose rows are checked one by one
                number = store.reserve("provider", 1)
                items.append(item(provider(1000 + number), offer(1000 + number, cpu=1)))
                names.append("")
            print(",".join(f"?{name}" for name in names), flush=True)
            assert set(commit(store, *items)) == {""}
            print(",".join(names), flush=True)


class WorkerOutput:
    """The output of a killed worker: claimed and released consumers, one commit per line."""

    def __init__(self, output: bytes) -> None:
        self.done: list[list[str]] = []
        self.unfinished: list[str] = []  # the commit that was not acknowledged
        # The kill cut off an incomplete line: its commit was not started, or not acknowledged.
        for line in output.split(b"\n")[:-1]:
            names = line.decode().split(",")
            if names[0].startswith("?"):
                self.unfinished = [name[1:] for name in names]
            else:
                assert names == self.unfinished
                self.done.append(names)
                self.unfinished = []


def _count_clients(url: str) -> int:
    """Return the number of connections to a database; the server may still finish requests of dead clients."""
    if not url.startswith("postgresql"):
        return len(mariadb.execute(url, mariadb.OTHERS))
    with psycopg.connect(url, autocommit=True) as connection:
        others = (
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
            "AND backend_type = 'client backend' AND pid <> pg_backend_pid()"
        )
        return connection.execute(others).fetchone()[0]


def after(consumers: set[int], names: list[str]) -> set[int]:
    """Return the consumers that exist after a commit."""
    claimed = {int(name[1:]) for name in names if name.startswith("+")}
    freed = {int(name[1:]) for name in names if name.startswith("-")}
    return (consumers | claimed) - freed


def run_and_kill(url: str, seed: int, *, after_s: float, kill=None) -> WorkerOutput:
    """Run a worker for a while; then call ``kill``, if given, and kill the worker."""
    script = f"from tests.contract.test_crash import work; work({url!r}, {seed})"
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT, env=environ()
    )
    assert process.stdout is not None
    assert process.stderr is not None
    ready, _, _ = select.select([process.stdout], [], [], 60)
    assert ready, "the worker never started"
    output, deadline = b"", time.monotonic() + after_s
    while (left := deadline - time.monotonic()) > 0:
        if select.select([process.stdout], [], [], left)[0]:
            output += os.read(process.stdout.fileno(), 1 << 16)
    if kill is not None:
        kill()
    process.send_signal(signal.SIGKILL)
    output += process.stdout.read()
    process.stderr.close()
    process.stdout.close()
    process.wait()
    if kill is None and "://" in url:
        wait_until(lambda: _count_clients(url) == 0)
    return WorkerOutput(output)


def check(url: str, known: set[int], output: WorkerOutput) -> set[int]:
    """Compare a database with the acknowledged commits.

    Args:
        url: the database.
        known: the consumers before this round.
        output: the output of this round.

    Returns:
        The consumers that exist now.
    """
    assert audit(url) == []
    for names in output.done:
        known = after(known, names)
    with closing(open_store(url, settings=StoreSettings())) as store:
        rows = state(store)
        present = {row[0] for row in rows.get("consumers", [])}
        assert present in (known, after(known, output.unfinished)), "a commit is lost or half there"
        assert {row[0] for row in rows.get("instances", [])} == present
        assert len(rows.get("takes", [])) == 3 * len(present)
        decided = {row.uuid for row in store.evidence(newest=10**6)}
        missing = present - {number for number in present if uuid_of("decision", number) in decided}
        assert not missing, "a claim is there without its evidence"
    return present


def prepare(url: str) -> None:
    with closing(open_store(url, settings=StoreSettings())) as store:
        offers = [item(provider(one), offer(one, cpu=10**6)) for one in range(1, PROVIDERS + 1)]
        assert commit(store, item(VCPU), *offers) == [""] * (1 + PROVIDERS)


def rounds(url: str, count: int, *, seed: int = 1) -> None:
    draw = random.Random(seed)
    known: set[int] = set()
    prepare(url)
    total = 0
    for number in range(count):
        output = run_and_kill(url, seed * 1000 + number, after_s=draw.uniform(0.02, 0.4))
        total += len(output.done)
        known = check(url, known, output)
    assert total > 0


def test_sqlite_survives_kills(tmp_path):
    rounds(str(tmp_path / "roost.db"), 3)


@pytest.mark.parametrize("kind", SHARED)
def test_shared_database_survives_kills_of_its_clients(kind, request):
    rounds(request.getfixturevalue(URL_FIXTURES[kind]), 3)


def test_kill_during_file_creation_leaves_no_damage(tmp_path):
    path = tmp_path / "roost.db"
    for delay in (0.0, 0.3, 0.5, 0.55, 0.6):
        script = f"from roost.store.sqlite.store import SqliteStore; SqliteStore({str(path)!r})"
        process = subprocess.Popen([sys.executable, "-c", script], env=environ())
        time.sleep(delay)
        process.kill()
        process.wait()
        path.unlink(missing_ok=True)
    prepare(str(path))
    assert audit(path) == []


@pytest.mark.soak
def test_sqlite_survives_fifty_kills(tmp_path):
    rounds(str(tmp_path / "roost.db"), 50, seed=2)


@pytest.mark.soak
@pytest.mark.parametrize("kind", SHARED)
def test_shared_database_survives_fifty_kills_of_its_clients(kind, request):
    rounds(request.getfixturevalue(URL_FIXTURES[kind]), 50, seed=2)


@pytest.mark.soak
def test_postgresql_survives_kills_of_its_server():
    server = postgres.Server(fsync=True)
    try:
        kill_often(server, server.url("postgres"))
    finally:
        server.stop()


def test_mariadb_survives_kills_of_its_server():
    if mariadb.SERVE is None or mariadb.INSTALL is None:
        skip_test(mariadb.MISSING)
    with mariadb.own_server() as server:
        server.create_databases("roost")
        kill_often(server, server.url("roost"), count=3)


def kill_often(server, url, *, count=10):
    draw, known = random.Random(3), set()
    prepare(url)
    for number in range(count):
        output = run_and_kill(url, 3000 + number, after_s=draw.uniform(0.05, 0.5), kill=server.kill)
        server.start()
        known = check(url, known, output)


def test_class_bits_match_the_divisor_of_the_audit():
    assert 1 << CLASS_BITS == 65536
