"""Clients that change a fleet through one server."""

import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from http.client import HTTPException
from uuid import UUID

from tests.support.servers.servers import ADMIN, RunningServer

_CLIENTS = 2
_INSTANCES_MAX = 30
# Answers that a client expects beside other clients: a success, or a lost race.
_EXPECTED = frozenset({200, 201, 204, 409})


class Load:
    """Some clients of one server, until ``end``. They pause between requests while ``pause`` is held.

    Args:
        server: the server.
        seed: of the choice of requests.
    """

    def __init__(self, server: RunningServer, seed: int) -> None:
        self._server = server
        self._is_ended = threading.Event()
        self._may_send = threading.Event()
        self._may_send.set()
        self.statuses: Counter[int] = Counter()
        self.problems: list[str] = []
        self.outage_s_max = 0.0  # the longest time without a success of a client that got a 503
        self._turns = [threading.Lock() for _ in range(_CLIENTS)]
        self._threads = [
            threading.Thread(target=self._run, args=(random.Random(f"{seed} {number}"), self._turns[number]))
            for number in range(_CLIENTS)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def count(self) -> int:
        """The number of requests so far."""
        return self.statuses.total()

    def pause(self) -> None:
        """Wait until no request is under way, and send no further ones."""
        self._may_send.clear()
        for turn in self._turns:
            turn.acquire()

    def resume(self) -> None:
        """Send requests again."""
        for turn in self._turns:
            turn.release()
        self._may_send.set()

    def end(self) -> None:
        """Wait for the last requests, and send no further ones."""
        self._is_ended.set()
        for thread in self._threads:
            thread.join()

    def _run(self, draw: random.Random, turn: threading.Lock) -> None:
        client = _Client(self._server, draw)
        failed_s: float | None = None
        while not self._is_ended.is_set():
            self._may_send.wait()  # A lock alone is not fair: this thread would take it again and again.
            with turn:
                try:
                    status = client.act()
                except (OSError, HTTPException) as error:
                    status = 0
                    self.problems.append(repr(error))
            now_s = time.monotonic()
            self.statuses[status] += 1
            if status == 503:
                failed_s = now_s if failed_s is None else failed_s
            elif status not in _EXPECTED:
                self.problems.append(f"{status}: {client.answer}")
            elif failed_s is not None:
                self.outage_s_max = max(self.outage_s_max, now_s - failed_s)
                failed_s = None


class _Client:
    """One client: each act is a request that changes something, maybe after one that reads."""

    def __init__(self, server: RunningServer, draw: random.Random) -> None:
        self._server, self._draw = server, draw
        self._instances: list[str] = []
        self._own = f"client-{draw.getrandbits(40):x}"
        self.answer: object = None

    def act(self) -> int:
        """Send a request; return its status."""
        acts: list[Callable[[], int]] = [self._decide] * 6 + [self._release] * 5
        acts += [self._put_inventories, self._put_traits, self._put_aggregates, self._put_group, self._put_provider]
        return self._draw.choice(acts)()

    def _ask(self, method: str, path: str, body: object = None) -> int:
        status, _, self.answer = self._server.ask(method, path, body, headers=ADMIN)
        return int(status)

    def _decide(self) -> int:
        if len(self._instances) >= _INSTANCES_MAX:  # Full hosts whose inventories shrink are findings of the audit.
            return self._release()
        status = self._ask("POST", "/v1/decisions", {"flavor": {"name": "small", "vcpus": 1, "memory_mb": 64}})
        if status == 201:
            self._instances += [pick["instance_uuid"] for pick in self.answer["picks"]]  # type: ignore[index]
        return status

    def _release(self) -> int:
        if not self._instances:
            return self._decide()
        uuid = self._instances.pop(self._draw.randrange(len(self._instances)))
        return self._ask("DELETE", f"/placement/allocations/{uuid}")

    def _provider(self) -> dict[str, object]:
        self._ask("GET", "/placement/resource_providers?name=host-0")
        return self.answer["resource_providers"][0]  # type: ignore[index,no-any-return]

    def _put_inventories(self) -> int:
        path = f"/placement/resource_providers/{self._provider()['uuid']}/inventories"
        if (status := self._ask("GET", path)) != 200:
            return status
        body: dict[str, object] = self.answer  # type: ignore[assignment]
        body["inventories"]["VCPU"]["reserved"] = self._draw.randrange(8)  # type: ignore[index]
        return self._ask("PUT", path, body)

    def _put_traits(self) -> int:
        name = f"CUSTOM_{self._draw.randrange(20)}"
        if (status := self._ask("PUT", f"/placement/traits/{name}")) not in {201, 204}:
            return status
        provider = self._provider()
        body = {"resource_provider_generation": provider["generation"], "traits": [name]}
        status = self._ask("PUT", f"/placement/resource_providers/{provider['uuid']}/traits", body)
        return 409 if status == 400 else status  # Another client deleted the trait.

    def _put_aggregates(self) -> int:
        provider = self._provider()
        body = {"resource_provider_generation": provider["generation"], "aggregates": [str(_uuid(self._draw))]}
        return self._ask("PUT", f"/placement/resource_providers/{provider['uuid']}/aggregates", body)

    def _put_group(self) -> int:
        if (status := self._ask("POST", "/v1/groups", {"name": self._own, "policy": "anti-affinity"})) != 201:
            return status
        return self._ask("DELETE", f"/v1/groups/{self.answer['uuid']}")  # type: ignore[index]

    def _put_provider(self) -> int:
        uuid = _uuid(self._draw)
        if (
            status := self._ask("POST", "/placement/resource_providers", {"name": str(uuid), "uuid": str(uuid)})
        ) >= 400:
            return status
        return self._ask("DELETE", f"/placement/resource_providers/{uuid}")


def _uuid(draw: random.Random) -> UUID:
    return UUID(int=draw.getrandbits(128), version=4)
