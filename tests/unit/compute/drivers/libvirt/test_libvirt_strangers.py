"""Foreign domains on the same libvirt: other hosts' guests, copies, and edited ones."""

import re

import pytest
from msgspec.structs import replace

from roost.errors import BuildFailed, DriverNotReady, Unavailable
from tests.support.agents.libvirt_hosts import LibvirtRig
from tests.support.fleets.worlds import uuid_named

GUEST, COPIES = uuid_named("guest"), [uuid_named(f"copy-{number}") for number in range(8)]


@pytest.fixture
def rig():
    """Return a host with a running guest."""
    rig = LibvirtRig()
    rig.driver().spawn(rig.spec(), "op-1")
    return rig


def states(driver):
    return {found.uuid: (found.operation, found.state) for found in driver.guests()}


def test_copy_of_a_guest_is_not_managed(rig):
    driver = rig.driver()
    for uuid in COPIES:  # Libvirt lists domains in any order.
        rig.edit(GUEST, f"<(name|uuid)>(roost-)?{GUEST}<", rf"<\1>{uuid}<", is_copy=True)
    assert states(driver) == {GUEST: ("op-1", "running")}
    assert driver.resources("host-a").vcpus_used == 1
    driver.destroy(GUEST, "op-2")
    assert len(rig.texts()) == len(COPIES)


def test_hosts_on_one_libvirt_ignore_each_others_guests(rig):
    other = rig.beside("host-b")
    assert (other.guests(), other.inspect(GUEST)) == ([], None)
    assert other.resources("host-b").vcpus_used == 0
    with pytest.raises(BuildFailed, match=f"domain roost-{GUEST} is not a guest of this agent"):
        other.spawn(rig.spec(host="host-b"), "op-2")
    other.discard(GUEST, "op-2")
    other.destroy(GUEST, "op-2")
    assert states(rig.driver()) == {GUEST: ("op-1", "running")}


def test_guest_without_its_mark_keeps_its_domain_and_disk(rig):
    rig.edit(GUEST, "<metadata.*</metadata>", "")
    driver = rig.driver()
    problem = f"domain roost-{GUEST} has the uuid of guest {GUEST}, and is not marked as a guest"
    with pytest.raises(Unavailable, match=problem):
        driver.destroy(GUEST, "op-2")
    with pytest.raises(BuildFailed, match=problem):
        driver.spawn(rig.spec(), "op-2")
    assert len([*rig.folder.rglob("op-1.raw")]) == len(rig.texts()) == 1


def test_malformed_mark_is_named_with_its_domain(rig):
    rig.edit(GUEST, "vcpus=.1.", "vcpus='many'")
    problem = f"the mark of domain roost-{GUEST} is malformed: .*'many'"
    with pytest.raises(DriverNotReady, match=problem):
        rig.driver().guests()
    with pytest.raises(Unavailable, match=problem):
        rig.driver().destroy(GUEST, "op-2")
    assert len(rig.texts()) == 1


@pytest.mark.parametrize("name", ["a\x01b", "a\rb", "\ufffe", "<&>"])
def test_domain_has_a_title_despite_characters_that_xml_cannot_hold(name):
    rig = LibvirtRig()
    rig.driver().spawn(replace(rig.spec(), name=name), "op-1")
    (text,) = rig.texts()
    assert re.search("<title>.+</title>", text)
