"""Hosts of the simulation: what stays when an agent dies, and its lives, one after the other."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeVar

import msgspec

from roost.api.v1.agent_registry import has_news
from roost.compute.agent.agent_journal import Journal
from roost.compute.agent.execute_order import Acting
from roost.compute.agent.identity import Identity
from roost.compute.agent.saved_images import SavedImages
from roost.compute.agent.state_machine import Agent
from roost.compute.agent.tasks import Clean, Look, Register, Task, Tell, Undo, Work
from roost.compute.driver_values import check_guests
from roost.compute.drivers.fake.driver import Fake
from roost.compute.drivers.fake.script import Action, Fault, Kind, Script
from roost.compute.inventory.host_use import HostUse
from roost.errors import BadSettings, DriverNotReady, NotFound, RoostError
from roost.model.host import HostFacts
from roost.model.names import uuid_text
from roost.model.work.agent_terms import HostTerms
from roost.model.work.guest import Found
from roost.model.work.orders import Order, OrderAnswer, OwnNode, Polled, PollingAgent, Registered, Registration
from roost.model.work.standing import Standing
from roost.simulator.cluster import agent_routes
from roost.simulator.cluster.environment.trouble import MoodyChance
from roost.simulator.cluster.network import Call
from roost.simulator.cluster.processes import Process, Servers

A = TypeVar("A")

# What a driver does wrong, where it does.
_WRONG: tuple[tuple[Action, Kind, float], ...] = (
    ("start", "unready", 0.5),
    ("spawn", "failed", 0.5),
    ("spawn", "crash", 0.5),
    ("spawn", "aborted", 0.3),
    ("destroy", "failed", 0.5),
    ("destroy", "crash", 0.3),
    ("power", "failed", 0.5),
    ("rebuild", "failed", 0.5),
    ("prepare", "failed", 0.5),
    ("prepare", "crash", 0.3),
    ("send_disk", "failed", 0.5),
    ("finish", "failed", 0.5),
    ("finish", "crash", 0.3),
    ("discard", "failed", 0.3),
    ("live_migrate", "failed", 0.5),
    ("save", "failed", 0.5),
    ("drop_saved_image", "crash", 0.5),
)
_SCRIPT = Script(fault=tuple(Fault(action=action, kind=kind, share=share) for action, kind, share in _WRONG))
DRIVER_TIMEOUT_S = 12.0
_TICK_S, _REPORT_S, _SYNC_S, _IMAGES_S = 0.7, 20.0, 40.0, 30.0
_QUICK_S, _SLOW_S, _HUNG_S = (0.0, 0.05), (0.5, 10.0), (DRIVER_TIMEOUT_S, 4 * DRIVER_TIMEOUT_S)
# So long a poll waits where there is nothing to do.
_WAIT_S = (0.3, 1.0)
_BACK_S = (0.5, 25.0)


class _Journal(Journal):
    """A journal in memory, whose agent may die before and after each line."""

    def __init__(self, kill: Callable[[], None]) -> None:
        super().__init__(None)
        self._kill = kill

    @contextmanager
    def _writing(self) -> Iterator[Callable[..., None]]:  # type: ignore[override]  # what it gives is private there
        self._kill()
        with super()._writing() as write:
            yield write
        self._kill()


class Answered(msgspec.Struct, frozen=True):
    """What a server has answered of instances; of others nothing is known."""

    known: Mapping[str, Standing]

    def standings(self, uuids: Collection[str]) -> Mapping[str, Standing]:
        """Return what is known of instances."""
        return {uuid: self.known[uuid] for uuid in uuids if uuid in self.known}


class Machine:
    """A host: its journal and its guests, and at most one agent at a time.

    Args:
        world: that it is in.
        host: its name, and that of its only node.
        uuid: of its provider.
        rack: that it is in; empty: nobody knows.
    """

    def __init__(self, world: Servers, host: str, uuid: str, *, rack: str = "") -> None:
        self.host, self.uuid, self.rack = host, uuid, rack
        self.world = world
        self.is_lost = False  # for good
        self.life: Life | None = None
        self.journal = _Journal(self._kill)
        self._lives = 0
        world.shelf.kills[host] = self._kill

    def _kill(self) -> None:
        self.world.trouble.kill("crashed", self.die)

    def start(self) -> None:
        """Let a new agent live."""
        if self.life is None and not self.is_lost:
            self._lives += 1
            self.life = Life(self)
            self.life.tick()

    def die(self) -> None:
        """Let the agent end here and now; it comes back after a while, or never."""
        if self.life is None:
            return
        self.life.is_alive = False
        self.life = None
        world = self.world
        if world.chance.random() < 0.1 and not world.trouble.is_over:
            return  # It is not back before the trouble ends, if ever.
        world.happenings.after(world.chance.uniform(*_BACK_S), "agent back", self.start, told=self.host)

    def new_run(self) -> str:
        """Return the uuid of the next life."""
        return uuid_text(self.world.identities.uuids(1)[0])


class Life:
    """One life of the agent of a host; all that it does not write down ends with it.

    Args:
        machine: where it lives.
    """

    def __init__(self, machine: Machine) -> None:
        world, self.machine = machine.world, machine
        self.is_alive, self.host = True, machine.host
        self.driver = Fake(
            _SCRIPT,
            terms=HostTerms(),
            chance=MoodyChance(world.trouble),
            shelf=world.shelf,
            wait=lambda _seconds: None,
        )
        self.run = machine.new_run()
        identity = Identity(host=self.host, run=self.run, driver="fake")
        self.agent = Agent(
            identity,
            machine.journal,
            driver_timeout_s=DRIVER_TIMEOUT_S,
            sync_s=_SYNC_S,
            spread=world.chance.uniform(0.75, 1.25),
        )
        node = self.host
        self.use = HostUse(
            HostFacts(rack=machine.rack),
            instances=machine.journal.instances(node),
            migrations=machine.journal.migrations(node),
        )
        self.acting = Acting(
            self.host, run=self.run, driver=self.driver, journal=machine.journal, use_of={node: self.use}.__getitem__
        )
        self._world = world
        self._has_started = self._is_polling = self._is_reporting = False
        self._report_at_s = self._images_at_s = 0.0

    # --- time ---

    def tick(self) -> None:
        """Do what is due, again and again."""
        if not self.is_alive:
            return
        self._world.happenings.after(_TICK_S, "tick", self.tick, told=self.host)
        if self._world.trouble.strikes("left", per=_TICK_S):
            self._leave()
            return
        self._go_on()

    def _go_on(self) -> None:
        if not self.is_alive:
            return
        for task in self.agent.due(self._now_s):
            self._begin(task)
        if self.agent.end is not None:
            self._world.happenings.note(f"{self.host} ends: {self.agent.end}")
            self.machine.die()
            return
        polling = self.agent.polling()
        if polling is not None and not self._is_polling:
            self._is_polling = True
            self._poll(polling)
        if self.agent.is_registered and not self._is_reporting and self._now_s >= self._report_at_s:
            self._is_reporting = True
            self._report()

    @property
    def _now_s(self) -> float:
        return self._world.clock.time_s

    def _leave(self) -> None:
        """End on purpose, so that the host is down at once."""
        host, run = self.host, self.run
        self._ask("leave", lambda process: agent_routes.leave(process, host, run), lambda _told: None, is_last=True)
        self.machine.die()

    # --- tasks ---

    def _begin(self, task: Task) -> None:
        match task:
            case Look():
                self._after(_QUICK_S, "look at guests", self._look)
            case Register(registration):
                self._register(registration)
            case Tell(order, answer):
                self._tell(order, answer)
            case Work() | Undo() | Clean():
                self._after(self._span(), f"{_named(task)}", lambda: self._act(task))

    def _span(self) -> tuple[float, float]:
        trouble = self._world.trouble
        if trouble.strikes("hung"):
            return _HUNG_S
        return _SLOW_S if trouble.strikes("slow") else _QUICK_S

    def _act(self, task: Work | Undo | Clean) -> None:
        came = self.acting.carry_out(task)
        # What it did is there before anybody knows of it.
        self._after(self._span(), f"{_named(task)} {came.outcome}", lambda: self._worked(task, came))

    def _worked(self, task: Work | Undo | Clean, came: OrderAnswer) -> None:
        self.agent.worked(task, came, self._now_s)
        self._go_on()

    def _look(self) -> None:
        try:
            if not self._has_started:
                self.driver.start(self.host)
                self._has_started = True
            guests = check_guests(self.driver.guests())
        except DriverNotReady as error:
            self.agent.refused(error, self._now_s)
        else:
            # More may have happened until that is told.
            self._after(self._span(), "looked", lambda: self._looked(guests))
            return
        self._go_on()

    def _looked(self, guests: Sequence[Found]) -> None:
        self.agent.looked([OwnNode(node=self.host, uuid=self.machine.uuid)], guests)
        self._go_on()

    # --- the server ---

    def _register(self, registration: Registration) -> None:
        def told(registered: Registered) -> None:
            self.agent.registered(registered, self._now_s)
            self._go_on()

        def failed(error: RoostError) -> None:
            self.agent.refused(error, self._now_s)
            self._go_on()

        host = self.host
        self._ask("register", lambda process: agent_routes.register(process, host, registration), told, failed=failed)

    def _tell(self, order: Order, answer: OrderAnswer) -> None:
        def told(_answer: None) -> None:
            self.agent.told(order)
            self._go_on()

        def failed(error: RoostError) -> None:
            self.agent.untold(order, error, self._now_s)
            self._go_on()

        self._ask(
            f"answer {answer.outcome}",
            lambda process: agent_routes.answer(process, order.id, answer),
            told,
            failed=failed,
        )

    def _poll(self, asking: PollingAgent) -> None:
        def told(polled: Polled) -> None:
            self._is_polling = False
            self.agent.heard(
                asking.fence,
                polled.orders,
                now_s=self._now_s,
                withdrawn=polled.withdrawn,
                settled=polled.settled,
                is_unknown=bool(polled.unknown),
                is_superseded=bool(polled.superseded),
                is_disabled=bool(polled.disabled),
            )
            self._go_on()

        def failed(error: RoostError) -> None:
            self._is_polling = False
            if isinstance(error, BadSettings):
                self.agent.end = error

        chance = self._world.chance
        self._ask(
            "poll",
            lambda process: agent_routes.poll(process, asking),
            told,
            failed=failed,
            wait_s=lambda polled: 0.0 if has_news(polled) else chance.uniform(*_WAIT_S),
        )

    def _report(self) -> None:
        def told(_answer: None) -> None:
            self._is_reporting, self._report_at_s = False, self._now_s + _REPORT_S
            self.agent.tracked()
            self._look_at_images()
            self._go_on()

        def failed(error: RoostError) -> None:
            self._is_reporting, self._report_at_s = False, self._now_s + _TICK_S
            if isinstance(error, NotFound):
                self.agent.unknown(self._now_s)

        host, facts = self.host, self.use.facts
        self._ask("report", lambda process: agent_routes.report(process, host, facts), told, failed=failed)

    def _look_at_images(self) -> None:
        """Ask what became of whose images there are, if it is time."""
        if self._now_s < self._images_at_s:
            return
        self._images_at_s, host = self._now_s + _IMAGES_S, self.host

        def told(known: Mapping[str, Standing]) -> None:
            SavedImages(host, driver=self.driver, instances=Answered(known)).drop_deleted()

        if kept := self.driver.saved_images():
            self._ask("standings", lambda process: agent_routes.standings(process, kept), told)

    def _ask(
        self,
        what: str,
        deed: Callable[[Process], A],
        told: Callable[[A], None],
        *,
        failed: Callable[[RoostError], None] = lambda _error: None,
        wait_s: Callable[[A], float] = lambda _answer: 0.0,
        is_last: bool = False,
    ) -> None:
        Call(
            self._world,
            self.host,
            what,
            deed=deed,
            told=told,
            failed=failed,
            wait_s=wait_s,
            is_wanted=lambda: self.is_alive or is_last,
        )

    def _after(self, span: tuple[float, float], kind: str, act: Callable[[], None]) -> None:
        def act_if_alive() -> None:
            if self.is_alive:
                act()

        self._world.happenings.after(self._world.chance.uniform(*span), kind, act_if_alive, told=self.host)


def _named(task: Work | Undo | Clean) -> str:
    match task:
        case Work(order):
            return str(type(order.act).__struct_config__.tag)
        case Undo(order):
            return f"undo {type(order.act).__struct_config__.tag}"
        case Clean(_, action):
            return f"clean {action}"
