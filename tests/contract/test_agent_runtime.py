"""Agents with real threads, against a server in memory."""

import threading

import pytest

from roost.compute.agent.agent_journal import Journal
from roost.compute.agent.runtime import Pace
from roost.compute.drivers.fake.script import Fault, Script
from roost.errors import (
    AccessDenied,
    BadRequest,
    BuildFailed,
    Conflict,
    DriverNotReady,
    JournalLost,
    NotFound,
    ReshapeFailed,
)
from roost.model.work.orders import Destroy, Power
from tests.support.agents.driver_doubles import fake_driver, spec_of
from tests.support.agents.scripted_agents import MemoryServer, PlainTracker, order, resident, run_agents, spawn
from tests.support.fleets.worlds import uuid_named

QUICK = Pace(driver_timeout_s=0.2, update_s=0.05, retry_s=0.05, stop_s=5.0)


def test_agent_registers_reports_and_executes_orders(capsys):
    server, one = MemoryServer(), resident()
    with run_agents(server, one) as (agent_errors, _):
        server.put(spawn(), order(Power(is_on=False), 2))
        assert server.answer_to(101).outcome == "ok"
        assert server.answer_to(102).found.state == "stopped"
    assert agent_errors == []
    assert list(server.book.facts) == ["host-a"]
    assert one.tracker.updates[0] == ("host-a", True, False)
    assert (one.agent.is_idle, len(one.driver.guests())) == (True, 1)
    capsys.readouterr()


def test_many_agents_share_one_poll_and_execute_their_own_orders():
    server = MemoryServer()
    hosts = [f"host-{number}" for number in range(50)]
    residents = [resident(host) for host in hosts]
    with run_agents(server, *residents):
        orders = [spawn(f"{host} {one}", host) for host in hosts for one in range(4)]
        orders = [order_of(each, number) for number, each in enumerate(orders, start=1)]
        server.put(*orders)
        assert {server.answer_to(each.id).outcome for each in orders} == {"ok"}
    assert [len(each.driver.guests()) for each in residents] == [4] * 50


def order_of(one, number):
    """Return a copy of an order with another id."""
    return type(one)(**{name: getattr(one, name) for name in one.__struct_fields__ if name != "id"}, id=number)


def test_hung_driver_call_fails_its_order_and_the_agent_continues():
    server, go = MemoryServer(), threading.Event()
    script = Script(fault=(Fault(action="spawn", kind="slow", times=1),))
    one = resident(driver=fake_driver(script, wait=lambda _: go.wait(30)), pace=QUICK)
    with run_agents(server, one, pace=QUICK):
        server.put(spawn(), order(Destroy(), 2, turn=1))
        answer = server.answer_to(101)
        assert (answer.outcome, "did not end spawn of instance" in answer.problem) == ("failed", True)
        server.put(spawn("other", order_id=7))
        assert "hangs in spawn" in server.answer_to(7).problem
        server.put(order(Destroy(), of="third", order_id=8))
        assert server.answer_to(8).outcome == "ok"
        go.set()
        assert server.answer_to(102).outcome == "ok"
    assert one.driver.guests() == []


def test_stopping_agent_finishes_started_orders_and_leaves_the_rest():
    server, go, started = MemoryServer(), threading.Event(), threading.Event()
    script = Script(fault=(Fault(action="spawn", kind="slow", times=1),))
    one = resident(driver=fake_driver(script, wait=lambda _: (started.set(), go.wait(30))))
    with run_agents(server, one):
        server.put(spawn(), order(Power(is_on=False), 2))
        assert started.wait(30)
        threading.Timer(0.2, go.set).start()
    assert [line.state for line in server.book.lines] == ["answered", "waiting"]
    with run_agents(server, resident(driver=one.driver, run="next")):
        assert server.answer_to(102).outcome == "ok"


def test_agent_registers_again_after_the_server_lost_it():
    server = MemoryServer()
    with run_agents(server, resident()):
        server.put(spawn())
        server.answer_to(101)
        with server.changed:
            server.book.runs.clear()
            server.changed.notify_all()
        server.put(order(Destroy(), 2))
        assert server.answer_to(102).outcome == "ok"


