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
from roost.compute.agent.tasks import Clean, Register, Reply, Scan, Task, Undo, Work
from roost.compute.agent.worker_pool import WorkerPool
from roost.compute.driver import DRIVER_ERRORS, Driver, read_resources
from roost.compute.driver_values import check_guests, check_nodes
from roost.compute.inventory.host_use import HostUse
from roost.errors import (
    AccessDenied,
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
_SHORT_WAIT_S = 1.0  # maximum wait of a poll while some agents do not take part yet
_POLLS_MIN = 4  # minimum number of polls before a silent host counts as down
_REPLY_THREADS, _TRACK_THREADS = 4, 2
_THREADS_MAX = 256


class Tracked(Protocol):
    """The result of a tracker's update of a node."""

    @property
    def facts(self) -> HostFacts:
        """The facts to report to the server."""


class Tracker(Protocol):
    """Keeps the inventories of a host's nodes in Placement up to date."""

    def update(self, node: str, *, is_startup: bool, is_disabled: bool | None = None) -> Tracked | None:
        """Write a node to Placement, and return the facts for the server; None: the update failed, try again.

        Args:
            node: its name.
            is_startup: whether inventories may be reshaped; true until the first successful update.
            is_disabled: whether the service is disabled; None: unknown.

        Raises:
            RoostError: the agent must end.
        """

    def drop_gone_nodes(self) -> object:
        """Delete the permanently removed nodes without allocations from Placement.

        Raises:
            JournalLost: a node cannot be deleted from the journal. Errors of the driver are not raised.
        """

    def use(self, node: str) -> HostUse:
        """Return the use of a node.

        Raises:
            KeyError: the node was never updated.
        """

    def node_uuid(self, node: str, reported: str | None = None) -> str:
        """Return the uuid of a node, which never changes.

        Args:
            node: its name.
            reported: uuid from the driver; None: it reports none.

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
    images_s: float = 600.0  # seconds between checks of saved images; <= 0: only at the start
    stop_s: float = 30.0  # seconds to wait at the end for work under way


@dataclass(slots=True)
class RunningAgent:
    """An agent with its executor, tracker and images."""

    agent: Agent
    driver: Driver
    executor: OrderExecutor
    tracker: Tracker
    images: Images | None = None  # None: the agent has no look-up of instances
    has_started: bool = False  # whether the driver has started
    nodes: Sequence[str] = ()
    started_nodes: set[str] = field(default_factory=set)  # nodes with a successful update
    is_tracking: bool = False
    track_at_s: float = 0.0
    is_checking_images: bool = False
    images_at_s: float = 0.0
    was_disabled: bool | None = None
    is_end_logged: bool = False


class AgentRuntime:
    """The agents of one process, with one server.

    Args:
        agents: the agents.
        server: the server of all agents.
        clock: the clock of the machine.
        pace: limits and intervals.
    """

    def __init__(
        self, agents: Iterable[RunningAgent], server: Server, *, clock: Clock, pace: Pace | None = None
    ) -> None:
        self._agents = {each.agent.host: each for each in agents}
        self._server, self._clock, self._pace = server, clock, pace or Pace()
        self._changed = threading.Condition(threading.RLock())  # guards all agents, and signals their changes
        self._broken: BaseException | None = None
        pool = partial(
            WorkerPool, threads_max=_THREADS_MAX, now_s=clock.elapsed_s, on_error=self._break, on_hang=_log_hang
        )
        hang_after_s = self._pace.driver_timeout_s
        self._work_pool = pool("work", count=self._pace.work_threads, hang_after_s=hang_after_s)
        self._reply_pool = pool("reply", count=_REPLY_THREADS, hang_after_s=hang_after_s)
        self._track_pool = pool("track", count=_TRACK_THREADS, hang_after_s=hang_after_s)
        # A pool of its own, so that a hanging image folder delays nothing else.
        self._image_pool = pool("images", count=1, hang_after_s=hang_after_s)
        self._pools = (self._work_pool, self._reply_pool, self._track_pool, self._image_pool)

    def run(self, stop: threading.Event) -> None:
        """Run the agents until ``stop``, or until the last of them must end.

        Return when no work is under way, or after a time limit. Guests keep running.

        Raises:
            RoostError: an agent had to end.
        """
        agents = [*self._agents.values()]
        for at in range(0, len(agents), AGENTS_MAX):
            threading.Thread(
                target=self._poll, args=(agents[at : at + AGENTS_MAX], stop), name="poll", daemon=True
            ).start()
        try:
            while self._broken is None and self._tick() and not stop.wait(_TICK_S):
                pass
            self._wind_up()
        finally:
            stop.set()
            for pool in self._pools:
                pool.close()
            with self._changed:
                self._changed.notify_all()
        if self._broken is not None:
            raise self._broken
        for each in self._agents.values():
            if each.agent.end is not None:
                raise each.agent.end

    # --- time ---

    def _tick(self) -> bool:
        """Start all due work; return whether any agent lives."""
        for pool in self._pools:
            pool.check_hangs()
        for each in self._agents.values():
            self._start_due(each)
            self._track_if_due(each)
        return any(each.agent.end is None for each in self._agents.values())

    def _wind_up(self) -> None:
        """Start nothing more, and wait for work under way."""
        with self._changed:
            for each in self._agents.values():
                each.agent.stop()
            until_s = self._clock.elapsed_s() + self._pace.stop_s
            while self._broken is None and self._clock.elapsed_s() < until_s and not self._is_idle():
                self._changed.wait(_TICK_S)

    def _is_idle(self) -> bool:
        return all(
            agent.is_idle or agent.end is not None or not agent.is_registered
            for agent in (each.agent for each in self._agents.values())
        )

    def _start_due(self, running: RunningAgent) -> None:
        """Start the due work of an agent."""
        with self._changed:
            try:
                tasks = running.agent.due(self._clock.elapsed_s())
            except RoostError as error:
                running.agent.end, tasks = error, []
            if running.agent.end is not None and not running.is_end_logged:
                running.is_end_logged = True  # Other agents of the process may live on.
                log.event("agent_ends", host=running.agent.host, problem=str(running.agent.end))
            self._changed.notify_all()
        for task in tasks:
            pool = self._reply_pool if isinstance(task, (Register, Reply)) else self._work_pool
            pool.put(partial(self._run_task, running, task), _task_name(task, running.agent.host))

    def _notify(self, running: RunningAgent, event: Callable[[], None]) -> None:
        """Pass an event to an agent, and start its due work."""
        with self._changed:
            try:
                event()
            except RoostError as error:  # Its journal is lost.
                running.agent.end = running.agent.end or error
        self._start_due(running)

    def _end(self, running: RunningAgent, error: RoostError) -> None:
        """End an agent with an error, unless it has ended already."""
        with self._changed:
            running.agent.end = running.agent.end or error
        self._start_due(running)

    def _break(self, error: BaseException) -> None:
        with self._changed:
            self._broken = self._broken or error
            self._changed.notify_all()

    # --- tasks ---

    def _run_task(self, running: RunningAgent, task: Task) -> None:
        agent = running.agent
        match task:
            case Scan():
                self._scan(running)
            case Register():
                try:
                    registered = self._server.register(agent.host, task.registration)
                except RoostError as error:
                    log.event("register_refused", host=agent.host, problem=str(error))
                    self._notify(running, partial(agent.on_refused, error, self._clock.elapsed_s()))
                else:
                    self._notify(running, lambda: agent.on_registered(registered, self._clock.elapsed_s()))
                    self._track_if_due(running)
            case Reply(order, answer):
                try:
                    self._server.answer(order.id, answer)
                except RoostError as error:
                    self._notify(running, partial(agent.on_undelivered, order, error, self._clock.elapsed_s()))
                else:
                    self._notify(running, partial(agent.on_delivered, order))
            case Work() | Undo() | Clean():
                try:
                    answer = running.executor.carry_out(task)
                except RoostError as error:
                    self._end(running, error)
                else:
                    self._notify(running, lambda: agent.on_worked(task, answer, self._clock.elapsed_s()))

    def _scan(self, running: RunningAgent) -> None:
        agent, driver = running.agent, running.driver
        try:
            if not running.has_started:
                driver.start(agent.host)
                running.has_started = True
            names = check_nodes(driver.nodes())
            nodes = [_own_node(running, name) for name in names]
            guests = check_guests(driver.guests())
        except (BadSettings, DriverNotReady) as error:
            log.event("driver_not_ready", host=agent.host, problem=str(error))
            self._notify(running, partial(agent.on_refused, error, self._clock.elapsed_s()))
        except JournalLost as error:
            self._notify(running, partial(agent.on_refused, error, self._clock.elapsed_s()))
        except DRIVER_ERRORS as error:
            log.fault(f"scan of host {agent.host}", error)
            problem = Unavailable(f"the driver of host {agent.host} raises {type(error).__name__}: {first_line(error)}")
            self._notify(running, partial(agent.on_refused, problem, self._clock.elapsed_s()))
        else:
            running.nodes = names
            self._notify(running, partial(agent.on_scan, nodes, guests))

    # --- the tracker ---

    def _track_if_due(self, running: RunningAgent) -> None:
        now_s, agent = self._clock.elapsed_s(), running.agent
        with self._changed:
            is_changed = agent.is_disabled is not running.was_disabled
            is_due = now_s >= running.track_at_s or (is_changed and running.was_disabled is not None)
            if running.is_tracking or not is_due or not agent.is_registered or agent.end is not None:
                return
            running.is_tracking, running.was_disabled = True, agent.is_disabled
        self._track_pool.put(partial(self._track, running), f"update of the nodes of host {agent.host}")

    def _track(self, running: RunningAgent) -> None:
        agent, has_failed = running.agent, False
        try:
            for node in running.nodes:
                has_failed |= not self._update(running, node)
            if not has_failed:
                running.tracker.drop_gone_nodes()
        except RoostError as error:
            with self._changed:
                # Work under way ends first, and its answers are sent.
                agent.stop()
                until_s = self._clock.elapsed_s() + self._pace.stop_s
                while not agent.is_idle and self._clock.elapsed_s() < until_s and agent.end is None:
                    self._changed.wait(_TICK_S)
                agent.end = agent.end or error
            self._start_due(running)
            return
        with self._changed:
            pause_s = self._pace.retry_s if has_failed else self._pace.update_s
            running.track_at_s = self._clock.elapsed_s() + pause_s if pause_s > 0 else float("inf")
            running.is_tracking = False
        if not has_failed:
            self._notify(running, agent.on_tracked)
            self._check_images_if_due(running)

    def _update(self, running: RunningAgent, node: str) -> bool:
        """Update one node; return whether the server and Placement have its present state."""
        agent = running.agent
        is_startup = node not in running.started_nodes
        try:
            update = running.tracker.update(node, is_startup=is_startup, is_disabled=agent.is_disabled)
        except RoostError:
            raise
        except DRIVER_ERRORS as error:
            log.fault(f"update of node {node}", error)
            return False
        if update is None:
            return False
        running.started_nodes.add(node)
        try:
            self._server.report(agent.host, node, update.facts)
        except (AccessDenied, BadSettings):
            raise
        except (BadRequest, Conflict, NotFound, Unavailable) as error:
            log.event("report_refused", host=agent.host, node=node, problem=str(error))
            if isinstance(error, NotFound):
                self._notify(running, partial(agent.on_unknown, self._clock.elapsed_s()))
            return False
        return True

    # --- saved images ---

    def _check_images_if_due(self, running: RunningAgent) -> None:
        images = running.images
        with self._changed:
            is_due = self._clock.elapsed_s() >= running.images_at_s and not running.is_checking_images
            if images is None or not is_due:
                return
            running.is_checking_images = True
        name = f"check of the saved images of host {running.agent.host}"
        self._image_pool.put(partial(self._check_images, running, images), name)

    def _check_images(self, running: RunningAgent, images: Images) -> None:
        images.drop_deleted()
        with self._changed:
            pause_s = self._pace.images_s
            running.images_at_s = self._clock.elapsed_s() + pause_s if pause_s > 0 else float("inf")
            running.is_checking_images = False

    # --- the poller ---

    def _poll(self, agents: Sequence[RunningAgent], stop: threading.Event) -> None:
        try:
            while not stop.is_set():
                log.write_repetitions()
                with self._changed:
                    polling = [part for each in agents if (part := each.agent.poll_part()) is not None]
                    if not polling:
                        self._changed.wait(_TICK_S)
                        continue
                    wait_s = self._wait_s(agents, polling)
                if not self._poll_once(polling, wait_s):
                    stop.wait(self._pace.retry_s)
        except BaseException as error:  # noqa: BLE001  # Without polls the agents would be silently dead.
            self._break(error)

    def _wait_s(self, agents: Sequence[RunningAgent], polling: Sequence[PollingAgent]) -> float:
        """Return the seconds that a poll may wait: few if agents are about to join, 0 for a prompt answer."""
        if any(self._agents[each.host].agent.needs_prompt_poll for each in polling):
            return 0.0
        live = [each.agent for each in agents if each.agent.end is None]
        longest_s = min([WAIT_MAX_S, *(each.down_after_s / _POLLS_MIN for each in live)])
        return longest_s if len(polling) == len(live) else min(longest_s, _SHORT_WAIT_S)

    def _poll_once(self, polling: Sequence[PollingAgent], wait_s: float) -> bool:
        """Poll for orders; return whether the server answered."""
        try:
            answer = self._server.poll(
                Poll(agents=tuple(polling), wait_s=wait_s, most=min(100 * len(polling), ORDERS_MAX))
            )
        except NotFound:
            answer = PollAnswer(unknown=tuple(each.host for each in polling))
        except (AccessDenied, BadSettings) as error:
            for each in polling:
                self._end(self._agents[each.host], error)
            return False
        except RoostError as error:
            log.event("poll_failed", problem=str(error))
            return False
        self._take_poll_answer(polling, answer)
        return True

    def _take_poll_answer(self, polling: Sequence[PollingAgent], answer: PollAnswer) -> None:
        """Pass each agent its part of the answer to a poll."""
        orders: dict[str, list[Order]] = {}
        for order in answer.orders:
            orders.setdefault(order.host, []).append(order)
        lost, disabled = {*answer.unknown, *answer.superseded}, {*answer.disabled}
        for each in polling:
            running, is_disabled = self._agents[each.host], each.host in disabled
            has_news = bool(each.held) or each.host in orders or each.host in lost
            if not has_news and running.agent.has_polled_state(is_disabled=is_disabled):
                continue
            event = partial(
                running.agent.on_polled,
                each.fence,
                orders.get(each.host, ()),
                now_s=self._clock.elapsed_s(),
                withdrawn=answer.withdrawn,
                settled=answer.settled,
                is_unknown=each.host in answer.unknown,
                is_superseded=each.host in answer.superseded,
                is_disabled=is_disabled,
            )
            self._notify(running, event)


def _log_hang(name: str) -> None:
    log.event("hangs", problem=name)


def _task_name(task: Task, host: str) -> str:
    kind = type(task).__name__.lower()
    if isinstance(task, (Reply, Work, Undo)):
        return f"{kind} on host {host}: {order_name(task.order)}"
    return f"{kind} on host {host}: instance {task.instance}" if isinstance(task, Clean) else f"{kind} on host {host}"


def _own_node(running: RunningAgent, node: str) -> OwnNode:
    """Return a node with its permanent uuid."""
    resources = read_resources(node, running.driver.resources(node))
    return OwnNode(node=node, uuid=running.tracker.node_uuid(node, resources.uuid))
