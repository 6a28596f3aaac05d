"""Instances on many agents, of which some fail and some die meanwhile: ``python -m bench.agents``.

A server in a process of its own, agents with the fake driver in several. Clients ask for instances in batches, each of
them for the next one when all of the last have ended; a twentieth of the builds fail, and the processes of agents are
killed in turn and come back: at once, or every third time only when they were given up.
"""

import argparse
import os
import random
import re
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from bench import machine
from bench.workloads import percentile
from roost.cli.text.progress import progress_bar
from tests.support.fleets.products import roost
from tests.support.servers.clusters import AgentsProgram, ServerProgram, guests_on

_SCRIPT = '[[fault]]\naction = "spawn"\nshare = {share}\n\n[[node]]\nvcpus = 16\n'
_DOWN_S = 8  # Seconds after which an agent that is not heard is given up.
_MIB = 2**20


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked, of how many, and how much goes wrong."""

    agents: int = 1_000
    processes: int = 4
    instances: int = 10_000
    batch: int = 100
    clients: int = 4
    failing: float = 0.05
    kill_every_s: float = 4.0  # 0: nobody dies
    database: str = ""  # URL of PostgreSQL; empty: SQLite
    shuffle: bool = False  # whether hosts of the same weight are shuffled

    @property
    def fleets(self) -> list[int]:
        """How many agents each process has."""
        return [
            self.agents * (at + 1) // self.processes - self.agents * at // self.processes
            for at in range(self.processes)
        ]


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """What a run found."""

    ready_s: float  # until all agents were up
    took_s: float  # from the first request until all instances had ended
    statuses: dict[str, int]
    attempts: dict[int, int]  # instances by hosts that they were tried on
    latencies_s: list[float]  # of those that are ACTIVE, from the request on
    kills: int
    faults: list[str]  # why instances are in ERROR
    server_cpu_s: float
    server_peak_bytes: int
    agents_cpu_s: float
    agents_peak_bytes: int
    problems: list[str]  # what should not be


def run(plan: Plan, folder: Path, *, show: Callable[[int, int], None]) -> Found:
    """Let it happen, and look at what came of it."""
    words = ["--database", plan.database] if plan.database else []
    settings = (
        f"[DEFAULT]\nservice_down_time = {_DOWN_S}\n[placement]\nagents_max = {plan.agents + 1000}\n"
        f"[filter_scheduler]\nshuffle_best_same_weighed_hosts = {str(plan.shuffle).lower()}\n"
    )
    server = ServerProgram(*words, folder=folder, settings=settings)
    server.start()
    (folder / "fake.toml").write_text(_SCRIPT.format(share=plan.failing))
    fleets = [
        AgentsProgram(
            server.address,
            folder=folder,
            guests=folder / "guests",
            host=f"rack{number}",
            fleet=count,
            options={"script": folder / "fake.toml"},
        )
        for number, count in enumerate(plan.fleets, start=1)
    ]
    try:
        start = time.perf_counter()
        for fleet in fleets:
            fleet.start()
        _until_up(server, plan.agents)
        ready_s = time.perf_counter() - start
        start = time.perf_counter()
        with _dying(fleets, plan):
            asked = _built(server, plan, show)
        took_s = time.perf_counter() - start
        _until_up(server, plan.agents)  # A process that was away when the last instance ended has to be clean again.
        found = _settled(lambda: _looked_at(server, asked, plan=plan, folder=folder))
    finally:
        for program in (server, *fleets):
            if program.process is not None:
                program.stop()
    audit = roost("audit", "--config", folder / "server.toml", *_data(plan, folder), cwd=folder)
    problems = [*found.pop("problems"), *([] if audit.returncode == 0 else [audit.stdout + audit.stderr])]
    return Found(
        ready_s=ready_s,
        took_s=took_s,
        kills=sum(fleet.kills for fleet in fleets),
        problems=problems,
        server_cpu_s=server.spent.cpu_s,
        server_peak_bytes=server.spent.peak_bytes,
        agents_cpu_s=sum(fleet.spent.cpu_s for fleet in fleets),
        agents_peak_bytes=max(fleet.spent.peak_bytes for fleet in fleets),
        **found,
    )


def _data(plan: Plan, folder: Path) -> list[object]:
    if plan.database:
        (folder / "server.toml").write_text(f'[store]\nurl = "{plan.database}"\n')
    return ["--data", folder]


def _until_up(server: ServerProgram, count: int) -> None:
    """Wait until all agents are up, and the hosts of all are known."""
    end_s = time.monotonic() + 600
    while True:
        agents = server.listed("agents")
        if sum(bool(each["up"]) for each in agents) >= count and len(server.listed("hosts")) >= count:
            return
        assert time.monotonic() < end_s, f"only {len(agents)} agents are there"
        time.sleep(0.5)


@contextmanager
def _dying(fleets: list[AgentsProgram], plan: Plan) -> Iterator[None]:
    """Kill a process of agents every few seconds, and let it come back."""
    is_over = threading.Event()

    def reap() -> None:
        chance, number = random.Random(6), 0
        while plan.kill_every_s and not is_over.wait(plan.kill_every_s):
            number += 1
            fleet = chance.choice(fleets)
            fleet.kill()
            is_over.wait(_DOWN_S + 4.0 if number % 3 == 0 else 0.5)
            fleet.start()

    reaper = threading.Thread(target=reap)
    reaper.start()
    try:
        yield
    finally:
        is_over.set()
        reaper.join()


def _built(server: ServerProgram, plan: Plan, show: Callable[[int, int], None]) -> list[str]:
    """Ask for all instances, and wait until each has ended; return their uuids."""
    batches = iter(range(0, plan.instances, plan.batch))
    lock, uuids, errors = threading.Lock(), [], []

    def ask() -> None:
        try:
            while True:
                with lock:
                    at = next(batches, None)
                if at is None:
                    return
                found = _batch(server, at, min(plan.batch, plan.instances - at))
                with lock:
                    uuids.extend(found)
                    show(len(uuids), plan.instances)
        except BaseException as error:
            errors.append(error)
            raise

    clients = [threading.Thread(target=ask) for _ in range(plan.clients)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    assert not errors, errors
    return uuids


def _batch(server: ServerProgram, at: int, count: int) -> list[str]:
    body = {"flavor": {"name": "small", "vcpus": 1, "memory_mb": 256}, "name": f"b{at}", "count": count}
    status, told = server.asked("POST", "/v1/instances", body, **{"idempotency-key": f"batch-{at}"})
    assert status == 202, told
    assert isinstance(told, dict)
    while server.asked("GET", f"/v1/operations/{told['operation']}?wait_s=20")[1]["outcome"] == "open":  # type: ignore[index]
        pass
    return list(told["instances"])


def _settled(look: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Look until all is as it should be, since agents that came back undo what nobody wants; a minute at most."""
    end_s = time.monotonic() + 60
    while (found := look())["problems"] and time.monotonic() < end_s:
        time.sleep(1)
    return found


