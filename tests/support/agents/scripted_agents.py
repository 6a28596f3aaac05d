"""Agents in tests: a server in memory, a tracker that only knows the driver, and orders by name."""

import threading
from contextlib import contextmanager
from pathlib import Path

import msgspec

from roost.compute.agent.agent_journal import Journal
from roost.compute.agent.execute_order import OrderExecutor
from roost.compute.agent.identity import Identity
from roost.compute.agent.runtime import Pace, Resident, Running
from roost.compute.agent.state_machine import Agent
from roost.compute.inventory.host_use import HostUse
from roost.errors import Conflict, NotFound, RoostError
from roost.machine import SystemClock
from roost.model.host import HostFacts
from roost.model.work.orders import Order, OrderAnswer, PollAnswer, RegistrationAnswer, Spawn
from tests.support.agents.driver_doubles import fake, spec_of
from tests.support.fleets.worlds import uuid_named

HOST, RUN = "host-a", uuid_named("run")
PATIENT = Pace(update_s=0.05, retry_s=0.05, stop_s=5.0)


class Dead(BaseException):
    """An agent dies."""


class Line(msgspec.Struct):
    """An order at the server, and what is known of it."""

    order: Order
    state: str = "waiting"  # waiting, answered, withdrawn
    answer: OrderAnswer | None = None
    answers: int = 0  # how often it was answered


class Book(msgspec.Struct):
    """All that a server knows."""

    lines: list[Line] = []
    fences: dict[str, int] = {}
    runs: dict[str, str] = {}
    keep: set[str] = set()
    hold: set[str] = set()
    destroy: set[str] = set()
    facts: dict[str, HostFacts] = {}  # of nodes, as they were reported


class MemoryServer:
    """A server for agents, in memory or in a file; a poll waits until there is something."""

    def __init__(self, path: Path | None = None, *, down_after_s: float = 60.0) -> None:
        self._path, self._down_after_s = path, down_after_s
        self.changed = threading.Condition()
        self.book = msgspec.msgpack.decode(path.read_bytes(), type=Book) if path and path.exists() else Book()

    def put(self, *orders: Order) -> None:
        """Order something."""
        with self.changed:
            self.book.lines += [Line(order) for order in orders]
            self._save()

    def withdraw(self, order_id: int) -> None:
        """Want an order no more."""
        with self.changed:
            self._line(order_id).state = "withdrawn"
            self._save()

    def answer_to(self, order_id: int, timeout_s: float = 30.0) -> OrderAnswer:
        """Give what came of an order, when it has come."""
        line = self._line(order_id)
        with self.changed:
            assert self.changed.wait_for(lambda: line.answer is not None, timeout_s), (
                f"order {order_id} is not answered"
            )
        return line.answer

    def register(self, host, registration):
        """Take in an agent, and say what becomes of its guests."""
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
        """Take in what is known of a node."""
        with self.changed:
            self._check(host)
            self.book.facts[node] = facts
            self.changed.notify_all()

    def poll(self, poll):
        """Give the orders that agents do not hold."""
        with self.changed:
            self.changed.wait_for(lambda: self._polled(poll) != PollAnswer(), poll.wait_s)
            return self._polled(poll)

    def answer(self, order_id, answer):
        """Take in what came of an order; the first answer stays."""
        with self.changed:
            line = self._line(order_id)
            if line.state == "withdrawn":
                raise Conflict(f"order {order_id} was withdrawn")
            line.answers += 1
            if line.state == "waiting":
                line.state, line.answer = "answered", answer
            self._save()

    def deregister(self, host):
        """Forget an agent."""
        self.book.runs.pop(host, None)

    def _polled(self, poll):
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
    """Knows what is in use of a node, and asks no Placement."""

    def __init__(self, driver, journal, *, facts=HostFacts()) -> None:  # noqa: B008  # It is frozen.
        self._driver, self._journal, self._facts = driver, journal, facts
        self._uses = {}
        self.updates = []  # node, whether it was at the start, whether it is disabled
        self.drops = []  # how many updates there had been when gone nodes were to be dropped

    def update(self, node, *, is_startup, is_disabled=None):
        """Tell what is in use."""
        self._driver.resources(node)
        use = self._uses.setdefault(
            node,
            HostUse(self._facts, instances=self._journal.instances(node), migrations=self._journal.migrations(node)),
        )
        self.updates.append((node, is_startup, is_disabled))
        return use

    def drop_gone_nodes(self):
        """Drop none, since no Placement knows any, and note that it was asked for."""
        self.drops.append(len(self.updates))

    def use(self, node):
        """Give who has what of a node."""
        return self._uses[node]

    def node_uuid(self, node, told=None):
        """Give the uuid of a node."""
        self._journal.keep_node(node, uuid_named(node))
        return uuid_named(node)


def order(act, number=1, *, of="guest", turn=1, operation=None, host=HOST, order_id=None):
    """Give an order about the guest of a name; its operation is named after the guest and the turn."""
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
    """Give the guest of a name on the host."""
    return spec_of(of, HOST, **more)


@contextmanager
def living(server, *residents, pace=PATIENT):
    """Let agents live in threads; give what they end with, at the end."""
    stop, ends = threading.Event(), []

    def run():
        try:
            Running(residents, server, clock=SystemClock(), pace=pace).run(stop)
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
    """Give an agent of a host, with what it acts through."""
    driver, journal = driver or fake(host=host), journal or Journal(None)
    tracker = tracker or PlainTracker(driver, journal)
    run = uuid_named(f"{host} {run}")
    agent = Agent(Identity(host=host, run=run, driver="fake"), journal, driver_timeout_s=pace.driver_timeout_s)
    acting = OrderExecutor(host, run=run, driver=driver, journal=journal, use_of=tracker.use)
    return Resident(agent, driver, acting, tracker, images)


def spawn(name="guest", host="host-a", **more):
    """Give the order to build a guest."""
    return order(Spawn(spec_of(name, host)), of=name, host=host, **more)
