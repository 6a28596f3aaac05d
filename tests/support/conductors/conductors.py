"""A server without sockets, and agents played by hand: only the test makes events happen."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec

from roost.conductor.agents.agent_protocol import answer, beat, leave, poll, register
from roost.conductor.intake import accept, accept_changes
from roost.conductor.jobs import Jobs
from roost.conductor.loop import Conductor, ConductorHooks
from roost.conductor.operation.step import Terms
from roost.conductor.operation.stored_request import image_of
from roost.model.fleet import Fleet
from roost.model.image import Image
from roost.model.names import uuid_bytes
from roost.model.settings.roost_settings import Settings
from roost.model.work.guest import GuestReport
from roost.model.work.operation import PowerChange
from roost.model.work.orders import Answer, Order, OwnNode, PollingAgent, Power, Registration
from roost.model.work.work_rows import Put, StatusRow
from roost.model.writes import Item
from roost.placement.current import Current
from roost.placement.deciding_thread import Serving
from roost.product import Roost
from roost.scheduler.query.pci_requests import PciAliases
from roost.simulator.seeded_random import SeededRandom
from roost.store.memory_store import MemoryStore
from tests.support.conductors.builders import allocations_of as held
from tests.support.conductors.work_rows import operation
from tests.support.fleets.named_uuids import uuid_named
from tests.support.fleets.worlds import FixedClock, settings_of, small_request

DOWN_TIME_S = 60.0
TERMS = Terms(attempts_max=3, build_timeout_s=600.0, act_timeout_s=120.0, owner_s=30.0)
OK = Answer(outcome="ok")


def failure(problem: str = "no room") -> Answer:
    return Answer(outcome="failed", problem=problem)


class Server:
    """One process: its product, its serving thread, and its work reader."""

    def __init__(
        self, store: Any, *, clock: Any, settings: Settings | None = None, seed: int = 0, on_work: Any = None
    ) -> None:
        self.store, self.clock = store, clock
        current = Current(store, clock=clock)
        self.roost = Roost(store, settings or settings_of(), current=current, clock=clock, random=SeededRandom(seed))
        self.serving = Serving(current, decide=self.roost.scheduler.work, on_work=on_work)
        self.reader = store.work_reader(clock)
        self.terms = TERMS

    def run(self, task: Callable[[Current], Any]) -> Any:
        """Run a task in the serving thread."""
        return self.serving.run(task)

    def conductor(self, name: str = "one", *, cells: Sequence[str] | None = None) -> Conductor:
        """Return a conductor of this process."""
        product = ConductorHooks(
            decision=self.roost.decision,
            devices=PciAliases(self.roost.settings.pci).requests,
            terms=lambda: self.terms,
        )
        return Conductor(name, cells=cells, serving=self.serving, reader=self.reader, product=product)

    def jobs(self, name: str = "one", *, is_hearing: bool = True) -> Jobs:
        """Return the periodic jobs of this process."""
        return Jobs(
            name,
            serving=self.serving,
            reader=self.reader,
            down_time_s=lambda: DOWN_TIME_S,
            offload_s=lambda: self.terms.shelved_offload_time_s,
            serves_agents=is_hearing,
        )

    def turn(self, name: str = "one") -> int:
        """Run a conductor until nothing is due."""
        conductor, count = self.conductor(name), 0
        while done := conductor.turn():
            count += done
            assert count < 10_000, "operations never end"
        return count

    def build(self, *names: str, key: str = "key", extra_specs: Mapping[str, str] | None = None, **request: Any):
        """Request a build of instances; their uuids derive from their names."""
        wanted = small_request(instance_uuids=tuple(map(uuid_named, names)), count=len(names), **request)
        flavor = msgspec.structs.replace(wanted.flavor, extra_specs=dict(extra_specs or {}))
        wanted = msgspec.structs.replace(wanted, flavor=flavor)
        return self.run(
            lambda current: accept.build(
                current,
                self.reader,
                wanted,
                operation_uuid=uuid_bytes(uuid_named(key)),
                decision_uuid=uuid_named(f"decision of {key}"),
                name=names[0],
                now_s=self.clock.now_s(),
            )
        )

    def delete(self, name: str, *, key: str = "", is_forced: bool = False):
        """Request the deletion of an instance."""
        uuid = uuid_bytes(uuid_named(key or f"end of {name}"))
        return self.run(
            lambda current: accept.delete(
                current,
                self.reader,
                uuid_named(name),
                operation_uuid=uuid,
                now_s=self.clock.now_s(),
                is_forced=is_forced,
            )
        )

    def power(self, name: str, kind: str, *, key: str = ""):
        """Request a start, stop, reboot or reset of an instance."""
        uuid = uuid_bytes(uuid_named(key or f"{kind} of {name} at {self.clock.now_s()}"))
        return self.run(
            lambda current: accept.act(
                current,
                self.reader,
                uuid_named(name),
                kind=kind,
                body=PowerChange(),
                operation_uuid=uuid,
                now_s=self.clock.now_s(),
            )
        )

    def change(self, name: str, kind: str, *, key: str = "", **arguments: Any):
        """Request a change such as a rebuild or shelve; ``arguments`` go to the intake function of that name."""
        key = key or f"{kind} of {name} at {self.clock.now_s()}"
        more = {
            "rebuild": {"image": None, "filters": list(self.roost.rules.filters)},
            "unshelve": {"decision_uuid": uuid_named(f"decision of {key}")},
        }.get(kind, {})
        return self.run(
            lambda current: getattr(accept_changes, kind)(
                current,
                self.reader,
                uuid_named(name),
                operation_uuid=uuid_bytes(uuid_named(key)),
                now_s=self.clock.now_s(),
                **{**more, **arguments},
            )
        )

    def status(self, name: str) -> StatusRow:
        """Return the status of an instance."""
        return self.reader.status(uuid_bytes(uuid_named(name)))

    def held(self, name: str):
        """Return the node of an instance and its allocations, or None without allocations."""
        return self.run(lambda current: held(current.state, uuid_named(name)))

    def image(self, name: str) -> Image | None:
        """Return the image of an instance."""
        return self.run(lambda current: image_of(current.store.document, self.status(name)))

    def used(self) -> dict[str, int]:
        """Return the used amount of each resource class."""
        return {name: used for name, (used, _) in self.run(lambda _current: self.roost.utilisation()).items()}

    def story(self, name: str) -> list[tuple[str, dict[str, str]]]:
        """Return the story of an instance, oldest event first."""
        events = self.reader.events_on(uuid_bytes(uuid_named(name)), newest=99)
        return [(event.kind, msgspec.json.decode(event.body)) for event in reversed(events)]

    def open_operations(self):
        """Return the open operations."""
        return self.reader.operations(limit=9999, is_open=True)

    def stop(self) -> None:
        """Close the database."""
        self.reader.close()
        self.serving.stop()


@contextmanager
def server(store: Any = None, *fleets: Fleet, clock: Any = None, **options: Any):
    """Yield a server with a fleet."""
    opened = Server(MemoryStore() if store is None else store, clock=clock or FixedClock(), **options)
    try:
        for fleet in fleets:
            opened.run(lambda _current, fleet=fleet: opened.roost.install(fleet))
        yield opened
    finally:
        opened.stop()


class PlayedAgent:
    """The agent of a host, played by a test."""

    def __init__(self, server: Server, host: str, *, life: int = 1) -> None:
        self.server, self.host = server, host
        self.lives = life - 1
        self.live_again()
        self.fence = 0
        self.known: list[int] = []
        self.guests: dict[str, str] = {}  # uuid -> state
        self.strangers: set[str] = set()  # guests with the mark of an operation that the database does not know

    def live_again(self) -> None:
        """Start a new run of the agent, which keeps only the guests of the previous run."""
        self.lives += 1
        self.life = uuid_named(f"{self.host} {self.lives}")
        self.run = uuid_bytes(self.life)

    def register(self, nodes: Mapping[str, str] | None = None, *, paused: Sequence[str] = ()):
        """Register with all guests; ``paused`` are the guests that the agent paused on its own."""
        registration = Registration(
            run=self.life,
            driver="fake",
            nodes=tuple(OwnNode(node=node, uuid=uuid) for node, uuid in (nodes or {}).items()),
            guests=tuple(
                GuestReport(uuid=uuid, node=self.host, operation=self.mark_of(uuid), state=state)
                for uuid, state in self.guests.items()
            ),
            paused=tuple(paused),
        )
        reply = self.server.run(
            lambda current: register(
                current,
                self.server.reader,
                registration,
                host=self.host,
                now_s=self.server.clock.now_s(),
                down_time_s=DOWN_TIME_S,
            )
        )
        self.fence = reply.fence
        return reply

    def mark_of(self, uuid: str) -> str:
        """Return the mark of a guest; that of a known guest is an ended operation."""
        mark = uuid_named("unknown operation" if uuid in self.strangers else "known operation")
        body = uuid_bytes(mark)
        if uuid not in self.strangers and self.server.reader.operation_by_uuid(body) is None:
            row = operation(10_000, uuid=body, outcome="done", step="end")
            self.server.run(lambda current: current.commit([Item(writes=(), work=(Put(row),))]))
        return mark

    def poll(self):
        """Poll for orders."""
        return self.server.run(lambda current: poll(current, self.server.reader, [self.polling_agent()], orders_max=64))

    def polling_agent(self):
        """Return the agent's part of a poll."""
        return PollingAgent(host=self.host, run=self.life, fence=self.fence, held=tuple(self.known))

    def answer(self, order: Order | int, given: Answer = OK):
        """Send the answer to an order."""
        number = order if isinstance(order, int) else order.id
        now_s = self.server.clock.now_s()
        return self.server.run(
            lambda _current: answer(self.server.reader, number, run=self.run, reply=given, now_s=now_s)
        )

    def act(self, order: Order, given: Answer = OK):
        """Carry out an order, or fail with the given answer, and send the answer."""
        if given.outcome == "ok":
            if action(order) == "destroy":
                self.guests.pop(order.instance, None)
            elif action(order) in {"spawn", "power_on", "power_off"}:
                self.guests[order.instance] = "stopped" if action(order) == "power_off" else "running"
            elif action(order) == "rebuild":
                self.guests[order.instance] = "running" if order.act.guest.is_on else "stopped"
            given = self.complete_answer(order, given)
        self.answer(order, given)

    def complete_answer(self, order: Order, given: Answer = OK) -> Answer:
        """Return an answer, completed with the guest report or the saved image of the order."""
        state = self.guests.get(order.instance)
        if action(order) == "inspect" and state is not None:
            found = GuestReport(uuid=order.instance, node=self.host, operation="", state=state)
            return msgspec.structs.replace(given, found=found)
        return msgspec.structs.replace(given, saved=f"saved {order.instance}") if action(order) == "save" else given

    def beat(self):
        """Send a heartbeat."""
        self.server.run(lambda current: beat(current, [self.host], now_s=self.server.clock.now_s()))

    def leave(self):
        """Deregister the agent."""
        now_s = self.server.clock.now_s()
        return self.server.run(
            lambda current: leave(
                current, self.server.reader, self.host, run=self.run, now_s=now_s, down_time_s=DOWN_TIME_S
            )
        )


