"""Simulated hosts: the data that outlives an agent, and its successive processes."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeVar

import msgspec

from roost.api.v1.agents.agent_registry import has_news
from roost.compute.agent.agent_journal import Journal
from roost.compute.agent.execute_order import OrderExecutor
from roost.compute.agent.identity import Identity
from roost.compute.agent.saved_images import SavedImages
from roost.compute.agent.state_machine import Agent
from roost.compute.agent.tasks import Clean, Register, Reply, Scan, Task, Undo, Work
from roost.compute.driver_values import check_guests
from roost.compute.drivers.fake.driver import Fake
from roost.compute.drivers.fake.script import Action, Fault, Kind, Script
from roost.compute.inventory.host_use import HostUse
from roost.errors import BadSettings, DriverNotReady, NotFound, RoostError
from roost.model.host import HostFacts
from roost.model.names import uuid_text
from roost.model.work.agent_terms import HostTerms
from roost.model.work.guest import GuestReport
from roost.model.work.orders import (
    Order,
    OrderAnswer,
    OwnNode,
    PollAnswer,
    PollingAgent,
    Registration,
    RegistrationAnswer,
)
from roost.model.work.standing import Standing
from roost.simulator.cluster import agent_routes
from roost.simulator.cluster.environment.rare_faults import RareFaults
from roost.simulator.cluster.environment.trouble import DriverChance
from roost.simulator.cluster.network import Call
from roost.simulator.cluster.processes import DOWN_TIME_S, Process, Servers

A = TypeVar("A")

# Faults of the driver, each with its share of the calls while driver faults strike.
_FAULTS: tuple[tuple[Action, Kind, float], ...] = (
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
# Further faults in worlds with rare faults: no other host or attempt can succeed.
_ABORTED: tuple[Action, ...] = (
    "destroy",
    "power",
    "rebuild",
    "prepare",
    "send_disk",
    "finish",
    "discard",
    "live_migrate",
    "inspect",
    "save",
)


def _script(faults: Sequence[tuple[Action, Kind, float]]) -> Script:
    return Script(fault=tuple(Fault(action=action, kind=kind, share=share) for action, kind, share in faults))


_SCRIPT = _script(_FAULTS)
_RARE_SCRIPT = _script((*_FAULTS, ("inspect", "failed", 0.2), *((action, "aborted", 0.3) for action in _ABORTED)))


def _script_of(rare: RareFaults) -> Script:
    """Return the faults of drivers."""
    if rare.focus is None:
        return _RARE_SCRIPT if rare.is_on else _SCRIPT
    return _script([fault for action in rare.focus.actions for fault in _focus_faults(action)])


def _focus_faults(action: Action) -> tuple[tuple[Action, Kind, float], ...]:
    """Return the faults of an action in the focus: most calls fail."""
    return (action, "failed", 0.3), (action, "aborted", 0.4)


DRIVER_TIMEOUT_S = 12.0
_TICK_S, _REPORT_S, _SYNC_S, _IMAGES_S = 0.7, 20.0, 40.0, 30.0
_QUICK_S, _SLOW_S, _HUNG_S = (0.0, 0.05), (0.5, 10.0), (DRIVER_TIMEOUT_S, 4 * DRIVER_TIMEOUT_S)
# Range of seconds: about as long as a host is silent before it counts as down.
_STUCK_S = (DOWN_TIME_S, DOWN_TIME_S + 4.0)
# Range of seconds: a server holds back its answer to a poll without news.
_POLL_S = (0.3, 1.0)
_BACK_S = (0.5, 25.0)


class _CrashingJournal(Journal):
    """A journal in memory; its agent may die before and after each write."""

    def __init__(self, kill: Callable[[], None]) -> None:
        super().__init__(None)
        self._kill = kill

    @contextmanager
    def _writing(self) -> Iterator[Callable[..., None]]:  # type: ignore[override]  # the type it yields is private
        self._kill()
        with super()._writing() as write:
            yield write
        self._kill()


class StandingReply(msgspec.Struct, frozen=True):
    """A server's reply about the standing of instances."""

    by_uuid: Mapping[str, Standing]

    def standings(self, uuids: Collection[str]) -> Mapping[str, Standing]:
        """Return the standings of the instances, as far as the reply contains them."""
        return {uuid: self.by_uuid[uuid] for uuid in uuids if uuid in self.by_uuid}


