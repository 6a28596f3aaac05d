"""An honest client beside an attack: it decides, reads and asks for health in a loop, and measures.

It is a process of its own, so that the work of the attacker does not count as the server's.
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

from tests.attack.figures import Seen
from tests.support.fleets.products import kill, worker

if TYPE_CHECKING:
    import subprocess

    from tests.attack.server import Target

_DECISION = json.dumps({"flavor": {"name": "bystander", "vcpus": 1, "memory_mb": 16}}).encode()
_PATIENCE_S = 60
_ASKED = "asked\n"


class Bystander:
    """Asks one thing after the other until it is stopped.

    Args:
        host, port: of the server.
        headers: that say who it is.
    """

    def __init__(self, host: str, port: int, headers: dict[str, str]) -> None:
        self._where, self._headers = (host, port), {**headers, "content-type": "application/json"}
        self._took_ms: dict[str, list[float]] = {"decision": [], "healthz": [], "read": []}
        self._problems: list[str] = []

    def ask_all(self) -> None:
        """Ask everything once."""
        self._ask("decision", "POST", "/v1/decisions", expected=201, body=_DECISION)
        self._ask("healthz", "GET", "/healthz", expected=200)
        self._ask("read", "GET", "/v1/hosts/host-1", expected=200)

    def seen(self) -> Seen:
        """Return what it saw."""
        took = self._took_ms
        return Seen(
            decisions=len(took["decision"]),
            decision_ms_max=max(took["decision"], default=0.0),
            healthz=len(took["healthz"]),
            healthz_ms_max=max(took["healthz"], default=0.0),
            reads=len(took["read"]),
            read_ms_max=max(took["read"], default=0.0),
            problems=tuple(self._problems),
        )

    def _ask(self, kind: str, method: str, path: str, *, expected: int, body: bytes | None = None) -> None:
        begun_s = time.perf_counter()
        connection = http.client.HTTPConnection(*self._where, timeout=_PATIENCE_S)
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
        self._took_ms[kind].append(1000 * (time.perf_counter() - begun_s))


def stand_by(host: str, port: int, headers: dict[str, str]) -> None:
    """Ask until standard input ends, then print what was seen; a process of its own does nothing else."""
    is_over = threading.Event()

    def wait() -> None:
        sys.stdin.read()
        is_over.set()

    threading.Thread(target=wait, daemon=True).start()
    # The first requests of a server take longer, under attack or not.
    Bystander(host, port, headers).ask_all()
    sys.stdout.write(_ASKED)
    sys.stdout.flush()
    bystander = Bystander(host, port, headers)
    bystander.ask_all()
    while not is_over.is_set():
        bystander.ask_all()
    sys.stdout.write(msgspec.json.encode(bystander.seen()).decode() + "\n")
    sys.stdout.flush()


class Standing:
    """A bystander in its process, from outside."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self._seen: Seen | None = None

    def seen(self) -> Seen:
        """Return what it saw, once it has ended."""
        assert self._seen is not None, "it is still asking"
        return self._seen

    def wait_until_asked(self) -> None:
        """Wait until it has asked everything once."""
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == _ASKED

    def stop(self) -> None:
        """Let it end after what it asks now."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._seen = msgspec.json.decode(self._process.stdout.readline(), type=Seen)


@contextmanager
def standing_by(target: "Target") -> Iterator[Standing]:
    """Let an honest client ask meanwhile; memory is measured from when it has asked everything once."""
    process = worker("tests.attack.bystander:stand_by", target.host, target.port, target.headers)
    try:
        standing = Standing(process)
        standing.wait_until_asked()
        target.begin()
        yield standing
        standing.stop()
    finally:
        kill(process)
