"""A server for the demo: ``roost up`` in a process of its own, with requests, departures and disabled hosts."""

import http.client
import json
import random
import re
import subprocess
import sys
import time
from collections import deque
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from roost.errors import Unavailable
from roost.model.documents.request_body import request_body
from roost.simulator.traces.filling_requests import random_request

_REQUESTS_PER_S = 15.0
_STAY_MAX = 400  # instances of the traffic; the oldest departs when there are more
_DISABLE_EVERY = 300  # requests
_TIMEOUT_S = 30.0
_LISTENING = re.compile(r"listening on (https?)://(\S+)")
_HEADERS = {"x-auth-token": "admin", "content-type": "application/json"}


class DemoServer:
    """A running server, and the traffic to it.

    Args:
        folder: the folder of its database.
        listen: its address, HOST:PORT.
    """

    def __init__(self, folder: Path, *, listen: str) -> None:
        words = ("-m", "roost", "up", "--data", str(folder), "--listen", listen, "--log-level", "error")
        self._process = subprocess.Popen(  # noqa: S603  # our own program
            [sys.executable, *words], stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None, "the pipe is open"
        with self._process.stdout as output:
            found = _LISTENING.match(output.readline())
        if found is None:
            raise Unavailable(f"the server of the demo ended with {self._process.wait()}; its error is above")
        self.address = f"{found[1]}://{found[2]}"
        self._connection = http.client.HTTPConnection(found[2], timeout=_TIMEOUT_S)
        self._stays: deque[str] = deque()
        self._disabled = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()
        self._process.terminate()
        self._process.wait(_TIMEOUT_S)

    def send_traffic(self, *, rng: random.Random, requests: int | None = None) -> None:
        """Send requests and departures, until an interruption.

        Args:
            requests: end after this number; None: never.
        """
        sent = 0
        while requests is None or sent < requests:
            self._place(rng)
            sent += 1
            if sent % _DISABLE_EVERY == 0:
                self._disable_another(rng)
            time.sleep(rng.expovariate(_REQUESTS_PER_S))

    def _place(self, rng: random.Random) -> None:
        """Place one request; if there are many instances of the traffic, the oldest departs first."""
        while len(self._stays) >= _STAY_MAX:
            self._ask("DELETE", f"/v1/instances/{self._stays.popleft()}")
        body = request_body(random_request(rng))
        decision = self._ask("POST", "/v1/decisions", body)
        self._stays += [pick["instance_uuid"] for pick in decision.get("picks", ())]

    def _disable_another(self, rng: random.Random) -> None:
        """Enable the disabled host, and disable another one."""
        if self._disabled:
            self._ask("PATCH", f"/v1/services/{self._disabled}", {"disabled": False})
        cursor = rng.randrange(100)
        hosts = self._ask("GET", f"/v1/hosts?limit=1&cursor={cursor}&fields=host").get("hosts")
        if hosts:
            self._disabled = hosts[0]["host"]
            self._ask(
                "PATCH", f"/v1/services/{self._disabled}", {"disabled": True, "disabled_reason": "firmware update"}
            )

    def _ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        """Send a request; return the body of the answer.

        Raises:
            Unavailable: the server does not answer.
        """
        try:
            self._connection.request(method, path, None if body is None else json.dumps(body), _HEADERS)
            text = self._connection.getresponse().read()
        except (OSError, http.client.HTTPException) as error:
            raise Unavailable(f"the server of the demo does not answer: {error}") from None
        answer: dict[str, Any] = json.loads(text) if text else {}
        return answer
