"""Processes killed under load: their answers are in the database, and the next process continues."""

import os
import random
import signal
import sqlite3
import sys
import time
import uuid
from collections import Counter
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import psycopg
import pytest

from roost.app import audit_database, open_roost
from roost.errors import RoostError
from roost.model.fleet import Departure
from roost.model.group import ServerGroup
from roost.model.request import Request
from roost.simulator.stable_uuids import uuid_of
from tests.support.fleets.products import fleet, kill, request, settings_for, worker

pytestmark = pytest.mark.long

HOSTS, VCPUS = 40, 24
GROUPS = tuple(
    ServerGroup(uuid=uuid_of(policy, str(number)), policy=policy, max_server_per_host=1 + number % 3)
    for policy in ("affinity", "anti-affinity", "soft-anti-affinity")
    for number in range(10)
)


class Report(msgspec.Struct):
    """Output of a process: first the plan of a group, then its results."""

    is_done: bool
    gone: list[str] = []  # departing instances
    asked: list[list[str]] = []  # instances of each request
    decisions: list[tuple[str, str, list[tuple[str, str, int]]]] = []  # uuid, outcome, (instance, host, VCPU)


def work(config: str | None, data: str | None, seed: int) -> None:
    """Place and release instances forever, in a process of its own, until it is killed."""
    draw = random.Random(seed)
    with open_roost(None if config is None else Path(config), None if data is None else Path(data)) as product:
        held = [str(uuid.UUID(bytes=body)) for body in product.state.holders]
        print("ready", flush=True)
        sys.stdin.readline()
        while True:
            acts = [_request(draw) for _ in range(draw.choice((1, 6, 40)))]
            gone = []
            while len(held) > HOSTS * 4:
                gone.append(held.pop(draw.randrange(len(held))))
            acts_and_departures: list[Request | Departure] = [
                *acts,
                *(Departure(instance_uuids=(one,)) for one in gone),
            ]
            draw.shuffle(acts_and_departures)
            asked = [list(act.instance_uuids) for act in acts_and_departures if isinstance(act, Request)]
            _print(Report(False, gone, asked))
            done = Report(True, gone, asked)
            for result in product.outcomes(acts_and_departures):
                assert not isinstance(result, RoostError), result
                if result is not None:
                    picks = [(pick.instance_uuid, pick.host, _vcpus(pick.allocations)) for pick in result.picks]
                    done.decisions.append((result.uuid, result.outcome, picks))
                    held += [instance for instance, _, _ in picks]
            _print(done)


def _request(draw: random.Random) -> Request:
    count = draw.choice((1, 1, 1, 3, 12))
    group = draw.choice(GROUPS).uuid if draw.random() < 0.3 else None
    uuids = tuple(str(uuid.UUID(int=draw.getrandbits(128), version=4)) for _ in range(count))
    return request(draw.choice((1, 2, 5)), count=count, instance_uuids=uuids, group=group)


def _vcpus(allocations: dict[str, dict[str, int]]) -> int:
    return sum(amounts["VCPU"] for amounts in allocations.values())


def _print(report: Report) -> None:
    os.write(1, msgspec.json.encode(report) + b"\n")


class Record:
    """All reports of all processes, and the resulting content of the database."""

    def __init__(self) -> None:
        self.alive: dict[str, tuple[str, int]] = {}  # instance -> host, VCPU
        self.decisions: dict[str, str] = {}  # uuid -> outcome
        self.counts: Counter[str] = Counter()
        self.unsure = Report(False)  # the plan that was under way at the kill

    def read(self, lines: Iterable[bytes]) -> None:
        """Read the output of one process."""
        self.unsure = Report(False)
        for line in lines:
            report = msgspec.json.decode(line, type=Report)
            self.unsure = Report(False) if report.is_done else report
            if not report.is_done:
                continue
            self.counts["groups"] += 1
            for decision_uuid, outcome, picks in report.decisions:
                self.decisions[decision_uuid] = outcome
                self.counts[outcome] += 1
                self.alive.update({instance: (host, vcpus) for instance, host, vcpus in picks})
            for instance in report.gone:
                self.alive.pop(instance, None)

    def compare(self, query: Any) -> None:
        """Compare with the tables; accept changes of the last, unreported group."""
        present: dict[str, tuple[str, int]] = {}
        for body, host, vcpus in query(
            """SELECT c.uuid, h.host, a.amount FROM consumer c LEFT JOIN instance i ON i.consumer_id = c.id
               LEFT JOIN host h ON h.id = i.host_id
               LEFT JOIN allocation a ON a.consumer_id = c.id
               AND a.inventory_id = h.provider_id * 65536 + (SELECT id FROM symbol WHERE name = 'VCPU')"""
        ):
            instance = str(uuid.UUID(bytes=body)) if isinstance(body, bytes) else str(body)
            assert instance not in present, "an instance is doubled"
            present[instance] = (host, vcpus)
        (takes,) = next(iter(query("SELECT count(*) FROM allocation")))
        assert takes == 2 * len(present), "an instance is half there"
        lost = {one for one in self.alive.items() - present.items() if one[0] not in self.unsure.gone}
        assert not lost, "what was acknowledged is lost, or elsewhere"
        fresh = present.keys() - self.alive.keys()
        for asked in self.unsure.asked:
            found = fresh.intersection(asked)
            assert len(found) in (0, len(asked)), "a request is half there"
            fresh -= found
        assert not fresh, "what departed, or never was, is there"
        stored = {
            str(uuid.UUID(bytes=body)) if isinstance(body, bytes) else str(body): outcome
            for body, outcome in query("SELECT uuid, outcome FROM decision")
        }
        assert self.decisions.items() <= stored.items(), "evidence of an acknowledged decision is lost"
        self.counts["unreported"] += len(present.keys() ^ self.alive.keys())
        self.alive = present


