"""Agents in tests: an in-memory server, a tracker without Placement, and orders by name."""

import threading
from contextlib import contextmanager
from pathlib import Path

import msgspec

from roost.compute.agent.agent_journal import Journal
from roost.compute.agent.execute_order import OrderExecutor
from roost.compute.agent.identity import Identity
from roost.compute.agent.runtime import AgentRuntime, Pace, RunningAgent
from roost.compute.agent.state_machine import Agent
from roost.compute.inventory.host_use import HostUse
from roost.errors import Conflict, NotFound, RoostError
from roost.machine import SystemClock
from roost.model.host import HostFacts
from roost.model.work.orders import Order, OrderAnswer, PollAnswer, RegistrationAnswer, Spawn
from tests.support.agents.driver_doubles import fake_driver, spec_of
from tests.support.fleets.worlds import uuid_named

HOST, RUN = "host-a", uuid_named("run")
PATIENT = Pace(update_s=0.05, retry_s=0.05, stop_s=5.0)


class AgentDeath(BaseException):
    """The death of an agent."""


class OrderState(msgspec.Struct):
    """An order on the server, and its state."""

    order: Order
    state: str = "waiting"  # waiting, answered, withdrawn
    answer: OrderAnswer | None = None
    answers: int = 0  # number of answers received


class ServerState(msgspec.Struct):
    """The state of a server."""

    lines: list[OrderState] = []
    fences: dict[str, int] = {}
    runs: dict[str, str] = {}
    keep: set[str] = set()
    hold: set[str] = set()
    destroy: set[str] = set()
    facts: dict[str, HostFacts] = {}  # by node, as reported


class MemoryServer:
    """A server for agents, in memory or in a file; a poll waits until it has a reply."""

    def __init__(self, path: Path | None = None, *, down_after_s: float = 60.0) -> None:
        self._path, self._down_after_s = path, down_after_s
        self.changed = threading.Condition()
        self.book = (
            msgspec.msgpack.decode(path.read_bytes(), type=ServerState) if path and path.exists() else ServerState()
        )

    def put(self, *orders: Order) -> None:
        """Add orders."""
        with self.changed:
            self.book.lines += [OrderState(order) for order in orders]
            self._save()

    def withdraw(self, order_id: int) -> None:
        """Withdraw an order."""
        with self.changed:
            self._line(order_id).state = "withdrawn"
            self._save()

    def answer_to(self, order_id: int, timeout_s: float = 30.0) -> OrderAnswer:
        """Wait for the answer to an order, and return it."""
        line = self._line(order_id)
        with self.changed:
            assert self.changed.wait_for(lambda: line.answer is not None, timeout_s), (
                f"order {order_id} is not answered"
            )
        return line.answer

    def register(self, host, registration):
        """Register an agent, and decide the fate of its guests."""
        with self.changed:
            book = self.book
            if book.runs.get(host) != registration.run:
                book.fences[host] = book.fences.get(host, 0) + 1
            book.runs[host] = registration.run
            found = {guest.uuid: guest.state for guest in registration.guests}
            destroy = tuple(sorted(book.destroy & found.keys()))
            hold = tuple(sorted(book.hold & found.keys()))
            self._save()
            return RegistrationAnswer(
                fence=book.fences[host],
                is_ready=not destroy and not hold,
                destroy=destroy,
                hold=hold,
                keep=tuple(sorted(found.keys() - {*destroy, *hold})),
                down_after_s=self._down_after_s,
            )

    def report(self, host, node, facts):
        """Store the facts of a node."""
        with self.changed:
            self._check(host)
            self.book.facts[node] = facts
            self.changed.notify_all()

    def poll(self, poll):
        """Return the orders that the polling agents do not hold yet."""
        with self.changed:
            self.changed.wait_for(lambda: self._poll_answer(poll) != PollAnswer(), poll.wait_s)
            return self._poll_answer(poll)

    def answer(self, order_id, answer):
        """Store the answer to an order; the first answer counts."""
        with self.changed:
            line = self._line(order_id)
            if line.state == "withdrawn":
                raise Conflict(f"order {order_id} was withdrawn")
            line.answers += 1
            if line.state == "waiting":
                line.state, line.answer = "answered", answer
            self._save()

    def deregister(self, host):
        """Remove an agent."""
        self.book.runs.pop(host, None)

    def _poll_answer(self, poll):
        agents = {each.host: each for each in poll.agents}
        held = {one for each in poll.agents for one in each.held}
        known = {host for host, each in agents.items() if self.book.runs.get(host) == each.run}
        lines = [each for each in self.book.lines if each.order.host in known]
        orders = [each.order for each in lines if each.state == "waiting" and each.order.id not in held]
        return PollAnswer(
            orders=tuple(sorted(orders, key=lambda order: (order.turn, order.number)))[: poll.most],
            withdrawn=tuple(each.order.id for each in lines if each.state == "withdrawn" and each.order.id in held),
            unknown=tuple(host for host in agents if host not in self.book.runs),
            superseded=tuple(host for host in agents if host in self.book.runs and host not in known),
        )

    def _check(self, host):
        if host not in self.book.runs:
            raise NotFound("agent", host)

    def _line(self, order_id):
        found = next((each for each in self.book.lines if each.order.id == order_id), None)
        if found is None:
            raise NotFound("order", str(order_id))
        return found

    def _save(self):
        self.changed.notify_all()
        if self._path is not None:
            fresh = self._path.with_suffix(".new")
            fresh.write_bytes(msgspec.msgpack.encode(self.book))
            fresh.replace(self._path)


