"""A program that claims, replaces and releases allocations at random.

Each client has consumers of its own and shares others with all clients. After every acknowledged write it logs the
allocations of the consumer. At the end it prints one line of JSON: a count of each response, and all unexpected
responses.
"""

import http.client
import json
import random
import sys
import time
from pathlib import Path
from typing import Any

from tests.contract.placement_servers import Client
from tests.support.fleets.named_uuids import uuid_named

OWN, SHARED, PROVIDERS = 4, 4, 6
TOTALS = {"VCPU": 16, "MEMORY_MB": 64}
Amounts = dict[str, dict[str, int]]

_CONNECTION_LOST = (OSError, http.client.HTTPException)
_FULL = "exceed the capacity"


def own_consumer(client: int, number: int) -> str:
    """Return the name of a consumer that only one client writes."""
    return f"client-{client}-{number}"


def shared_consumer(number: int) -> str:
    """Return the name of a consumer that all clients write."""
    return f"shared-{number}"


def provider_name(number: int) -> str:
    """Return the name of a provider."""
    return f"host-{number}"


class ClaimClient:
    """A client and its record of acknowledged allocations."""

    def __init__(self, addresses: list[str], number: int, log: Path) -> None:
        self._client = Client(addresses)
        self._alive = list(range(len(addresses)))
        self._random = random.Random(number)
        self._log = log.open("w")
        self._own: dict[str, tuple[Amounts, int]] = {
            own_consumer(number, each): ({}, 0) for each in range(OWN)
        }  # allocations and generation; generation 0: the consumer does not exist
        self.counts: dict[str, int] = {}
        self.unexpected: list[Any] = []

    def step(self) -> None:
        """Send one random write."""
        server = self._random.choice(self._alive)
        try:
            self._random.choice((self._put, self._put, self._put, self._put_many, self._delete, self._share))(server)
        except _CONNECTION_LOST as error:
            if len(self._alive) == 1:
                raise
            self._alive.remove(server)
            self._count(f"gone {type(error).__name__}")

    def _amounts(self) -> Amounts:
        names = self._random.sample(range(PROVIDERS), self._random.choice((1, 1, 2)))
        return {
            uuid_named(provider_name(name)): {
                "VCPU": self._random.randint(1, 4),
                "MEMORY_MB": self._random.randint(1, 9),
            }
            for name in names
        }

    def _put(self, server: int) -> None:
        if not self._own:
            return
        name = self._random.choice(list(self._own))
        wanted: Amounts = {} if self._random.random() < 0.2 else self._amounts()
        self._write(server, {name: wanted}, is_single=True)

    def _put_many(self, server: int) -> None:
        names = self._random.sample(list(self._own), min(2, len(self._own)))
        if names:
            self._write(server, {name: self._amounts() for name in names}, is_single=False)

    def _write(self, server: int, wanted: dict[str, Amounts], *, is_single: bool) -> None:
        # A consumer with an unknown outcome stays out of ``_own`` and is not written again.
        before = {name: self._own.pop(name) for name in wanted}
        bodies = {uuid_named(name): _body(amounts, before[name][1] or None) for name, amounts in wanted.items()}
        if is_single:
            (uuid, body), *_ = bodies.items()
            status, response = self._client.request("PUT", f"/allocations/{uuid}", body, server=server)
        else:
            status, response = self._client.request("POST", "/allocations", bodies, server=server)
        self._count(f"{status}")
        if status == 204:
            for name, amounts in wanted.items():
                self._acknowledge(name, amounts, before[name][1] + 1 if amounts else 0)
            return
        self._own |= before
        # Only this client writes these consumers: the only valid refusal is a lack of capacity for a larger amount.
        if (
            status != 409
            or _FULL not in _text(response)
            or all(_is_within(wanted[name], before[name][0]) for name in wanted)
        ):
            self.unexpected.append([status, response, bodies, before])

    def _delete(self, server: int) -> None:
        names = [name for name, (_, generation) in self._own.items() if generation]
        if not names:
            return
        name = self._random.choice(names)
        before = self._own.pop(name)
        status, response = self._client.request("DELETE", f"/allocations/{uuid_named(name)}", server=server)
        self._count(f"delete {status}")
        if status == 204:
            self._acknowledge(name, {}, 0)
        else:
            self._own[name] = before
            self.unexpected.append([status, response, name])

    def _share(self, server: int) -> None:
        """Write a shared consumer, with or without its generation."""
        path = f"/allocations/{uuid_named(shared_consumer(self._random.randrange(SHARED)))}"
        has_generation = self._random.random() < 0.5
        amounts = self._amounts()
        if has_generation:
            status, current = self._client.request("GET", path, server=server)
            body = _body(amounts, current.get("consumer_generation"))
            status, response = self._client.request("PUT", path, body, server=server)
        else:
            body = _body(amounts, None)
            del body["consumer_generation"], body["consumer_type"]
            status, response = self._client.request("PUT", path, body, server=server, version="1.12")
        self._count(f"shared {status}")
        is_lost_race = has_generation and "consumer generation conflict" in _text(response)
        if status != 204 and not (status == 409 and (_FULL in _text(response) or is_lost_race)):
            self.unexpected.append([status, response, path, body])

    def _acknowledge(self, name: str, amounts: Amounts, generation: int) -> None:
        self._own[name] = amounts, generation
        self._log.write(json.dumps([name, amounts, generation]) + "\n")
        self._log.flush()

    def _count(self, response: str) -> None:
        self.counts[response] = self.counts.get(response, 0) + 1

    def in_doubt(self, number: int) -> list[str]:
        """Return this client's consumers with an unknown outcome."""
        return [name for name in (own_consumer(number, each) for each in range(OWN)) if name not in self._own]


def _body(amounts: Amounts, generation: int | None) -> dict[str, Any]:
    return {
        "allocations": {uuid: {"resources": resources} for uuid, resources in amounts.items()},
        "project_id": "project",
        "user_id": "user",
        "consumer_generation": generation,
        "consumer_type": "INSTANCE",
    }


def _text(response: Any) -> str:
    return response["errors"][0]["detail"] if response else ""


def _is_within(wanted: Amounts, held: Amounts) -> bool:
    return all(
        amount <= held.get(uuid, {}).get(name, 0) for uuid, each in wanted.items() for name, amount in each.items()
    )


def main() -> None:
    """Write at random for the given time."""
    number, duration_s, log, *addresses = sys.argv[1:]
    client = ClaimClient(addresses, int(number), Path(log))
    end_s = time.monotonic() + float(duration_s)
    while time.monotonic() < end_s:
        client.step()
    report = {
        "counts": client.counts,
        "unexpected": client.unexpected,
        "in_doubt": client.in_doubt(int(number)),
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