def test_evacuated_guests_are_destroyed_before_any_order():
    server, one = MemoryServer(), resident()
    one.driver.spawn(spec_of("gone", "host-a"), "old")
    server.book.destroy.add(uuid_named("gone"))
    server.put(spawn())
    with run_agents(server, one):
        assert server.answer_to(101).outcome == "ok"
    assert [found.uuid for found in one.driver.guests()] == [uuid_named("guest")]


def test_second_agent_of_a_host_ends_the_first():
    server = MemoryServer()
    with run_agents(server, resident()) as (agent_errors, first):
        server.put(spawn())
        server.answer_to(101)
        with run_agents(server, resident(run="other")) as (other_errors, _):
            first.join(30)
            assert isinstance(agent_errors[0], Conflict)
        assert other_errors == []


class RefusingServer(MemoryServer):
    """Refuses every registration."""

    def register(self, host, registration):
        """Refuse the registration."""
        raise AccessDenied("this token may only touch host b")


def test_refused_agent_ends_with_the_reason():
    with run_agents(RefusingServer(), resident()) as (agent_errors, thread):
        thread.join(30)
        assert str(agent_errors[0]) == "this token may only touch host b"


class FaultyTracker:
    """A tracker that first raises the given errors; for None it updates nothing."""

    def __init__(self, inner, *errors):
        self._inner, self._errors = inner, [*errors]

    def __getattr__(self, name):
        return getattr(self._inner, name)

    def update(self, node, *, is_startup, is_disabled=None):
        """Fail while errors are left, then update."""
        if not self._errors:
            return self._inner.update(node, is_startup=is_startup, is_disabled=is_disabled)
        error = self._errors.pop(0)
        if error is None:
            return None
        raise error


def test_orders_wait_until_the_host_is_in_placement(capsys):
    server, driver, journal = MemoryServer(), fake_driver(), Journal(None)
    tracker = FaultyTracker(PlainTracker(driver, journal), None, ValueError("odd"), None)
    with run_agents(server, resident(driver=driver, journal=journal, tracker=tracker)) as (agent_errors, _):
        server.put(spawn())
        assert server.answer_to(101).outcome == "ok"
    assert agent_errors == []
    assert tracker.drops[0] == 1  # No gone node is dropped before the others are updated.
    assert "odd" in capsys.readouterr().err


def test_failed_reshape_ends_the_agent_with_its_reason(capsys):
    driver, journal = fake_driver(), Journal(None)
    tracker = FaultyTracker(PlainTracker(driver, journal), ReshapeFailed("host-a", "who holds what is not known"))
    with run_agents(MemoryServer(), resident(driver=driver, journal=journal, tracker=tracker)) as (
        agent_errors,
        thread,
    ):
        thread.join(30)
        assert "who holds what is not known" in str(agent_errors[0])
    assert '"agent_ends"' in capsys.readouterr().err


@pytest.mark.parametrize("error", [DriverNotReady("it starts"), Conflict("odd"), ValueError("odd"), SystemExit("odd")])
def test_driver_start_is_retried_after_an_error(error, capsys):
    server, one = MemoryServer(), resident()
    errors, start = [error], one.driver.start

    def fail_then_start(host):
        if errors:
            raise errors.pop()
        start(host)

    one.driver.start = fail_then_start
    with run_agents(server, one) as (agent_errors, _):
        server.put(spawn())
        assert server.answer_to(101).outcome == "ok"
    assert agent_errors == []
    assert ("it starts" if isinstance(error, DriverNotReady) else "odd") in capsys.readouterr().err


def test_agent_with_a_lost_journal_ends_without_an_answer(capsys):
    server, journal = MemoryServer(), Journal(None)

    def fail(*_words):
        raise JournalLost("the disk is full")

    journal.finish = fail
    with run_agents(server, resident(journal=journal)) as (agent_errors, thread):
        server.put(spawn())
        thread.join(30)
        assert str(agent_errors[0]) == "the disk is full"
    assert server.book.lines[0].answer is None
    capsys.readouterr()


class FullJournal(Journal):
    """A journal on a full disk: one kind of line cannot be written."""

    def __init__(self, method):
        super().__init__(None)
        setattr(self, method, self._lose)

    def _lose(self, *_words):
        raise JournalLost("the disk is full")


