"""The runtime of agents: threads, time and the server. ``Agent`` decides everything else."""

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

import msgspec

from roost.compute.agent.execute_order import OrderExecutor
from roost.compute.agent.queues import order_name
from roost.compute.agent.server_port import Server
from roost.compute.agent.state_machine import Agent
from roost.compute.agent.tasks import Clean, Look, Register, Task, Tell, Undo, Work
from roost.compute.agent.worker_pool import Crew
from roost.compute.driver import RAISED, Driver, read_resources
from roost.compute.driver_values import check_guests, check_nodes
from roost.compute.inventory.host_use import HostUse
from roost.errors import (
    BadRequest,
    BadSettings,
    Conflict,
    DriverNotReady,
    JournalLost,
    NotFound,
    RoostError,
    Unavailable,
    first_line,
)
from roost.model.host import HostFacts
from roost.model.work.orders import AGENTS_MAX, ORDERS_MAX, WAIT_MAX_S, Order, OwnNode, Poll, PollAnswer, PollingAgent
from roost.observe import log
from roost.ports import Clock

_TICK_S = 0.5  # seconds between checks for due work
_SHORT_WAIT_S = 1.0  # seconds of a poll that not all agents take part in yet
_BEATS = 4  # minimum number of polls within the time after which a silent host counts as down
_TELLERS, _TRACKERS = 4, 2
_THREADS_MAX = 256


class Tracked(Protocol):
    """The result of a tracker's update of a node."""

    @property
    def facts(self) -> HostFacts:
        """The facts to report to the server."""


class Tracker(Protocol):
    """Keeps the inventories of a host's nodes in Placement up to date."""

    def update(self, node: str, *, is_startup: bool, is_disabled: bool | None = None) -> Tracked | None:
        """Write a node to Placement, and return the facts for the server; None: not this time.

        Args:
            node: its name.
            is_startup: whether inventories may be reshaped: until the first success.
            is_disabled: whether the service is disabled; None: unknown.

        Raises:
            RoostError: the agent must end.
        """

    def drop_gone_nodes(self) -> object:
        """Delete nodes from Placement that will not return, if they have no allocations.

        Raises:
            JournalLost: a node cannot be deleted from the journal. Errors of the driver are not raised.
        """

    def use(self, node: str) -> HostUse:
        """Return the use of a node.

        Raises:
            KeyError: the node was never updated.
        """

    def node_uuid(self, node: str, told: str | None = None) -> str:
        """Return the uuid of a node, which never changes.

        Args:
            node: its name.
            told: by the driver; None: it names none.

        Raises:
            BadSettings: the node had another uuid before.
        """


class Images(Protocol):
    """Saved images of the instances of a host, and of hosts that share its storage."""

    def drop_deleted(self) -> object:
        """Drop the images of deleted instances; errors of the driver are not raised."""


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """Limits and intervals of agents."""

    work_threads: int = 8  # threads that call drivers
    driver_timeout_s: float = 600.0
    update_s: float = 60.0  # seconds between updates of a tracker; <= 0: only at the start
    retry_s: float = 5.0  # seconds before a failed update is repeated
    images_s: float = 600.0  # seconds between looks at saved images; <= 0: only at the start
    stop_s: float = 30.0  # seconds that the end waits for work under way


@dataclass(slots=True)
class Resident:
    """An agent with its executor, tracker and images."""

    agent: Agent
    driver: Driver
    acting: OrderExecutor
    tracker: Tracker
    images: Images | None = None  # None: instances are not known here
    has_started: bool = False  # whether the driver has started
    nodes: Sequence[str] = ()
    started_nodes: set[str] = field(default_factory=set)  # with a successful update
    is_tracking: bool = False
    track_at_s: float = 0.0
    is_looking_at_images: bool = False
    images_at_s: float = 0.0
    was_disabled: bool | None = None
    is_end_told: bool = False


