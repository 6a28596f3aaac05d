"""Agents that die during a rebuild or a move on libvirt: the guest is the old one or the new one."""

from contextlib import suppress

import pytest

from roost.errors import BuildFailed
from tests.support.agents.libvirt_hosts import LibvirtRig
from tests.support.fleets.worlds import uuid_named

GUEST, NODE = uuid_named("guest"), "host-a"
# Libvirt calls during which the agent dies, and whether the call completes.
MOMENTS = [("undefineFlags", True), ("defineXML", False), ("defineXML", True), ("create", True), ("setMetadata", False)]


class Dead(BaseException):
    """The process of an agent ended."""


@pytest.fixture
def rig():
    """Return a host with a running guest."""
    rig = LibvirtRig()
    rig.driver().spawn(rig.spec(), "op-1")
    return rig


def files(rig):
    return sorted(path.name for path in (rig.folder / "state" / "hosts" / NODE / GUEST).iterdir())


def states(driver):
    return [(found.operation, found.state) for found in driver.guests()]


@pytest.mark.parametrize(("call", "is_done"), MOMENTS)
def test_rebuild_completes_after_the_agent_died_in_it(rig, call, is_done):
    dying = rig.dying(call, Dead(), is_done=is_done)
    with pytest.raises(Dead):
        dying.rebuild(rig.spec(), "op-2")
    restarted_driver = rig.restarted()
    assert states(restarted_driver) in ([("op-1", "stopped")], [("op-2", "running")])
    restarted_driver.rebuild(rig.spec(), "op-2")
    assert (states(restarted_driver), files(rig)) == ([("op-2", "running")], ["op-2.raw"])


def test_guest_of_an_abandoned_rebuild_starts_with_its_old_disk(rig):
    with pytest.raises(Dead):
        rig.dying("undefineFlags", Dead(), is_done=True).rebuild(rig.spec(), "op-2")
    restarted_driver = rig.restarted()
    restarted_driver.power(GUEST, is_on=True)
    assert (states(restarted_driver), files(rig)) == ([("op-1", "running")], ["op-1.raw"])


def test_failed_rebuild_leaves_no_new_disk(rig):
    failing = rig.failing("rebuild", "failed")
    with pytest.raises(BuildFailed):
        failing.rebuild(rig.spec(), "op-2")
    assert (states(failing), files(rig)) == ([("op-1", "running")], ["op-1.raw"])


def test_next_rebuild_removes_a_partial_disk(rig):
    partial = rig.folder / "state" / "hosts" / NODE / GUEST / "op-2.raw.1.new"
    partial.write_bytes(b"half")
    rig.driver().rebuild(rig.spec(), "op-2")
    assert files(rig) == ["op-2.raw"]


@pytest.mark.parametrize("dies_in", ["finish", "discard"])
@pytest.mark.parametrize(("call", "is_done"), [("undefineFlags", False), *MOMENTS])
def test_discard_reverts_a_same_host_move_in_which_the_agent_died(rig, dies_in, call, is_done):
    to = rig.driver().prepare(rig.spec(), "op-2")
    rig.driver().power(GUEST, is_on=False)
    rig.driver().send_disk(GUEST, to)
    if dies_in == "discard":
        rig.driver().finish(rig.spec(), "op-2")
    dying = rig.dying(call, Dead(), is_done=is_done)
    with suppress(Dead):  # Discard calls neither create nor setMetadata.
        dying.finish(rig.spec(), "op-2") if dies_in == "finish" else dying.discard(GUEST, "op-2")
    restarted_driver = rig.restarted()
    restarted_driver.discard(GUEST, "op-2")
    assert (states(restarted_driver), files(rig)) == ([("op-1", "stopped")], ["op-1.raw"])