def action(order: Order) -> str:
    """Return the action of an order, as order rows name it."""
    if isinstance(order.act, Power):
        return "power_on" if order.act.is_on else "power_off"
    return str(type(order.act).__struct_config__.tag)


def played_agent(server: Server, host: str, **options: Any) -> PlayedAgent:
    """Return a registered agent."""
    made = PlayedAgent(server, host, **options)
    made.register()
    return made


def run_until_idle(
    server: Server, *hands: PlayedAgent, script: Mapping[str, Sequence[Answer]] | None = None, turns: int = 40
) -> None:
    """Run conductor and agents until all are idle.

    Args:
        script: the answers of each host to successive spawn orders; all other orders succeed.
    """
    left = {host: list(answers) for host, answers in (script or {}).items()}
    for _ in range(turns):
        done = server.turn()
        for agent in hands:
            for order in agent.poll().orders:
                answers = left.get(agent.host) if action(order) == "spawn" else None
                agent.act(order, answers.pop(0) if answers else OK)
                done += 1
        if not done:
            return
    raise AssertionError("conductor and agents never become idle")


def instance_state(server: Server, name: str = "one") -> tuple[str, str, str, str]:
    """Return status, task and fault of an instance, and the node that it has allocations on."""
    status = server.status(name)
    return status.status, status.task, status.fault, server.held(name)[0]


def instance_standing(server: Server, name: str = "one") -> tuple[str, str, str, str, str | None]:
    """Return status, task, host and fault of an instance, and the node of its allocations or None."""
    status, held = server.status(name), server.held(name)
    return status.status, status.task, status.host, status.fault, None if held is None else held[0]