class Machine:
    """A host: its journal and its guests, and at most one agent at a time.

    Args:
        world: shared by all hosts.
        host: its name, and that of its only node.
        uuid: of its provider.
        rack: its rack; empty: unknown.
    """

    def __init__(self, world: Servers, host: str, uuid: str, *, rack: str = "") -> None:
        self.host, self.uuid, self.rack = host, uuid, rack
        self.world = world
        self.is_lost = False  # for good
        self.process: AgentProcess | None = None
        self.journal = _CrashingJournal(self._kill)
        self._start_count = 0
        world.shelf.kills[host] = self._kill

    def _kill(self) -> None:
        self.world.faults.kill("crashed", self.die)

    def start(self) -> None:
        """Start an agent process, unless one is running or the host is lost."""
        if self.process is None and not self.is_lost:
            self._start_count += 1
            self.process = AgentProcess(self)
            self.process.tick()

    def die(self) -> None:
        """Kill the agent process; a new one starts after a while, or never."""
        if self.process is None:
            return
        self.process.is_alive = False
        self.process = None
        world = self.world
        if world.chance.random() < 0.1 and not world.faults.is_over:
            return  # The agent does not restart before the faults end, if ever.
        world.events.schedule(world.chance.uniform(*_BACK_S), "agent back", self.start, detail=self.host)

    def new_run(self) -> str:
        """Return the uuid of the next agent process."""
        return uuid_text(self.world.identities.uuids(1)[0])


