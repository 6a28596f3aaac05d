"""The parts of a server without its sockets, with agents played by hand: nothing happens but what a test does."""

from collections.abc import Callable, Mapping
from contextlib import contextmanager
from typing import Any

from roost.conductor.answering import answer, beat, leave, poll, register
from roost.model.fleet import Fleet
from roost.model.guest import Found
from roost.model.names import uuid_bytes
from roost.model.orders import Answer, Order, OwnNode, PollingAgent, Registration
from roost.model.settings import Settings
from roost.placement.current import Current
from roost.placement.serving import Serving
from roost.product import Roost
from roost.simulator.chance import SeededRandom
from roost.store.memory import MemoryStore
from tests.identities import uuid_named
from tests.worlds import FixedClock, settings_of

DOWN_TIME_S = 60.0
OK = Answer(outcome="ok")


def failed(problem: str = "no room") -> Answer:
    return Answer(outcome="failed", problem=problem)


class Server:
    """One process: its product, the thread that serves it, and a reader of work."""

    def __init__(self, store: Any, *, clock: FixedClock, settings: Settings | None = None, seed: int = 0) -> None:
        self.store, self.clock = store, clock
        current = Current(store, clock=clock)
        self.roost = Roost(
            store, settings or settings_of(), current=current, clock=clock, random=SeededRandom(seed)
        )  # fmt: skip
        self.serving = Serving(current, decide=self.roost.scheduler.work)
        self.reader = store.work_reader(clock)

    def run(self, task: Callable[[Current], Any]) -> Any:
        """Do a task in the serving thread."""
        return self.serving.run(task)

    def stop(self) -> None:
        """Let go of the database."""
        self.reader.close()
        self.serving.stop()


@contextmanager
def server(store: Any = None, *fleets: Fleet, clock: FixedClock | None = None, **options: Any):
    """Give a server on a fleet."""
    opened = Server(MemoryStore() if store is None else store, clock=clock or FixedClock(), **options)
    try:
        for fleet in fleets:
            opened.run(lambda _current, fleet=fleet: opened.roost.install(fleet))
        yield opened
    finally:
        opened.stop()


class Hand:
    """The agent of a host, as a test plays it."""

    def __init__(self, server: Server, host: str, *, life: int = 1) -> None:
        self.server, self.host = server, host
        self.life = uuid_named(f"{host} {life}")
        self.run = uuid_bytes(self.life)
        self.fence = 0
        self.known: list[int] = []
        self.guests: dict[str, str] = {}  # what it has: uuid -> state

    def register(self, nodes: Mapping[str, str] | None = None):
        """Say what it has."""
        asked = Registration(
            run=self.life, driver="fake",
            nodes=tuple(OwnNode(node=node, uuid=uuid) for node, uuid in (nodes or {}).items()),
            guests=tuple(Found(uuid=uuid, node=self.host, operation="", state="running") for uuid in self.guests),
        )  # fmt: skip
        told = self.server.run(
            lambda current: register(
                current,
                self.server.reader,
                asked,
                host=self.host,
                now_s=self.server.clock.now_s(),
                down_time_s=DOWN_TIME_S,
            )
        )
        self.fence = told.fence
        return told

    def poll(self):
        """Ask for orders."""
        return self.server.run(lambda current: poll(current, self.server.reader, [self.asking()], most=64))

    def asking(self):
        """Give what it asks with."""
        return PollingAgent(host=self.host, run=self.life, fence=self.fence, held=tuple(self.known))

    def answer(self, order: Order | int, given: Answer = OK):
        """Say what came of an order."""
        number = order if isinstance(order, int) else order.id
        now_s = self.server.clock.now_s()
        return self.server.run(
            lambda _current: answer(self.server.reader, number, run=self.run, given=given, now_s=now_s)
        )

    def beat(self):
        """Be heard."""
        self.server.run(lambda current: beat(current, [self.host], now_s=self.server.clock.now_s()))

    def leave(self):
        """End on purpose."""
        now_s = self.server.clock.now_s()
        return self.server.run(
            lambda current: leave(
                current, self.server.reader, self.host, run=self.run, now_s=now_s, down_time_s=DOWN_TIME_S
            )
        )


def hand(server: Server, host: str, **options: Any) -> Hand:
    """Give an agent that has registered."""
    made = Hand(server, host, **options)
    made.register()
    return made
