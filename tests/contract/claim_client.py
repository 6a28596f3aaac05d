"""A client that claims, replaces and releases at random, as a program of its own.

It knows what its own consumers hold, and logs it after every write that was acknowledged; others are shared with all
clients. It ends with one line of JSON: how often it had which answer, and every answer that it cannot explain.
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

_GONE = (OSError, http.client.HTTPException)
_FULL = "exceed the capacity"


def own_consumer(client: int, number: int) -> str:
    """Name a consumer that one client alone writes."""
    return f"client-{client}-{number}"


def shared_consumer(number: int) -> str:
    """Name a consumer that all clients write."""
    return f"shared-{number}"


def provider_name(number: int) -> str:
    """Name a provider."""
    return f"host-{number}"


class Claiming:
    """One client and what it knows."""

    def __init__(self, addresses: list[str], number: int, log: Path) -> None:
        self._client = Client(addresses)
        self._alive = list(range(len(addresses)))
        self._random = random.Random(number)
        self._log = log.open("w")
        self._own: dict[str, tuple[Amounts, int]] = {
            own_consumer(number, each): ({}, 0) for each in range(OWN)
        }  # what it holds and its generation; 0: it is not there
        self.counts: dict[str, int] = {}
        self.unexplained: list[Any] = []

    def step(self) -> None:
        """Write once."""
        server = self._random.choice(self._alive)
        try:
            self._random.choice((self._put, self._put, self._put, self._put_many, self._delete, self._share))(server)
        except _GONE as error:
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
        self._write(server, {name: wanted}, is_alone=True)

    def _put_many(self, server: int) -> None:
        names = self._random.sample(list(self._own), min(2, len(self._own)))
        if names:
            self._write(server, {name: self._amounts() for name in names}, is_alone=False)

    def _write(self, server: int, wanted: dict[str, Amounts], *, is_alone: bool) -> None:
        before = {name: self._own.pop(name) for name in wanted}  # What is in doubt is not touched again.
        bodies = {uuid_named(name): _body(amounts, before[name][1] or None) for name, amounts in wanted.items()}
        if is_alone:
            (uuid, body), *_ = bodies.items()
            status, said = self._client.ask("PUT", f"/allocations/{uuid}", body, server=server)
        else:
            status, said = self._client.ask("POST", "/allocations", bodies, server=server)
        self._count(f"{status}")
        if status == 204:
            for name, amounts in wanted.items():
                self._acknowledge(name, amounts, before[name][1] + 1 if amounts else 0)
            return
        self._own |= before
        # Nobody else writes these consumers, so only room can be missing, and only where more is asked than was held.
        if (
            status != 409
            or _FULL not in _text(said)
            or all(_is_within(wanted[name], before[name][0]) for name in wanted)
        ):
            self.unexplained.append([status, said, bodies, before])

    def _delete(self, server: int) -> None:
        names = [name for name, (_, generation) in self._own.items() if generation]
        if not names:
            return
        name = self._random.choice(names)
        before = self._own.pop(name)
        status, said = self._client.ask("DELETE", f"/allocations/{uuid_named(name)}", server=server)
        self._count(f"delete {status}")
        if status == 204:
            self._acknowledge(name, {}, 0)
        else:
            self._own[name] = before
            self.unexplained.append([status, said, name])

    def _share(self, server: int) -> None:
        """Write a consumer that others write too: with its generation, or whatever it is."""
        path = f"/allocations/{uuid_named(shared_consumer(self._random.randrange(SHARED)))}"
        is_careful = self._random.random() < 0.5
        amounts = self._amounts()
        if is_careful:
            status, shown = self._client.ask("GET", path, server=server)
            body = _body(amounts, shown.get("consumer_generation"))
            status, said = self._client.ask("PUT", path, body, server=server)
        else:
            body = _body(amounts, None)
            del body["consumer_generation"], body["consumer_type"]
            status, said = self._client.ask("PUT", path, body, server=server, version="1.12")
        self._count(f"shared {status}")
        is_beaten = is_careful and "consumer generation conflict" in _text(said)
        if status != 204 and not (status == 409 and (_FULL in _text(said) or is_beaten)):
            self.unexplained.append([status, said, path, body])

    def _acknowledge(self, name: str, amounts: Amounts, generation: int) -> None:
        self._own[name] = amounts, generation
        self._log.write(json.dumps([name, amounts, generation]) + "\n")
        self._log.flush()

    def _count(self, answer: str) -> None:
        self.counts[answer] = self.counts.get(answer, 0) + 1

    def in_doubt(self, number: int) -> list[str]:
        """Return its own consumers of which it does not know what they hold."""
        return [name for name in (own_consumer(number, each) for each in range(OWN)) if name not in self._own]


def _body(amounts: Amounts, generation: int | None) -> dict[str, Any]:
    return {
        "allocations": {uuid: {"resources": resources} for uuid, resources in amounts.items()},
        "project_id": "project",
        "user_id": "user",
        "consumer_generation": generation,
        "consumer_type": "INSTANCE",
    }


def _text(said: Any) -> str:
    return said["errors"][0]["detail"] if said else ""


def _is_within(wanted: Amounts, held: Amounts) -> bool:
    return all(
        amount <= held.get(uuid, {}).get(name, 0) for uuid, each in wanted.items() for name, amount in each.items()
    )


def main() -> None:
    """Write at random for a while."""
    number, duration_s, log, *addresses = sys.argv[1:]
    claiming = Claiming(addresses, int(number), Path(log))
    end_s = time.monotonic() + float(duration_s)
    while time.monotonic() < end_s:
        claiming.step()
    report = {
        "counts": claiming.counts,
        "unexplained": claiming.unexplained,
        "in_doubt": claiming.in_doubt(int(number)),
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
