"""Durable decisions of 64 clients through one server process: ``python -m bench.http_clients``.

One process of clients holds all connections to one ``roost up`` on SQLite. Each way of asking has its turn, several
times over: a request at a time on a kept connection; a new connection for each request; four requests at once on a
connection; batches of 16 and 64, from 8 clients, because the server has a limit of waiting requests; and the client
library. Prints decisions a second, the processor time of the server for a decision, and its ratio to that of kept
connections. With ``--py-spy PROGRAM``, prints the shares of the parts of the server in its processor time, instead, for
one way. The clients share the processors with the server.
"""

import argparse
import asyncio
import re
import shutil
import statistics
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import msgspec

from bench.databases import Databases
from bench.fleets import requests_of
from bench.workloads import Workload
from roost.api.v1.schemas.decisions import DecisionBody
from roost.client import AsyncClient, ClientOptions
from roost.model.documents.request_document import FlavorEntry
from tests.support.servers.clusters import resource_use
from tests.support.servers.servers import RunningServer, serve

_CLIENTS = 64
_BATCH_CLIENTS = 8
_SHAPES = 5
_DEPTH = 4  # requests in progress on a connection with pipelining
_LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)
_HEAD = "host: localhost\r\nx-auth-token: admin\r\ncontent-type: application/json\r\n"

# The parts of the server, by the innermost frame in one of these files; the first match counts.
PARTS = {
    "store: commit": ("roost/store/",),
    "decision: search, rules, claim, evidence": (
        "roost/scheduler/",
        "roost/engine/",
        "roost/product.py",
        "roost/placement/placement_service.py",
        "roost/placement/current.py",
    ),
    "handler: request, checks, key, answer": (
        "roost/api/v1/handlers/",
        "roost/api/v1/schemas/",
        "roost/api/v1/idempotency.py",
        "roost/api/v1/call.py",
        "roost/api/v1/current_names.py",
        "roost/api/changes/",
        "roost/model/",
        "roost/conductor/",
        "roost/agents/",
    ),
    "log, metrics, events": ("roost/observe/", "roost/api/log_outcome.py", "prometheus_client/", "roost/app/"),
    "application: identity, route, policy, decoding": ("roost/api/v1/", "roost/api/access/", "roost/api/path_tree.py"),
    "thread of decisions: queue and groups": ("roost/placement/", "threading.py"),
    "HTTP: parsing, headers, sending": ("roost/api/server/", "uvicorn/", "httptools/"),
    "ASGI: request, limits, hand-over": ("roost/api/",),
}
OTHER = "event loop and others"

Ask = Callable[[int, Sequence[bytes]], Awaitable[None]]


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one turn of a way of asking."""

    decisions_per_s: float
    server_cpu_ms: float  # for a decision


def bodies_of(count: int, *, hosts: int) -> list[bytes]:
    """Return the bodies of requests for five shapes."""
    workload = Workload(name="http", kind="served", about="", hosts=hosts, shapes=_SHAPES, requests=count)
    return [
        msgspec.json.encode(
            {
                "flavor": msgspec.structs.asdict(request.flavor),
                "project_id": request.project_id,
                "availability_zone": request.availability_zone,
            }
        )
        for request in requests_of(workload)[:count]
    ]


def message_of(path: str, body: bytes, *, more: str = "") -> bytes:
    """Return a request as bytes."""
    return f"POST {path} HTTP/1.1\r\n{_HEAD}{more}content-length: {len(body)}\r\n\r\n".encode() + body


async def read_answer(reader: asyncio.StreamReader, *, granted: int) -> None:
    """Read an answer, and check its number of granted decisions."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = _LENGTH.search(head)
    assert length is not None, head
    body = await reader.readexactly(int(length[1]))
    assert head.startswith((b"HTTP/1.1 201", b"HTTP/1.1 200")), (head, body[:500])
    assert body.count(b'"outcome":"granted"') == granted, body[:500]


async def ask_kept(port: int, bodies: Sequence[bytes]) -> None:
    """Ask one after the other, on one connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**20)
    for body in bodies:
        writer.write(message_of("/v1/decisions", body))
        await read_answer(reader, granted=1)
    writer.close()


async def ask_on_new_connections(port: int, bodies: Sequence[bytes]) -> None:
    """Ask one after the other, each on a connection of its own."""
    for body in bodies:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**20)
        writer.write(message_of("/v1/decisions", body, more="connection: close\r\n"))
        await read_answer(reader, granted=1)
        writer.close()


async def ask_pipelined(port: int, bodies: Sequence[bytes]) -> None:
    """Ask several at a time on one connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**20)
    for at in range(0, len(bodies), _DEPTH):
        part = bodies[at : at + _DEPTH]
        writer.write(b"".join(message_of("/v1/decisions", body) for body in part))
        for _ in part:
            await read_answer(reader, granted=1)
    writer.close()


def ask_in_batches(size: int) -> Ask:
    """Return the function that asks in batches of a size, on one connection."""

    async def ask(port: int, bodies: Sequence[bytes]) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**20)
        for at in range(0, len(bodies), size):
            part = bodies[at : at + size]
            entries = b",".join(b'{"request":' + body + b"}" for body in part)
            writer.write(message_of("/v1/decisions/batch", b'{"requests":[' + entries + b"]}"))
            await read_answer(reader, granted=len(part))
        writer.close()

    return ask


