"""A client that claims, changes and releases resources, and repeats each request until it has an answer."""

import http.client
import json
import random
import threading
import time
import uuid
from collections import Counter
from typing import Any

from roost.simulator.stable_uuids import uuid_of
from tests.ha.record import Holding, Record
from tests.support.servers.servers import ADMIN

HOSTS = 20
VCPUS = 100_000  # of each host, so that claims are always granted
_MEMORY_MB = 16
_HELD_MAX = 12
_PAUSE_S = 0.01
_RETRY_S = 0.1
_TIMEOUT_S = 120.0
_FLAVOR = {"name": "small", "vcpus": 1, "memory_mb": _MEMORY_MB}


class GaveUp(Exception):
    """The load ended before a request had an answer."""


class Figures:
    """The measurements of a client since the last reset."""

    def __init__(self) -> None:
        self.errors: Counter[str] = Counter()
        self.outage_s = self.longest_wait_s = 0.0
        self._success_s = time.monotonic()

    def add(self, began_s: float, error: str) -> None:
        """Add a request that ended now; an empty error is a success."""
        now_s = time.monotonic()
        self.longest_wait_s = max(self.longest_wait_s, now_s - began_s)
        self.outage_s = max(self.outage_s, now_s - self._success_s)
        if error:
            self.errors[error] += 1
            return
        self._success_s = now_s


class Client:
    """A client of one server.

    Args:
        port: of the server.
        number: the seed of its choices.
        is_over: set when the load ends.
    """

    def __init__(self, port: int, number: int, is_over: threading.Event) -> None:
        self._port, self._is_over = port, is_over
        self._link: http.client.HTTPConnection | None = None
        self._random = random.Random(number)
        self._held: list[str] = []
        self.record, self.figures = Record(), Figures()
        self.unexpected: list[str] = []

    def run(self) -> None:
        """Write until the load ends."""
        try:
            while not self._is_over.is_set():
                self.step()
                time.sleep(_PAUSE_S)
        except GaveUp:
            pass
        finally:
            self._close()

    def step(self) -> None:
        """Make one write."""
        draw = self._random.random()
        if len(self._held) < 2 or (draw < 0.5 and len(self._held) < _HELD_MAX):
            self._claim_by_decision() if draw < 0.3 else self._claim_by_placement()
        elif draw < 0.8:
            self._release(self._held.pop(self._random.randrange(len(self._held))))
        else:
            self._change(self._random.choice(self._held))

    def _claim_by_decision(self) -> None:
        consumer = str(uuid.UUID(int=self._random.getrandbits(128), version=4))
        self.record.begin(consumer, None)
        body = {"flavor": _FLAVOR, "instance_uuids": [consumer]}
        status, answer, _ = self._repeat("POST", "/v1/decisions", body, **{"idempotency-key": consumer})
        if status != 201 or answer.get("outcome") != "granted":
            self._note(f"decision: {status} {answer}")
            return
        holding = {uuid_of("host", answer["picks"][0]["host"].partition("-")[2]): _amounts(1)}
        self.record.acknowledge(consumer, holding, at_s=time.monotonic(), decision=answer["uuid"])
        self._held.append(consumer)

    def _claim_by_placement(self) -> None:
        consumer = str(uuid.UUID(int=self._random.getrandbits(128), version=4))
        holding = {self._provider(): _amounts(self._random.randint(1, 3))}
        if self._put(consumer, holding, None):
            self._held.append(consumer)

    def _change(self, consumer: str) -> None:
        _, shown, _ = self._repeat("GET", f"/placement/allocations/{consumer}")
        expected = self.record.possible[consumer][-1]
        if _holding(shown) != expected:
            self._note(f"{consumer} is shown with {shown} instead of {expected}")
            return
        self._put(consumer, {self._provider(): _amounts(self._random.randint(1, 3))}, shown["consumer_generation"])

    def _put(self, consumer: str, holding: Holding, generation: int | None) -> bool:
        """Replace the allocations of a consumer; return whether this was acknowledged."""
        self.record.begin(consumer, holding)
        body = {
            "allocations": {provider: {"resources": amounts} for provider, amounts in holding.items()},
            "project_id": "project",
            "user_id": "user",
            "consumer_generation": generation,
            "consumer_type": "INSTANCE",
        }
        path = f"/placement/allocations/{consumer}"
        status, answer, is_repeated = self._repeat("PUT", path, body)
        if status == 409 and is_repeated and "generation" in str(answer):
            # The first request may have succeeded without an answer.
            status, shown, _ = self._repeat("GET", path)
            status = 204 if _holding(shown) == holding else 409
        if status != 204:
            self._note(f"PUT {path}: {status} {answer}")
            return False
        self.record.acknowledge(consumer, holding, at_s=time.monotonic())
        return True

    def _release(self, consumer: str) -> None:
        self.record.begin(consumer, {})
        path = f"/placement/allocations/{consumer}"
        status, answer, is_repeated = self._repeat("DELETE", path)
        if status != 204 and not (status == 404 and is_repeated):
            self._note(f"DELETE {path}: {status} {answer}")
            return
        self.record.acknowledge(consumer, {}, at_s=time.monotonic())

    def _note(self, text: str) -> None:
        self.unexpected.append(text)

    def _provider(self) -> str:
        return uuid_of("host", str(self._random.randrange(HOSTS)))

    def _repeat(self, method: str, path: str, body: object = None, **headers: str) -> tuple[int, Any, bool]:
        """Send a request until the server answers it; return status, body, and whether it was sent again.

        Raises:
            GaveUp: the load ended, and the last answer was an error.
        """
        is_repeated = False
        while True:
            began_s = time.monotonic()
            status, answer, error = self._send(method, path, body, headers)
            self.figures.add(began_s, error)
            if not error:
                return status, answer, is_repeated
            if self._is_over.is_set():
                raise GaveUp
            is_repeated = True
            time.sleep(_RETRY_S)

    def _send(self, method: str, path: str, body: object, headers: dict[str, str]) -> tuple[int, Any, str]:
        """Send a request once; return status, body and error."""
        if self._link is None:
            self._link = http.client.HTTPConnection("127.0.0.1", self._port, timeout=_TIMEOUT_S)
        try:
            sent = {**ADMIN, "content-type": "application/json", **headers}
            self._link.request(method, path, None if body is None else json.dumps(body), sent)
            answer = self._link.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException) as error:
            self._close()
            return 0, None, type(error).__name__
        found = json.loads(text) if text else None
        return answer.status, found, str(answer.status) if answer.status >= 500 else ""

    def _close(self) -> None:
        if self._link is not None:
            self._link.close()
            self._link = None


def _amounts(vcpus: int) -> dict[str, int]:
    return {"VCPU": vcpus, "MEMORY_MB": _MEMORY_MB}


def _holding(shown: Any) -> Holding:
    return {provider: each["resources"] for provider, each in shown["allocations"].items()}
