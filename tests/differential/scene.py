"""The parts of a sequence: acts are generators that yield requests and receive the reference's answers."""

import json
from collections.abc import Callable, Generator
from random import Random
from typing import Any, TypeVar
from urllib.parse import quote

from tests.differential.exchange import Answer, Request
from tests.differential.routes import MINOR_MAX
from tests.differential.worlds import Consumer, Provider, World

Value = TypeVar("Value")
Act = Generator[Request, Answer, None]
ValueAct = Generator[Request, Answer, Value]  # an act that returns a value
ActOf = Callable[["Scene"], Act]
JSON = ("content-type", "application/json")
VERSION = "openstack-api-version"


class Scene:
    """The random generator and the world of one sequence, and its methods to build requests."""

    def __init__(self, seed: int) -> None:
        self.draw = Random(seed)
        self.world = World(self.draw)

    def chance(self, probability: float) -> bool:
        """Return True with this probability."""
        return self.draw.random() < probability

    def minor(self, since: int = 0, until: int = MINOR_MAX) -> int:
        """Draw a minor version; the newest is the most frequent."""
        return until if self.chance(0.4) else self.draw.randint(since, until)

    def request(
        self,
        method: str,
        path: str,
        minor: int,
        *,
        body: object = None,
        query: list[tuple[str, str]] | None = None,
        headers: tuple[tuple[str, str], ...] = (),
        marks: frozenset[str] = frozenset(),
    ) -> Request:
        """Build a request of an administrator, with its body as JSON."""
        own = [("x-auth-token", "admin")]
        if minor == MINOR_MAX and self.chance(0.2):
            own.append((VERSION, "placement latest"))
        elif minor > 0 or self.chance(0.5):
            own.append((VERSION, f"placement 1.{minor}"))
        content = None if body is None else json.dumps(body).encode()
        if content is not None:
            own.append(JSON)
        if query:
            path += "?" + "&".join(f"{quote(key)}={quote(value, safe=':,!')}" for key, value in query)
        return Request(method=method, path=path, headers=(*own, *headers), body=content, marks=marks)

    def generation(self, provider: Provider) -> ValueAct[int]:
        """Return a provider's generation, after a request if it is unknown; sometimes return a wrong one."""
        if provider.generation is None:
            answer = yield self.request("GET", f"/resource_providers/{provider.uuid}", self.minor())
            provider.generation = self.field(answer, "generation", 0)
        if self.chance(0.05):
            return self.draw.choice((0, provider.generation + 1, max(0, provider.generation - 1), 99))
        return provider.generation

    def consumer_generation(self, consumer: str) -> ValueAct[int | None]:
        """Return the generation to send for a consumer; sometimes return a wrong one."""
        known = self.world.consumers.get(consumer)
        if known is not None and known.generation is None:
            answer = yield self.request("GET", f"/allocations/{consumer}", self.minor(28))
            known.generation = self.field(answer, "consumer_generation", None)
        if self.chance(0.05):
            return self.draw.choice((None, 0, 1, 7))
        return None if known is None else known.generation

    def learn_provider(self, answer: Answer, provider: Provider) -> None:
        """Store a provider's generation from an answer; after a refusal it is unknown."""
        provider.generation = self.field(answer, "resource_provider_generation", None)

    def learn_allocations(self, consumer: str, allocations: dict[str, dict[str, int]]) -> None:
        """Store a consumer's allocations after a write, and forget the providers' generations."""
        known = self.world.consumers.pop(consumer, None)
        touched = set(allocations) | (set(known.allocations) if known and not allocations else set())
        for name in touched & set(self.world.providers):
            self.world.providers[name].generation = None
        if allocations:
            generation = 1 if known is None else None if known.generation is None else known.generation + 1
            self.world.consumers[consumer] = Consumer(consumer, allocations, generation)

    @staticmethod
    def field(answer: Answer, name: str, default: Any) -> Any:
        """Return a field of an answer's document."""
        return answer.document.get(name, default) if isinstance(answer.document, dict) else default