async def ask_with_library(port: int, bodies: Sequence[bytes]) -> None:
    """Ask one after the other through the client library, with an idempotency key for each request."""
    async with AsyncClient(
        f"http://127.0.0.1:{port}", token="admin", options=ClientOptions(connections_max=1)
    ) as client:
        for body in bodies:
            fields = msgspec.json.decode(body)
            fields["flavor"] = msgspec.convert(fields["flavor"], FlavorEntry)
            decision = await client.decide(DecisionBody(**fields))
            assert decision.outcome == "granted", decision.reason


# Each way, with its number of clients.
WAYS: dict[str, tuple[Ask, int]] = {
    "kept": (ask_kept, _CLIENTS),
    "closed": (ask_on_new_connections, _CLIENTS),
    "pipelined": (ask_pipelined, _CLIENTS),
    "batch-16": (ask_in_batches(16), _BATCH_CLIENTS),
    "batch-64": (ask_in_batches(64), _BATCH_CLIENTS),
    "library": (ask_with_library, _CLIENTS),
}


def take_turn(server: RunningServer, way: str, bodies: Sequence[bytes]) -> Turn:
    """Ask with all clients at once."""
    ask, clients = WAYS[way]
    share = len(bodies) // clients

    async def run() -> None:
        await asyncio.gather(*(ask(server.port, bodies[at * share : (at + 1) * share]) for at in range(clients)))

    cpu_s, _ = resource_use(server.process.pid)
    start_s = time.perf_counter()
    asyncio.run(run())
    took_s = time.perf_counter() - start_s
    used_s = resource_use(server.process.pid)[0] - cpu_s
    return Turn(decisions_per_s=len(bodies) / took_s, server_cpu_ms=used_s / len(bodies) * 1e3)


def part_of(stack: str) -> str:
    """Return the part of a stack, whose frames are outermost first; see ``PARTS``."""
    for frame in reversed(stack.split(";")):
        for part, files in PARTS.items():
            if any(file in frame for file in files):
                return part
    return OTHER


def shares_of(folded: str) -> dict[str, float]:
    """Return the share of each part in a profile of folded stacks, largest first."""
    counts: Counter[str] = Counter()
    for line in folded.splitlines():
        stack, _, count = line.rpartition(" ")
        counts[part_of(stack)] += int(count)
    total = sum(counts.values())
    return {part: count / total for part, count in counts.most_common()}


def print_profile(server: RunningServer, options: argparse.Namespace, *, bodies: Sequence[bytes], folder: Path) -> None:
    """Profile the server while clients ask in one way."""
    path = folder / "profile.txt"
    words = [options.py_spy, "record", "--gil", "--full-filenames", "--format", "raw", "--rate", "400"]
    words += ["--pid", str(server.process.pid), "--output", str(path), "--duration", "600"]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as spy:
        time.sleep(1.0)
        turns = [take_turn(server, options.ways[0], bodies) for _ in range(options.turns)]
        spy.send_signal(2)
    cpu_ms = statistics.median(turn.server_cpu_ms for turn in turns)
    print(f"{options.ways[0]}: {cpu_ms:.3f} ms of processor time a decision, with the profiler")
    for part, share in shares_of(path.read_text(encoding="utf-8")).items():
        print(f"{part:48} {share:6.1%} {share * cpu_ms:8.3f} ms")
    if options.stacks is not None:
        shutil.copyfile(path, options.stacks)


def print_turns(server: RunningServer, options: argparse.Namespace, bodies: Sequence[bytes]) -> None:
    """Print the medians of all ways, which take turns."""
    turns: dict[str, list[Turn]] = {way: [] for way in options.ways}
    for _ in range(options.turns):
        for way in options.ways:
            turns[way].append(take_turn(server, way, bodies))
    first = statistics.median(turn.server_cpu_ms for turn in turns[options.ways[0]])
    print(f"{'way':10} {'decisions/s':>12} {'server ms':>10} {'ratio':>6}")
    for way, own in turns.items():
        rate = statistics.median(turn.decisions_per_s for turn in own)
        cpu_ms = statistics.median(turn.server_cpu_ms for turn in own)
        print(f"{way:10} {rate:12,.0f} {cpu_ms:10.3f} {cpu_ms / first:6.2f}")


def main() -> None:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(prog="python -m bench.http_clients", description=__doc__)
    parser.add_argument("--hosts", type=int, default=10_000)
    parser.add_argument("--requests", type=int, default=4_096, help="of each turn, a multiple of 64")
    parser.add_argument("--turns", type=int, default=3, help="of each way")
    parser.add_argument("--ways", nargs="+", default=list(WAYS), choices=list(WAYS))
    parser.add_argument("--py-spy", metavar="PROGRAM", help="profile the first way with this program")
    parser.add_argument("--stacks", type=Path, metavar="FILE", help="write the folded stacks of the profile here")
    options = parser.parse_args()
    bodies = bodies_of(options.requests, hosts=options.hosts)
    with tempfile.TemporaryDirectory(prefix="roost-bench-") as name:
        folder = Path(name)
        template = Databases(folder).template("mixed", options.hosts)
        (folder / "data").mkdir()
        shutil.copyfile(template, folder / "data" / "roost.db")
        with serve(noun="up", folder=folder / "data") as server:
            take_turn(server, "kept", bodies[: _CLIENTS * 4])
            if options.py_spy:
                print_profile(server, options, bodies=bodies, folder=folder)
            else:
                print_turns(server, options, bodies)


if __name__ == "__main__":
    main()
