"""A driver that raises any error in any method: the error is logged and contained, and other agents continue."""

from asyncio import CancelledError

import pytest

from roost.model.work.guest import GuestReport, TransferTarget
from roost.model.work.orders import (
    AbortMigration,
    Destroy,
    Discard,
    Finish,
    Inspect,
    LiveMigrate,
    Power,
    Prepare,
    Rebuild,
    Save,
    SendDisk,
    Spawn,
)
from tests.support.agents.driver_doubles import fake_driver, spec_of
from tests.support.agents.scripted_agents import MemoryServer, order, resident, run_agents, spawn
from tests.support.fleets.worlds import uuid_named
from tests.support.wait import wait_until

TARGET = TransferTarget(uuid=uuid_named("guest"), node="host-b", address="host-b")
ACTS = {
    "spawn": Spawn(spec_of("guest")),
    "destroy": Destroy(),
    "power": Power(is_on=False),
    "rebuild": Rebuild(spec_of("guest")),
    "prepare": Prepare(spec_of("guest")),
    "send_disk": SendDisk(TARGET),
    "finish": Finish(spec_of("guest")),
    "discard": Discard("operation"),
    "live_migrate": LiveMigrate(TARGET),
    "abort_migration": AbortMigration(),
    "save": Save(),
    "inspect": Inspect(),
}
ABOUT_HOSTS = ("start", "nodes", "resources", "guests")


class BrokenDriver:
    """A driver with one method that raises while ``is_broken``."""

    def __init__(self, inner, method, error):
        self._inner, self._method, self._error, self.is_broken = inner, method, error, True

    def __getattr__(self, name):
        return self._fail if self.is_broken and name == self._method else getattr(self._inner, name)

    def _fail(self, *_arguments, **_more):
        raise self._error(f"{self._method} is broken")


@pytest.fixture(params=[RuntimeError, SystemExit, CancelledError, KeyboardInterrupt], ids=lambda kind: kind.__name__)
def error(request):
    return request.param


@pytest.mark.parametrize("method", ACTS)
def test_driver_error_in_an_act_aborts_its_order_only(method, error, capsys):
    driver = BrokenDriver(fake_driver(), method, error)
    server, other = MemoryServer(), resident("host-b")
    with run_agents(server, resident(driver=driver), other) as (agent_errors, _):
        if method != "spawn":
            driver.is_broken = False
            server.put(spawn(order_id=1))
            assert server.answer_to(1).outcome == "ok"
            driver.is_broken = True
        server.put(order(ACTS[method], 1, turn=2, order_id=2))
        answer = server.answer_to(2)
        assert (answer.outcome, answer.problem) == ("aborted", f"{error.__name__}: {method} is broken")
        server.put(spawn("other", "host-b", order_id=3))
        assert server.answer_to(3).outcome == "ok"
        driver.is_broken = False
        server.put(spawn("third", order_id=4))
        assert server.answer_to(4).outcome == "ok"
    assert agent_errors == []
    assert f"{method} is broken" in capsys.readouterr().err


@pytest.mark.parametrize("method", ABOUT_HOSTS)
def test_driver_error_about_its_host_is_logged_and_retried(method, error, capsys):
    driver = BrokenDriver(fake_driver(), method, error)
    server, other = MemoryServer(), resident("host-b")
    with run_agents(server, resident(driver=driver), other) as (agent_errors, _):
        server.put(spawn("here", order_id=1), spawn("other", "host-b", order_id=2))
        assert server.answer_to(2).outcome == "ok"
        assert "host-a" not in server.book.facts
        driver.is_broken = False
        assert server.answer_to(1).outcome == "ok"
    assert agent_errors == []
    assert f"{method} is broken" in capsys.readouterr().err


@pytest.mark.parametrize(
    "nodes",
    [None, "host-a", iter(["host-a"]), [1], [""], ["a/b"], ["host-a", "host-a"], ["a" * 256]],
    ids=["nothing", "text", "iterator", "number", "empty", "slash", "twice", "long"],
)
def test_invalid_node_list_of_a_driver_is_logged_and_retried(nodes, capsys):
    server, driver = MemoryServer(), BrokenDriver(fake_driver(), "nodes", RuntimeError)
    driver._fail = lambda: nodes
    with run_agents(server, resident(driver=driver)) as (agent_errors, _):
        server.put(spawn(order_id=1))
        wait_until(lambda: "nodes of the driver returned" in capsys.readouterr().err)
        assert server.book.runs == {}
        driver.is_broken = False
        assert server.answer_to(1).outcome == "ok"
    assert agent_errors == []


def test_report_about_another_guest_is_rejected(capsys):
    driver = BrokenDriver(fake_driver(), "inspect", RuntimeError)
    driver._fail = lambda _uuid: GuestReport(
        uuid=uuid_named("other"), node="host-a", operation="operation", state="running"
    )
    server = MemoryServer()
    with run_agents(server, resident(driver=driver)) as (agent_errors, _):
        server.put(spawn(order_id=1), order(Inspect(), 2, order_id=2))
        assert (server.answer_to(1).outcome, server.answer_to(1).found) == ("ok", None)
        assert (server.answer_to(2).outcome, "inspect of the driver returned guest" in server.answer_to(2).problem) == (
            "aborted",
            True,
        )
    assert agent_errors == []
    capsys.readouterr()