class Sqlite:
    """A SQLite file in a data folder."""

    def __init__(self, folder: Path) -> None:
        self.config, self.data = None, folder

    def query(self, text: str) -> list[tuple[Any, ...]]:
        """Read rows directly with SQL."""
        with closing(sqlite3.connect(f"file:{self.data / 'roost.db'}?mode=ro", uri=True)) as connection:
            return connection.execute(text).fetchall()


class Postgres:
    """A PostgreSQL database."""

    def __init__(self, url: str, folder: Path) -> None:
        self.config, self.data, self._url = settings_for(url, folder), None, url

    def query(self, text: str) -> list[tuple[Any, ...]]:
        """Read rows directly with SQL."""
        with psycopg.connect(self._url) as connection:
            return connection.execute(text.encode()).fetchall()


def run_and_kill(database: Sqlite | Postgres, seed: int, *, after_s: float) -> list[bytes]:
    """Run a process for a while and kill it; return its output without an incomplete line."""
    words = [None if each is None else str(each) for each in (database.config, database.data)]
    child = worker("tests.contract.test_process_crash:work", *words, seed)
    try:
        assert child.stdout is not None
        assert child.stdin is not None
        assert child.stdout.readline() == "ready\n", "it could not open the database"
        child.stdin.write("go\n")
        time.sleep(after_s)
        child.send_signal(signal.SIGKILL)
        return child.stdout.read().encode().split(b"\n")[:-1]
    finally:
        kill(child)


def rounds(database: Sqlite | Postgres, count: int, *, seed: int) -> Counter[str]:
    """Run and kill processes one after another on one database, with a check after each.

    Further ones follow until there are grants and refusals, since a slow machine decides little before a kill.
    """
    with open_roost(database.config, database.data) as product:
        product.install(fleet(HOSTS, vcpus=VCPUS, groups=GROUPS))
    draw, record = random.Random(seed), Record()
    for number in range(10 * count):
        if number >= count and min(record.counts["granted"], record.counts["refused"]) > 0:
            break
        record.read(run_and_kill(database, seed * 1000 + number, after_s=draw.uniform(0.02, 0.5)))
        assert audit_database(database.config, database.data, {}) == []
        record.compare(database.query)
    assert min(record.counts["granted"], record.counts["refused"]) > 0
    with open_roost(database.config, database.data) as product:
        assert len(product.state.holders) == len(record.alive)
        product.decide(request())
        assert all(product.replay(decision.uuid).is_same for decision in product.decisions(50))
    record.counts["alive"] = len(record.alive)
    return record.counts


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request, tmp_path):
    if request.param == "sqlite":
        return Sqlite(tmp_path)
    return Postgres(request.getfixturevalue("postgres_url"), tmp_path)


def test_answers_of_a_killed_process_are_durable_and_the_next_one_continues(database):
    rounds(database, 2, seed=1)


@pytest.mark.soak
def test_fifty_killed_processes_lose_nothing(database, capsys):
    counts = rounds(database, 50, seed=2)
    with capsys.disabled():
        print(
            f"\nkilled 50 times on {type(database).__name__}: {counts['granted']:,} granted and "
            f"{counts['refused']:,} refused decisions acknowledged in {counts['groups']:,} groups, "
            f"none lost, none half there, none doubled; {counts['unreported']:,} instances came or went "
            f"in groups that were cut short; {counts['alive']:,} alive; the audit found nothing 50 times"
        )
