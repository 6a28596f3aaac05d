"""An honest client beside an attack: it decides, reads and asks for health in a loop, and measures."""

import http.client
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.attack.figures import Seen
from tests.attack.server import Target

_DECISION = json.dumps({"flavor": {"name": "bystander", "vcpus": 1, "memory_mb": 16}}).encode()
_PATIENCE_S = 60


class Bystander:
    """Asks one thing after the other until it is stopped.

    Args:
        target: the server.
    """

    def __init__(self, target: Target) -> None:
        self._target = target
        self._took_ms: dict[str, list[float]] = {"decision": [], "healthz": [], "read": []}
        self._problems: list[str] = []
        self._is_over = threading.Event()
        self._has_asked = threading.Event()

    def run(self) -> None:
        """Ask until ``stop``."""
        while not self._is_over.is_set():
            self._ask("decision", "POST", "/v1/decisions", expected=201, body=_DECISION)
            self._ask("healthz", "GET", "/healthz", expected=200)
            self._ask("read", "GET", "/v1/hosts/host-1", expected=200)
            self._has_asked.set()

    def wait_until_asked(self) -> None:
        """Wait until it has asked everything once."""
        assert self._has_asked.wait(_PATIENCE_S)

    def stop(self) -> None:
        """Let it end after what it asks now."""
        self._is_over.set()

    def seen(self) -> Seen:
        """Give what it saw."""
        took = self._took_ms
        return Seen(
            decisions=len(took["decision"]), decision_ms_max=max(took["decision"], default=0.0),
            healthz=len(took["healthz"]), healthz_ms_max=max(took["healthz"], default=0.0),
            reads=len(took["read"]), read_ms_max=max(took["read"], default=0.0),
            problems=tuple(self._problems),
        )  # fmt: skip

    def _ask(self, kind: str, method: str, path: str, *, expected: int, body: bytes | None = None) -> None:
        begun_s = time.perf_counter()
        connection = http.client.HTTPConnection(self._target.host, self._target.port, timeout=_PATIENCE_S)
        try:
            headers = {**self._target.headers, "content-type": "application/json"}
            connection.request(method, path, body=body, headers=headers)
            answer = connection.getresponse()
            text = answer.read()
            if answer.status != expected:
                self._problems.append(f"{method} {path}: {answer.status} {text[:200]!r}")
        except (OSError, http.client.HTTPException) as error:
            self._problems.append(f"{method} {path}: {error!r}")
        finally:
            connection.close()
        self._took_ms[kind].append(1000 * (time.perf_counter() - begun_s))


@contextmanager
def standing_by(target: Target) -> Iterator[Bystander]:
    """Let an honest client ask meanwhile; memory is measured from when it has asked everything once."""
    bystander = Bystander(target)
    thread = threading.Thread(target=bystander.run)
    thread.start()
    try:
        bystander.wait_until_asked()
        target.begin()
        yield bystander
    finally:
        bystander.stop()
        thread.join()
