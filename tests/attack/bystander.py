"""An honest client beside an attack: it decides, reads and checks health in a loop, and measures the durations.

It runs in a separate process. In the attacker's process, its durations would include the attacker's work.
"""

import http.client
import json
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec

from tests.attack.figures import Observations
from tests.support.fleets.products import kill, worker

if TYPE_CHECKING:
    import subprocess

    from tests.attack.server import Target

_DECISION = json.dumps({"flavor": {"name": "bystander", "vcpus": 1, "memory_mb": 16}}).encode()
_PATIENCE_S = 60
_FIRST_ROUND_DONE = "asked\n"


class Bystander:
    """Sends one request after the other until it is stopped.

    Args:
        host, port: the address of the server.
        headers: identify the client.
    """

    def __init__(self, host: str, port: int, headers: dict[str, str]) -> None:
        self._address, self._headers = (host, port), {**headers, "content-type": "application/json"}
        self._durations_ms: dict[str, list[float]] = {"decision": [], "healthz": [], "read": []}
        self._problems: list[str] = []

    def send_all(self) -> None:
        """Send each kind of request once."""
        self._ask("decision", "POST", "/v1/decisions", expected=201, body=_DECISION)
        self._ask("healthz", "GET", "/healthz", expected=200)
        self._ask("read", "GET", "/v1/hosts/host-1", expected=200)

    def observations(self) -> Observations:
        """Return the measurements."""
        durations = self._durations_ms
        return Observations(
            decisions=len(durations["decision"]),
            decision_ms_max=max(durations["decision"], default=0.0),
            healthz=len(durations["healthz"]),
            healthz_ms_max=max(durations["healthz"], default=0.0),
            reads=len(durations["read"]),
            read_ms_max=max(durations["read"], default=0.0),
            problems=tuple(self._problems),
        )

    def _ask(self, kind: str, method: str, path: str, *, expected: int, body: bytes | None = None) -> None:
        start_s = time.perf_counter()
        connection = http.client.HTTPConnection(*self._address, timeout=_PATIENCE_S)
        try:
            connection.request(method, path, body=body, headers=self._headers)
            answer = connection.getresponse()
            text = answer.read()
            if answer.status != expected:
                self._problems.append(f"{method} {path}: {answer.status} {text[:200]!r}")
        except (OSError, http.client.HTTPException) as error:
            self._problems.append(f"{method} {path}: {error!r}")
        finally:
            connection.close()
        self._durations_ms[kind].append(1000 * (time.perf_counter() - start_s))


def run_client(host: str, port: int, headers: dict[str, str]) -> None:
    """Send requests until standard input ends, then print the measurements. Runs in a process of its own."""
    is_over = threading.Event()

    def wait() -> None:
        sys.stdin.read()
        is_over.set()

    threading.Thread(target=wait, daemon=True).start()
    # The first requests of a server always take longer, with or without an attack.
    Bystander(host, port, headers).send_all()
    sys.stdout.write(_FIRST_ROUND_DONE)
    sys.stdout.flush()
    bystander = Bystander(host, port, headers)
    bystander.send_all()
    while not is_over.is_set():
        bystander.send_all()
    sys.stdout.write(msgspec.json.encode(bystander.observations()).decode() + "\n")
    sys.stdout.flush()


class BystanderProcess:
    """A bystander in its process, as seen by the test."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self._observations: Observations | None = None

    def observations(self) -> Observations:
        """Return the measurements after the bystander has ended."""
        assert self._observations is not None, "it is still asking"
        return self._observations

    def wait_for_first_round(self) -> None:
        """Wait until it has sent each kind of request once."""
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == _FIRST_ROUND_DONE

    def stop(self) -> None:
        """Let it end after its current request."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._observations = msgspec.json.decode(self._process.stdout.readline(), type=Observations)


@contextmanager
def run_bystander(target: "Target") -> Iterator[BystanderProcess]:
    """Run an honest client; memory is measured from its first completed round."""
    process = worker("tests.attack.bystander:run_client", target.host, target.port, target.headers)
    try:
        bystander = BystanderProcess(process)
        bystander.wait_for_first_round()
        target.start_measurement()
        yield bystander
        bystander.stop()
    finally:
        kill(process)
