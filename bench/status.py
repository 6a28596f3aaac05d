"""The overview of a large fleet: ``python -m bench.status --hosts 100000``.

Starts a server on a generated fleet. Prints the time of the first overview, which waits for the reader process, of
later ones, and of decisions alone and beside overviews.
"""

import argparse
import json
import statistics
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

from roost.app import open_roost
from roost.simulator.traces.generated_workload import Recipe, generate
from roost.simulator.workload import Options
from tests.support.servers.servers import serve

_ROUNDS = 15
_DECISIONS = 60
_BODY = json.dumps({"flavor": {"name": "bench", "vcpus": 1, "memory_mb": 64}}).encode()


def _ask(url: str, body: bytes | None = None) -> float:
    """Send a request; return its seconds."""
    headers = {"x-auth-token": "admin", "content-type": "application/json"}
    start_s = time.perf_counter()
    with urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=120) as answer:
        answer.read()
    return time.perf_counter() - start_s


def _decide(address: str) -> list[float]:
    return [_ask(f"{address}/v1/decisions", _BODY) for _ in range(_DECISIONS)]


def _line(name: str, times_s: list[float]) -> str:
    return f"{name:32} median {1000 * statistics.median(times_s):8.1f} ms   max {1000 * max(times_s):8.1f} ms"


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hosts", type=int, default=100_000)
    hosts = parser.parse_args().hosts
    with tempfile.TemporaryDirectory() as folder:
        with open_roost(None, Path(folder)) as roost:
            roost.install(generate(Recipe(hosts=hosts, requests=1), Options()).fleet)
        with serve(noun="up", folder=folder) as server:
            print(f"{hosts:,} hosts")
            print(_line("first overview", [_ask(f"{server.address}/v1/status")]))
            print(_line("overview", [_ask(f"{server.address}/v1/status") for _ in range(_ROUNDS)]))
            _decide(server.address)
            print(_line("decision alone", _decide(server.address)))
            over = threading.Event()

            def overviews() -> None:
                while not over.is_set():
                    _ask(f"{server.address}/v1/status")

            thread = threading.Thread(target=overviews)
            thread.start()
            try:
                print(_line("decision beside overviews", _decide(server.address)))
            finally:
                over.set()
                thread.join()


if __name__ == "__main__":
    main()