def test_agent_that_cannot_store_its_node_ends_before_registration(capsys):
    server, journal = MemoryServer(), FullJournal("keep_node")
    with run_agents(server, resident(journal=journal)) as (agent_errors, thread):
        thread.join(30)
        assert str(agent_errors[0]) == "the disk is full"
    assert server.book.runs == {}
    capsys.readouterr()


class ExclusiveServer(MemoryServer):
    """Already has a live agent of host-a and refuses another one."""

    def register(self, host, registration):
        """Refuse another agent of the first host."""
        if host == "host-a":
            raise Conflict("another agent of host-a is alive")
        return super().register(host, registration)


def test_end_of_one_of_several_agents_is_logged_at_once(capsys):
    server = ExclusiveServer()
    with run_agents(server, resident(), resident("host-b")) as (agent_errors, thread):
        server.put(spawn(host="host-b"))
        assert server.answer_to(101).outcome == "ok"
        log = capsys.readouterr().err
        assert (thread.is_alive(), log.count('"agent_ends"')) == (True, 1)
        assert "another agent of host-a is alive" in log
    assert str(agent_errors[0]) == "another agent of host-a is alive"


class RevokingServer(MemoryServer):
    """Accepts registrations and refuses every poll."""

    def poll(self, poll):
        """Refuse the poll."""
        raise AccessDenied("the token was taken away")


def test_agent_refused_at_a_poll_ends_and_logs_it(capsys):
    with run_agents(RevokingServer(), resident()) as (agent_errors, thread):
        thread.join(30)
        assert str(agent_errors[0]) == "the token was taken away"
    assert capsys.readouterr().err.count('"agent_ends"') == 1


class PickyServer(MemoryServer):
    """Refuses the first registration as invalid."""

    has_refused = False

    def register(self, host, registration):
        """Refuse once."""
        if not self.has_refused:
            self.has_refused = True
            raise BadRequest("guests are too many")
        return super().register(host, registration)


def test_refused_registration_is_logged_and_retried(capsys):
    server = PickyServer()
    with run_agents(server, resident()):
        server.put(spawn())
        assert server.answer_to(101).outcome == "ok"
    assert '"register_refused"' in (log := capsys.readouterr().err)
    assert "guests are too many" in log


class ForgetfulServer(MemoryServer):
    """Refuses the first two reports of a host."""

    reports = 0

    def report(self, host, node, facts):
        """Refuse the first two reports."""
        self.reports += 1
        if self.reports == 1:
            raise NotFound("agent", host)
        if self.reports == 2:
            raise Conflict("its root provider is not there yet")
        super().report(host, node, facts)


def test_refused_report_is_retried(capsys):
    server = ForgetfulServer()
    with run_agents(server, resident()):
        server.put(spawn())
        assert server.answer_to(101).outcome == "ok"
    assert server.reports >= 3
    log = capsys.readouterr().err
    assert ("no such agent: host-a" in log, "its root provider is not there yet" in log) == (True, True)


class BusyServer(MemoryServer):
    """Fails the first polls."""

    fails = 3

    def poll(self, poll):
        """Fail the first three polls."""
        if self.fails:
            self.fails -= 1
            raise BuildFailed("whatever")
        return super().poll(poll)


def test_failed_poll_is_retried(capsys):
    server = BusyServer()
    with run_agents(server, resident()):
        server.put(spawn())
        assert server.answer_to(101).outcome == "ok"
    assert capsys.readouterr().err.count("poll_failed") == 3


def test_operator_disabling_a_host_reaches_the_tracker_at_once():
    server, one = MemoryServer(), resident()
    seen = threading.Event()
    update = one.tracker.update

    def watch(node, *, is_startup, is_disabled=None):
        if is_disabled:
            seen.set()
        return update(node, is_startup=is_startup, is_disabled=is_disabled)

    one.tracker.update = watch
    with run_agents(server, one, pace=Pace(update_s=-1.0, stop_s=5.0)):
        server.put(spawn())
        server.answer_to(101)
        with server.changed:
            one.agent.is_disabled = True
        assert seen.wait(30)