class PlainTracker:
    """A tracker of the use of a node, without Placement."""

    def __init__(self, driver, journal, *, facts=HostFacts()) -> None:  # noqa: B008  # It is frozen.
        self._driver, self._journal, self._facts = driver, journal, facts
        self._uses = {}
        self.updates = []  # (node, is_startup, is_disabled) of each update
        self.drops = []  # the number of updates before each removal of gone nodes

    def update(self, node, *, is_startup, is_disabled=None):
        """Return the use of a node."""
        self._driver.resources(node)
        use = self._uses.setdefault(
            node,
            HostUse(self._facts, instances=self._journal.instances(node), migrations=self._journal.migrations(node)),
        )
        self.updates.append((node, is_startup, is_disabled))
        return use

    def drop_gone_nodes(self):
        """Record the call, and remove nothing, because there is no Placement."""
        self.drops.append(len(self.updates))

    def use(self, node):
        """Return the last use of a node."""
        return self._uses[node]

    def node_uuid(self, node, reported=None):
        """Return the uuid of a node."""
        self._journal.keep_node(node, uuid_named(node))
        return uuid_named(node)


def order(act, number=1, *, of="guest", turn=1, operation=None, host=HOST, order_id=None):
    """Return an order about a named guest; the name of its operation has the guest and the turn."""
    return Order(
        id=order_id or turn * 100 + number,
        host=host,
        operation=uuid_named(operation or f"{of} {turn}"),
        number=number,
        instance=uuid_named(of),
        turn=turn,
        act=act,
        limit_s=600.0,
    )


def spec(of="guest", **more):
    """Return the spec of a named guest on the host."""
    return spec_of(of, HOST, **more)


@contextmanager
def run_agents(server, *residents, pace=PATIENT):
    """Run agents in a thread during the block; yield the list of their final errors, and the thread."""
    stop, ends = threading.Event(), []

    def run():
        try:
            AgentRuntime(residents, server, clock=SystemClock(), pace=pace).run(stop)
        except RoostError as error:
            ends.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield ends, thread
    finally:
        stop.set()
        thread.join(30)
        assert not thread.is_alive()


def resident(host="host-a", *, driver=None, journal=None, tracker=None, images=None, pace=PATIENT, run="run"):
    """Return an agent of a host, with its driver, executor and tracker."""
    driver, journal = driver or fake_driver(host=host), journal or Journal(None)
    tracker = tracker or PlainTracker(driver, journal)
    run = uuid_named(f"{host} {run}")
    agent = Agent(Identity(host=host, run=run, driver="fake"), journal, driver_timeout_s=pace.driver_timeout_s)
    executor = OrderExecutor(host, run=run, driver=driver, journal=journal, use_of=tracker.use)
    return RunningAgent(agent, driver, executor, tracker, images)


def spawn(name="guest", host="host-a", **more):
    """Return the order to build a guest."""
    return order(Spawn(spec_of(name, host)), of=name, host=host, **more)