def _looked_at(server: ServerProgram, asked: list[str], *, plan: Plan, folder: Path) -> dict[str, Any]:
    """Compare what the server says with what was asked and what the hosts have."""
    shown = {each["uuid"]: each for each in server.listed("instances")}
    guests = guests_on(folder / "guests")
    problems = [f"{uuid} was asked for and is not known" for uuid in asked if uuid not in shown]
    problems += [f"{len(asked)} of {plan.instances} were answered"] if len(asked) < plan.instances else []
    latencies = []
    for uuid, each in shown.items():
        on = [host for host, state in guests.get(uuid, []) if state == "running"]
        if each["status"] == "ACTIVE":
            latencies.append(each["changed_at_s"] - each["created_at_s"])
            problems += [] if on == [each["host"]] else [f"{uuid} is ACTIVE on {each['host']}, and runs on {on}"]
        elif each["status"] != "ERROR" or not each["fault"]:
            problems.append(f"{uuid} is {each['status']} {each['task']}: {each['fault']}")
        elif guests.get(uuid):
            problems.append(f"{uuid} is in ERROR, and is on {guests[uuid]}")
    attempts = Counter(
        len(server.asked("GET", f"/v1/instances/{uuid}")[1]["attempts"])  # type: ignore[index]
        for uuid in random.Random(6).sample(asked, min(len(asked), 1_000))
    )
    return {
        "statuses": dict(Counter(str(each["status"]) for each in shown.values())),
        "attempts": dict(attempts),
        "latencies_s": latencies,
        "problems": problems,
        "faults": [str(each["fault"]) for each in shown.values() if each["status"] == "ERROR"],
    }


