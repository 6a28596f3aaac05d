"""Rebuilds of guests that their host has lost, and orders about guests that cannot be read."""

import pytest

from roost.compute.agent.tasks import Undo, Work
from roost.compute.drivers.fake.script import Fault, Script
from roost.errors import BuildAborted
from roost.model.work.orders import Destroy, Rebuild, Spawn
from tests.support.agents.driver_doubles import fake_driver
from tests.support.agents.order_execution import CARD, GUEST, Host
from tests.support.agents.scripted_agents import HOST, order, spec


def test_rebuild_of_a_lost_guest_builds_it_again():
    host = Host()
    host.do(Spawn(spec(**CARD)))
    host.driver.destroy(GUEST, "by hand")
    answer = host.do(Rebuild(spec(**CARD)), turn=2)
    assert (answer.outcome, answer.found.state, answer.found.operation) == (
        "ok",
        "running",
        order(Destroy(), turn=2).operation,
    )
    assert host.free == 1


def test_repeated_rebuild_of_a_lost_guest_keeps_it():
    host, rebuild = Host(), order(Rebuild(spec(**CARD)), turn=2)
    host.executor.carry_out(Work(rebuild))
    disk = host.driver.console(GUEST)
    assert host.executor.carry_out(Work(rebuild, is_resumed=True)).outcome == "ok"
    host.executor.carry_out(Undo(rebuild))
    assert (host.driver.console(GUEST), host.free) == (disk, 1)


@pytest.mark.parametrize(("kind", "outcome"), [("failed", "failed"), ("crash", "aborted")])
def test_failed_rebuild_of_a_lost_guest_leaves_and_claims_nothing(kind, outcome, capsys):
    host = Host(fake_driver(Script(fault=(Fault(action="spawn", kind=kind, times=1),)), HOST))
    assert host.do(Rebuild(spec(**CARD))).outcome == outcome
    assert (host.driver.guests(), host.free, host.journal.holdings(GUEST)) == ([], 2, [])
    assert host.do(Rebuild(spec(**CARD)), turn=2).outcome == "ok"
    capsys.readouterr()


def test_unreadable_guest_of_a_build_before_restart_keeps_its_claim(monkeypatch):
    host = Host()
    build = order(Spawn(spec(**CARD)))
    host.executor.carry_out(Work(build))
    held = host.free

    def fail(_uuid):
        raise BuildAborted("no connection")

    monkeypatch.setattr(host.driver, "inspect", fail)
    assert host.executor.carry_out(Work(build, is_resumed=True)).outcome == "aborted"
    assert host.free == held
    monkeypatch.undo()
    host.executor.carry_out(Undo(build))
    assert host.free == held + 1