class Running:
    """The agents of one process, with one server.

    Args:
        residents: the agents.
        server: theirs.
        clock: of the machine.
        pace: limits and intervals.
    """

    def __init__(
        self, residents: Iterable[Resident], server: Server, *, clock: Clock, pace: Pace | None = None
    ) -> None:
        self._residents = {each.agent.host: each for each in residents}
        self._server, self._clock, self._pace = server, clock, pace or Pace()
        self._changed = threading.Condition(threading.RLock())  # of all agents
        self._broken: BaseException | None = None
        crew = partial(Crew, most=_THREADS_MAX, now_s=clock.elapsed_s, broken=self._break, hangs=_hangs)
        patience_s = self._pace.driver_timeout_s
        self._workers = crew("work", count=self._pace.work_threads, patience_s=patience_s)
        self._tellers = crew("tell", count=_TELLERS, patience_s=patience_s)
        self._trackers = crew("track", count=_TRACKERS, patience_s=patience_s)
        # A hanging folder of images delays nothing else.
        self._keepers = crew("images", count=1, patience_s=patience_s)
        self._crews = (self._workers, self._tellers, self._trackers, self._keepers)

    def run(self, stop: threading.Event) -> None:
        """Run the agents until ``stop``, or until the last of them must end.

        Returns when no work is under way, or the time for that is over. Guests keep running.

        Raises:
            RoostError: an agent had to end.
        """
        hosts = [*self._residents]
        for at in range(0, len(hosts), AGENTS_MAX):
            part = [self._residents[host] for host in hosts[at : at + AGENTS_MAX]]
            threading.Thread(target=self._poll, args=(part, stop), name="poll", daemon=True).start()
        try:
            while self._broken is None and self._tick() and not stop.wait(_TICK_S):
                pass
            self._wind_up()
        finally:
            stop.set()
            for crew in self._crews:
                crew.close()
            with self._changed:
                self._changed.notify_all()
        if self._broken is not None:
            raise self._broken
        for each in self._residents.values():
            if each.agent.end is not None:
                raise each.agent.end

    # --- time ---

    def _tick(self) -> bool:
        """Start all due work; return whether any agent lives."""
        for crew in self._crews:
            crew.look()
        for each in self._residents.values():
            self._go_on(each)
            self._track_if_due(each)
        return any(each.agent.end is None for each in self._residents.values())

    def _wind_up(self) -> None:
        """Start nothing more, and wait for work under way."""
        with self._changed:
            for each in self._residents.values():
                each.agent.stop()
            until_s = self._clock.elapsed_s() + self._pace.stop_s
            while self._broken is None and self._clock.elapsed_s() < until_s and not self._is_idle():
                self._changed.wait(_TICK_S)

    def _is_idle(self) -> bool:
        return all(
            agent.is_idle or agent.end is not None or not agent.is_registered
            for agent in (each.agent for each in self._residents.values())
        )

    def _go_on(self, resident: Resident) -> None:
        """Start the due work of an agent."""
        with self._changed:
            try:
                tasks = resident.agent.due(self._clock.elapsed_s())
            except RoostError as error:
                resident.agent.end, tasks = error, []
            if resident.agent.end is not None and not resident.is_end_told:
                resident.is_end_told = True  # Other agents of the process may live on.
                log.event("agent_ends", host=resident.agent.host, problem=str(resident.agent.end))
            self._changed.notify_all()
        for task in tasks:
            crew = self._tellers if isinstance(task, (Register, Tell)) else self._workers
            crew.put(partial(self._do, resident, task), _about(task, resident.agent.host))

    def _tell(self, resident: Resident, say: Callable[[], None]) -> None:
        """Pass an event to an agent, and start its due work."""
        with self._changed:
            try:
                say()
            except RoostError as error:  # Its journal is lost.
                resident.agent.end = resident.agent.end or error
        self._go_on(resident)

    def _break(self, error: BaseException) -> None:
        with self._changed:
            self._broken = self._broken or error
            self._changed.notify_all()

    # --- tasks ---

    def _do(self, resident: Resident, task: Task) -> None:
        agent = resident.agent
        match task:
            case Look():
                self._look(resident)
            case Register():
                try:
                    registered = self._server.register(agent.host, task.registration)
                except RoostError as error:
                    log.event("register_refused", host=agent.host, problem=str(error))
                    self._tell(resident, partial(agent.on_refused, error, self._clock.elapsed_s()))
                else:
                    self._tell(resident, lambda: agent.on_registered(registered, self._clock.elapsed_s()))
                    self._track_if_due(resident)
            case Tell(order, answer):
                try:
                    self._server.answer(order.id, answer)
                except RoostError as error:
                    self._tell(resident, partial(agent.untold, order, error, self._clock.elapsed_s()))
                else:
                    self._tell(resident, partial(agent.on_delivered, order))
            case Work() | Undo() | Clean():
                try:
                    came = resident.acting.carry_out(task)
                except RoostError as error:
                    agent.end = agent.end or error
                    self._go_on(resident)
                else:
                    self._tell(resident, lambda: agent.on_worked(task, came, self._clock.elapsed_s()))

    def _look(self, resident: Resident) -> None:
        agent, driver = resident.agent, resident.driver
        try:
            if not resident.has_started:
                driver.start(agent.host)
                resident.has_started = True
            names = check_nodes(driver.nodes())
            nodes = [_own(resident, name) for name in names]
            guests = check_guests(driver.guests())
        except (BadSettings, DriverNotReady) as error:
            log.event("driver_not_ready", host=agent.host, problem=str(error))
            self._tell(resident, partial(agent.on_refused, error, self._clock.elapsed_s()))
        except JournalLost as error:
            self._tell(resident, partial(agent.on_refused, error, self._clock.elapsed_s()))
        except RAISED as error:
            log.fault(f"looking at host {agent.host}", error)
            problem = Unavailable(f"the driver of host {agent.host} raises {type(error).__name__}: {first_line(error)}")
            self._tell(resident, partial(agent.on_refused, problem, self._clock.elapsed_s()))
        else:
            resident.nodes = names
            self._tell(resident, partial(agent.on_scan, nodes, guests))

    # --- the tracker ---

    def _track_if_due(self, resident: Resident) -> None:
        now_s, agent = self._clock.elapsed_s(), resident.agent
        with self._changed:
            is_changed = agent.is_disabled is not resident.was_disabled
            is_due = now_s >= resident.track_at_s or (is_changed and resident.was_disabled is not None)
            if resident.is_tracking or not is_due or not agent.is_registered or agent.end is not None:
                return
            resident.is_tracking, resident.was_disabled = True, agent.is_disabled
        self._trackers.put(partial(self._track, resident), f"update of the nodes of host {agent.host}")

    def _track(self, resident: Resident) -> None:
        agent, has_failed = resident.agent, False
        try:
            for node in resident.nodes:
                has_failed |= not self._update(resident, node)
            if not has_failed:
                resident.tracker.drop_gone_nodes()
        except RoostError as error:
            with self._changed:
                # Work under way ends first, and its answers are sent.
                agent.stop()
                until_s = self._clock.elapsed_s() + self._pace.stop_s
                while not agent.is_idle and self._clock.elapsed_s() < until_s and agent.end is None:
                    self._changed.wait(_TICK_S)
                agent.end = agent.end or error
            self._go_on(resident)
            return
        with self._changed:
            pause_s = self._pace.retry_s if has_failed else self._pace.update_s
            resident.track_at_s = self._clock.elapsed_s() + pause_s if pause_s > 0 else float("inf")
            resident.is_tracking = False
        if not has_failed:
            self._tell(resident, agent.on_tracked)
            self._look_at_images_if_due(resident)

    def _update(self, resident: Resident, node: str) -> bool:
        """Update one node; return whether the server and Placement have its present state."""
        agent = resident.agent
        is_startup = node not in resident.started_nodes
        try:
            learned = resident.tracker.update(node, is_startup=is_startup, is_disabled=agent.is_disabled)
        except RoostError:
            raise
        except RAISED as error:
            log.fault(f"update of node {node}", error)
            return False
        if learned is None:
            return False
        resident.started_nodes.add(node)
        try:
            self._server.report(agent.host, node, learned.facts)
        except BadSettings:
            raise
        except (BadRequest, Conflict, NotFound, Unavailable) as error:
            log.event("report_refused", host=agent.host, node=node, problem=str(error))
            if isinstance(error, NotFound):
                self._tell(resident, partial(agent.unknown, self._clock.elapsed_s()))
            return False
        return True

    # --- saved images ---

    def _look_at_images_if_due(self, resident: Resident) -> None:
        images = resident.images
        with self._changed:
            is_due = self._clock.elapsed_s() >= resident.images_at_s and not resident.is_looking_at_images
            if images is None or not is_due:
                return
            resident.is_looking_at_images = True
        about = f"look at the saved images of host {resident.agent.host}"
        self._keepers.put(partial(self._look_at_images, resident, images), about)

    def _look_at_images(self, resident: Resident, images: Images) -> None:
        images.drop_deleted()
        with self._changed:
            pause_s = self._pace.images_s
            resident.images_at_s = self._clock.elapsed_s() + pause_s if pause_s > 0 else float("inf")
            resident.is_looking_at_images = False

    # --- the poller ---

    def _poll(self, residents: Sequence[Resident], stop: threading.Event) -> None:
        try:
            while not stop.is_set():
                with self._changed:
                    asking = [each for resident in residents if (each := resident.agent.polling()) is not None]
                    if not asking:
                        self._changed.wait(_TICK_S)
                        continue
                    wait_s = self._wait_s(residents, asking)
                if not self._poll_once(asking, wait_s):
                    stop.wait(self._pace.retry_s)
        except BaseException as error:  # noqa: BLE001  # Without polls the agents would be silent, and nobody would know.
            self._break(error)

    def _wait_s(self, residents: Sequence[Resident], asking: Sequence[PollingAgent]) -> float:
        """Return the seconds that a poll may wait: fewer while agents are about to join, none if work waits for it."""
        if any(self._residents[each.host].agent.is_in_a_hurry for each in asking):
            return 0.0
        living = [each.agent for each in residents if each.agent.end is None]
        longest_s = min([WAIT_MAX_S, *(each.down_after_s / _BEATS for each in living)])
        return longest_s if len(asking) == len(living) else min(longest_s, _SHORT_WAIT_S)

    def _poll_once(self, asking: Sequence[PollingAgent], wait_s: float) -> bool:
        """Poll for orders; return whether the server answered."""
        try:
            polled = self._server.poll(
                Poll(agents=tuple(asking), wait_s=wait_s, most=min(100 * len(asking), ORDERS_MAX))
            )
        except NotFound:
            polled = PollAnswer(unknown=tuple(each.host for each in asking))
        except BadSettings as error:
            for each in asking:
                resident = self._residents[each.host]
                resident.agent.end = resident.agent.end or error
                self._go_on(resident)
            return False
        except RoostError as error:
            log.event("poll_failed", problem=str(error))
            return False
        self._hear(asking, polled)
        return True

    def _hear(self, asking: Sequence[PollingAgent], polled: PollAnswer) -> None:
        orders: dict[str, list[Order]] = {}
        for order in polled.orders:
            orders.setdefault(order.host, []).append(order)
        lost, disabled = {*polled.unknown, *polled.superseded}, {*polled.disabled}
        for each in asking:
            resident, is_disabled = self._residents[each.host], each.host in disabled
            has_news = bool(each.held) or each.host in orders or each.host in lost
            if not has_news and resident.agent.has_heard(is_disabled=is_disabled):
                continue
            hear = partial(
                resident.agent.on_polled,
                each.fence,
                orders.get(each.host, ()),
                now_s=self._clock.elapsed_s(),
                withdrawn=polled.withdrawn,
                settled=polled.settled,
                is_unknown=each.host in polled.unknown,
                is_superseded=each.host in polled.superseded,
                is_disabled=is_disabled,
            )
            self._tell(resident, hear)


def _hangs(about: str) -> None:
    log.event("hangs", problem=about)


def _about(task: Task, host: str) -> str:
    what = type(task).__name__.lower()
    if isinstance(task, (Tell, Work, Undo)):
        return f"{what} on host {host}: {order_name(task.order)}"
    return f"{what} on host {host}: instance {task.instance}" if isinstance(task, Clean) else f"{what} on host {host}"


def _own(resident: Resident, node: str) -> OwnNode:
    """Return a node with its permanent uuid."""
    known = read_resources(node, resident.driver.resources(node))
    return OwnNode(node=node, uuid=resident.tracker.node_uuid(node, known.uuid))