def to_text(plan: Plan, found: Found) -> str:
    """Write what was found as a table."""
    p50, p90, p99, worst = (percentile(found.latencies_s, share) for share in (0.5, 0.9, 0.99, 1.0))
    tries = ", ".join(f"{count} on {number}" for number, count in sorted(found.attempts.items()))
    lines = [
        ("agents", f"{plan.agents:,} in {plan.processes} processes, all up after {found.ready_s:.1f} s"),
        ("instances", ", ".join(f"{count:,} {status}" for status, count in sorted(found.statuses.items()))),
        ("builds", f"{plan.instances / found.took_s:,.0f} a second: {plan.instances:,} in {found.took_s:.1f} s"),
        ("until ACTIVE", f"p50 {p50:.2f} s, p90 {p90:.2f} s, p99 {p99:.2f} s, longest {worst:.2f} s"),
        ("hosts tried", f"{tries} (a sample)"),
        ("killed", f"{found.kills} processes of agents"),
        ("server", f"{found.server_cpu_s:.1f} s of processor time, {found.server_peak_bytes / _MIB:,.0f} MiB"),
        ("agents", f"{found.agents_cpu_s:.1f} s, {found.agents_peak_bytes / _MIB:,.0f} MiB the largest process"),
        ("audit", "clean; each ACTIVE instance runs once, on its host" if not found.problems else "NOT CLEAN"),
    ]
    text = "\n".join(f"{name:14} {told}" for name, told in lines)
    why = Counter(re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "U", fault)[:100] for fault in found.faults)
    return "\n".join([text, *(f"{count} in ERROR: {fault}" for fault, count in why.items()), *found.problems[:20]])


def main() -> None:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(prog="python -m bench.agents", description=__doc__)
    defaults = Plan()
    for name, about in (
        ("agents", "how many"),
        ("processes", "that they live in"),
        ("instances", "how many"),
        ("batch", "instances of one request"),
        ("clients", "that ask at the same time"),
        ("failing", "share of builds"),
        ("kill-every-s", "a process of agents dies; 0: none does"),
        ("database", "URL of PostgreSQL; default: SQLite"),
    ):
        default = getattr(defaults, name.replace("-", "_"))
        parser.add_argument(f"--{name}", type=type(default), default=default, help=about)
    parser.add_argument("--shuffle", action="store_true", help="shuffle hosts of the same weight")
    parser.add_argument("--folder", type=Path, help="where all is kept; default: the place for temporary files")
    options = vars(parser.parse_args())
    folder = options.pop("folder")
    plan = Plan(**options)
    with tempfile.TemporaryDirectory(prefix="roost-agents-", dir=folder) as made, progress_bar("instances") as show:
        print(machine.to_text(machine.describe(Path(made))), flush=True)
        found = run(plan, Path(made), show=show)
    print(to_text(plan, found))
    print(f"load at the end: {os.getloadavg()[0]:.2f}")
    raise SystemExit(1 if found.problems else 0)


if __name__ == "__main__":
    main()
