"""Agents of hosts with libvirt that die in the midst of a rebuild or a move: a guest is the old one or the new one."""

from contextlib import suppress

import pytest

from roost.errors import BuildFailed
from tests.support.agents.libvirt_hosts import LibvirtRig
from tests.support.fleets.worlds import uuid_named

GUEST, NODE = uuid_named("guest"), "host-a"
# What the driver asks libvirt for and may not live to see the end of; it is done, or not.
MOMENTS = [("undefineFlags", True), ("defineXML", False), ("defineXML", True), ("create", True), ("setMetadata", False)]


class Dead(BaseException):
    """The process of an agent ended."""


@pytest.fixture
def rig():
    """Give a host with a guest that runs."""
    rig = LibvirtRig()
    rig.driver().spawn(rig.spec(), "op-1")
    return rig


def files(rig):
    return sorted(path.name for path in (rig.folder / "state" / "hosts" / NODE / GUEST).iterdir())


def states(driver):
    return [(found.operation, found.state) for found in driver.guests()]


@pytest.mark.parametrize(("call", "is_done"), MOMENTS)
def test_an_agent_that_dies_in_a_rebuild_finds_the_guest_again(rig, call, is_done):
    dying = rig.dying(call, Dead(), is_done=is_done)
    with pytest.raises(Dead):
        dying.rebuild(rig.spec(), "op-2")
    again = rig.restarted()
    assert states(again) in ([("op-1", "stopped")], [("op-2", "running")])
    again.rebuild(rig.spec(), "op-2")
    assert (states(again), files(rig)) == ([("op-2", "running")], ["op-2.raw"])


def test_a_rebuild_that_broke_off_and_is_not_wanted_any_more_leaves_the_guest_as_it_was(rig):
    with pytest.raises(Dead):
        rig.dying("undefineFlags", Dead(), is_done=True).rebuild(rig.spec(), "op-2")
    again = rig.restarted()
    again.power(GUEST, is_on=True)
    assert (states(again), files(rig)) == ([("op-1", "running")], ["op-1.raw"])


def test_a_rebuild_that_fails_leaves_no_disk(rig):
    failing = rig.failing("rebuild", "failed")
    with pytest.raises(BuildFailed):
        failing.rebuild(rig.spec(), "op-2")
    assert (states(failing), files(rig)) == ([("op-1", "running")], ["op-1.raw"])


def test_what_an_agent_began_of_a_disk_before_it_died_goes_with_the_next_try(rig):
    begun = rig.folder / "state" / "hosts" / NODE / GUEST / "op-2.raw.1.new"
    begun.write_bytes(b"half")
    rig.driver().rebuild(rig.spec(), "op-2")
    assert files(rig) == ["op-2.raw"]


@pytest.mark.parametrize("dies_in", ["finish", "discard"])
@pytest.mark.parametrize(("call", "is_done"), [("undefineFlags", False), *MOMENTS])
def test_an_agent_that_dies_in_a_move_to_its_own_host_undoes_it_whole(rig, dies_in, call, is_done):
    to = rig.driver().prepare(rig.spec(), "op-2")
    rig.driver().power(GUEST, is_on=False)
    rig.driver().send_disk(GUEST, to)
    if dies_in == "discard":
        rig.driver().finish(rig.spec(), "op-2")
    dying = rig.dying(call, Dead(), is_done=is_done)
    with suppress(Dead):  # Nothing is started or marked where a move is undone.
        dying.finish(rig.spec(), "op-2") if dies_in == "finish" else dying.discard(GUEST, "op-2")
    again = rig.restarted()
    again.discard(GUEST, "op-2")
    assert (states(again), files(rig)) == ([("op-1", "stopped")], ["op-1.raw"])