class AgentProcess:
    """One process of a host's agent; state outside the journal and the shelf is lost when it ends.

    Args:
        machine: its host.
    """

    def __init__(self, machine: Machine) -> None:
        world, self.machine = machine.world, machine
        self.is_alive, self.host = True, machine.host
        self.driver = Fake(
            _script_of(world.rare),
            terms=HostTerms(),
            chance=DriverChance(world.faults) if world.rare.focus is None else world.rare.driver_chance,
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
        self.executor = OrderExecutor(
            self.host, run=self.run, driver=self.driver, journal=machine.journal, use_of={node: self.use}.__getitem__
        )
        self._world = world
        self._has_started = self._is_polling = self._is_reporting = False
        self._report_at_s = self._images_at_s = 0.0

    # --- ticks ---

    def tick(self) -> None:
        """Do the due work, and schedule the next tick."""
        if not self.is_alive:
            return
        self._world.events.schedule(_TICK_S, "tick", self.tick, detail=self.host)
        if self._world.faults.strikes("left", per=_TICK_S):
            self.leave()
            return
        self._advance()

    def _advance(self) -> None:
        if not self.is_alive:
            return
        for task in self.agent.due(self._now_s):
            self._start_task(task)
        if self.agent.end is not None:
            self._world.events.note(f"{self.host} ends: {self.agent.end}")
            self.machine.die()
            return
        polling = self.agent.poll_part()
        if polling is not None and not self._is_polling:
            self._is_polling = True
            self._poll(polling)
        if self.agent.is_registered and not self._is_reporting and self._now_s >= self._report_at_s:
            self._is_reporting = True
            self._report()

    @property
    def _now_s(self) -> float:
        return self._world.clock.time_s

    def leave(self) -> None:
        """Sign off, so that the host counts as down at once."""
        host, run = self.host, self.run
        self._call("leave", lambda process: agent_routes.leave(process, host, run), lambda _reply: None, is_last=True)
        self.machine.die()

    # --- tasks ---

    def _start_task(self, task: Task) -> None:
        match task:
            case Scan():
                self._schedule(_QUICK_S, "look at guests", self._scan_guests)
            case Register(registration):
                self._register(registration)
            case Reply(order, answer):
                self._send_answer(order, answer)
            case Work() | Undo() | Clean():
                span = self._draw_span(task)
                if isinstance(task, Work):
                    self._world.rare.on_begun(task.order, self.host)
                    if span is _HUNG_S:
                        self._world.rare.on_trouble(task.order, self.host)
                self._schedule(span, f"{_describe_task(task)}", lambda: self._execute(task))

    def _draw_span(self, task: Work | Undo | Clean | None = None) -> tuple[float, float]:
        """Return the range of seconds that a driver takes; None: to look at guests, or to return."""
        faults, rare = self._world.faults, self._world.rare
        focus = rare.focus
        is_in_focus = focus is not None and isinstance(task, Work) and _action_of(task) in (*focus.actions, "prepare")
        if focus is not None and is_in_focus and rare.strikes("stuck"):
            return _STUCK_S if focus.is_cut_off else _HUNG_S
        if faults.strikes("hung"):
            return _HUNG_S
        return _SLOW_S if faults.strikes("slow") else _QUICK_S

    def _execute(self, task: Work | Undo | Clean) -> None:
        answer = self.executor.carry_out(task)
        if isinstance(task, Work) and answer.outcome != "ok":
            self._world.rare.on_trouble(task.order, self.host)
        # The effects exist before the agent learns of the outcome.
        self._schedule(
            self._draw_span(), f"{_describe_task(task)} {answer.outcome}", lambda: self._finish_task(task, answer)
        )

    def _finish_task(self, task: Work | Undo | Clean, answer: OrderAnswer) -> None:
        self.agent.on_worked(task, answer, self._now_s)
        self._advance()

    def _scan_guests(self) -> None:
        try:
            if not self._has_started:
                self.driver.start(self.host)
                self._has_started = True
            guests = check_guests(self.driver.guests())
        except DriverNotReady as error:
            self.agent.on_refused(error, self._now_s)
        else:
            # Guests may change before the agent receives the scan.
            self._schedule(self._draw_span(), "looked", lambda: self._finish_scan(guests))
            return
        self._advance()

    def _finish_scan(self, guests: Sequence[GuestReport]) -> None:
        self.agent.on_scan([OwnNode(node=self.host, uuid=self.machine.uuid)], guests)
        self._advance()

    # --- the server ---

    def _register(self, registration: Registration) -> None:
        def apply_reply(registered: RegistrationAnswer) -> None:
            self.agent.on_registered(registered, self._now_s)
            self._advance()

        def apply_error(error: RoostError) -> None:
            self.agent.on_refused(error, self._now_s)
            self._advance()

        host = self.host
        self._call(
            "register",
            lambda process: agent_routes.register(process, host, registration),
            apply_reply,
            on_error=apply_error,
        )

    def _send_answer(self, order: Order, answer: OrderAnswer) -> None:
        def apply_reply(_answer: None) -> None:
            self.agent.on_delivered(order)
            self._advance()

        def apply_error(error: RoostError) -> None:
            self.agent.on_undelivered(order, error, self._now_s)
            self._advance()

        self._call(
            f"answer {answer.outcome}",
            lambda process: agent_routes.answer(process, order.id, answer),
            apply_reply,
            on_error=apply_error,
        )

    def _poll(self, agent: PollingAgent) -> None:
        def apply_reply(polled: PollAnswer) -> None:
            self._is_polling = False
            self.agent.on_polled(
                agent.fence,
                polled.orders,
                now_s=self._now_s,
                withdrawn=polled.withdrawn,
                settled=polled.settled,
                is_unknown=bool(polled.unknown),
                is_superseded=bool(polled.superseded),
                is_disabled=bool(polled.disabled),
            )
            self._advance()

        def apply_error(error: RoostError) -> None:
            self._is_polling = False
            if isinstance(error, BadSettings):
                self.agent.end = error

        chance = self._world.chance
        self._call(
            "poll",
            lambda process: agent_routes.poll(process, agent),
            apply_reply,
            on_error=apply_error,
            hold_s=lambda polled: 0.0 if has_news(polled) else chance.uniform(*_POLL_S),
        )

    def _report(self) -> None:
        def apply_reply(_answer: None) -> None:
            self._is_reporting, self._report_at_s = False, self._now_s + _REPORT_S
            self.agent.on_tracked()
            self._clean_images()
            self._advance()

        def apply_error(error: RoostError) -> None:
            self._is_reporting, self._report_at_s = False, self._now_s + _TICK_S
            if isinstance(error, NotFound):
                self.agent.on_unknown(self._now_s)

        host, facts = self.host, self.use.facts
        self._call(
            "report", lambda process: agent_routes.report(process, host, facts), apply_reply, on_error=apply_error
        )

    def _clean_images(self) -> None:
        """Delete the images of deleted instances, if it is time to look."""
        if self._now_s < self._images_at_s:
            return
        self._images_at_s, host = self._now_s + _IMAGES_S, self.host

        def apply_reply(standings: Mapping[str, Standing]) -> None:
            SavedImages(host, driver=self.driver, instances=StandingReply(standings)).drop_deleted()

        if images := self.driver.saved_images():
            self._call("standings", lambda process: agent_routes.standings(process, images), apply_reply)

    def _call(
        self,
        name: str,
        action: Callable[[Process], A],
        on_reply: Callable[[A], None],
        *,
        on_error: Callable[[RoostError], None] = lambda _error: None,
        hold_s: Callable[[A], float] = lambda _answer: 0.0,
        is_last: bool = False,
    ) -> None:
        def act(process: Process) -> A:
            result = action(process)
            self._world.rare.on_stored()
            return result

        Call(
            self._world,
            self.host,
            name,
            action=act,
            on_reply=on_reply,
            on_error=on_error,
            hold_s=hold_s,
            is_wanted=lambda: self.is_alive or is_last,
        )

    def _schedule(self, span: tuple[float, float], kind: str, act: Callable[[], None]) -> None:
        def act_if_alive() -> None:
            if self.is_alive:
                act()

        self._world.events.schedule(self._world.chance.uniform(*span), kind, act_if_alive, detail=self.host)


def _action_of(task: Work) -> str:
    return str(type(task.order.act).__struct_config__.tag)


def _describe_task(task: Work | Undo | Clean) -> str:
    match task:
        case Work():
            return _action_of(task)
        case Undo(order):
            return f"undo {type(order.act).__struct_config__.tag}"
        case Clean(_, action):
            return f"clean {action}"
