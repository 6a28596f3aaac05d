"""Processes that decide concurrently on one PostgreSQL, and a store that loses a race at its next commit."""

import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

import msgspec

from roost.app import audit_database, open_roost
from roost.errors import RoostError
from roost.model.request import Request
from roost.model.writes import Item
from roost.ports import CommitResult
from roost.store.postgresql.store import PostgresStore
from tests.support.fleets.products import kill, worker


class Answer(msgspec.Struct):
    """The outcome of one request in a process, with its start and end."""

    outcome: str  # granted, refused, or the name of an error
    began_s: float  # by a clock that all processes share
    ended_s: float
    vcpus: int
    hosts: list[str] = []
    conflicts: list[str] = []
    group: str | None = None


def work(config: str) -> None:
    """Read batches of requests as JSON, decide them after a start signal, and print the answers."""
    plan = msgspec.json.decode(sys.stdin.readline(), type=list[list[Request]])
    with open_roost(Path(config)) as product:
        print("ready", flush=True)
        sys.stdin.readline()
        for acts in plan:
            began_s = time.monotonic()
            results = product.outcomes(acts)
            for act, result in zip(acts, results, strict=True):
                answer = Answer(type(result).__name__, began_s, time.monotonic(), act.flavor.vcpus, group=act.group)
                if not isinstance(result, RoostError):
                    assert result is not None
                    answer.outcome, answer.conflicts = result.outcome, result.conflicts
                    answer.hosts = [pick.host for pick in result.picks]
                print(msgspec.json.encode(answer).decode())
        print(flush=True)


def race(config: Path, plans: Sequence[list[list[Request]]]) -> list[list[Answer]]:
    """Decide each plan in a process of its own, concurrently; return the answers of each."""
    with ExitStack() as stack:
        children = []
        for plan in plans:
            children.append(worker("tests.contract.races:work", str(config)))
            stack.callback(kill, children[-1])
            children[-1].stdin.write(msgspec.json.encode(plan).decode() + "\n")
        for child in children:
            assert child.stdout.readline() == "ready\n"
        for child in children:
            child.stdin.write("go\n")
        answers = [
            [msgspec.json.decode(line, type=Answer) for line in iter(child.stdout.readline, "\n")] for child in children
        ]
        assert [child.wait(60) for child in children] == [0] * len(plans)
    assert audit_database(config, None, {}) == []
    return answers


def batches(acts: list[Request], size: int) -> list[list[Request]]:
    return [acts[first : first + size] for first in range(0, len(acts), size)]


class RivalStore(PostgresStore):
    """A store that runs a rival's action just before its next commit."""

    before: Callable[[], object] | None = None

    def commit(self, items: Sequence[Item]) -> CommitResult:
        """Run the rival's action once, then commit."""
        before, self.before = self.before, None
        if before is not None:
            before()
        return super().commit(items)
