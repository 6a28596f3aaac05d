"""Hosts that start with another layout: what is there moves with all that is held of it, or nothing does."""

import msgspec
import pytest

from roost.compute.drivers.fake.script import FakeNode
from roost.compute.providers.provider_tree import ProviderTree
from roost.errors import InUse, ReshapeFailed, ReshapeNeeded
from roost.model.work.agent_terms import Capabilities, ReshapeTerms
from tests.support.agents.driver_doubles import spec_of
from tests.support.agents.trackers import HOST, ROOT, USED, Machine

MOVED = {"gpus": "VGPU", "numa": "MEMORY_MB, SRIOV_NET_VF, VCPU", "renamed": "allocations"}


@pytest.fixture
def machine(world):
    """Give a host in layout flat, with two guests that hold something of everything."""
    machine = Machine(world)
    machine.start("flat")
    machine.update()
    machine.populate("one", "two")
    world.network.asked.clear()
    return machine


def with_claims(used, count):
    """Give usages with so many GiB of disk more."""
    return {**used, ROOT: {**used[ROOT], "DISK_GB": used[ROOT]["DISK_GB"] + count}}


@pytest.mark.shows("S108", "S109", "S110", "S111", "S119", "S139", "S141")
@pytest.mark.parametrize("layout", [*USED])
def test_what_live_guests_hold_moves_and_the_third_start_finds_nothing(machine, world, layout):
    machine.start(layout)
    assert machine.update().is_reshaped
    assert machine.usages() == USED[layout]
    assert world.network.paths("POST").count("/reshaper") == 1
    after = machine.dump()
    world.network.asked.clear()
    machine.start(layout)
    assert not machine.update().is_reshaped
    assert machine.writes() == []
    assert machine.dump() == after


@pytest.mark.shows("S109", "S110", "S111", "S126")
@pytest.mark.parametrize("layout", [*USED])
def test_claims_that_come_between_are_taken_along(machine, world, layout):
    machine.start(layout)
    machine.claim_before("POST", "/reshaper", times=3, DISK_GB=1)
    assert machine.update().is_reshaped
    assert machine.usages() == with_claims(USED[layout], 3)
    assert world.network.paths("POST").count("/reshaper") == 4
    assert world.pauses == [2.0, 4.0, 6.0]
    assert len(machine.children()) == len(USED[layout])


def test_a_claim_of_what_moves_moves_with_it(machine):
    machine.start("gpus")
    machine.claim_before("POST", "/reshaper", VGPU=1)
    machine.update()
    used = machine.usages()
    assert sorted((used["gpu0"]["VGPU"], used["gpu1"]["VGPU"])) == [1, 2]


@pytest.mark.parametrize("layout", [*USED])
def test_a_start_that_others_always_come_before_gives_up_and_leaves_everything_as_it_was(machine, world, layout):
    machine.terms = ReshapeTerms(reshape_tries=2, reshape_pause_s=0.5)
    world.provider("theirs", parent=HOST)  # It offers nothing, as those that are made in vain.
    machine.start(layout)
    machine.claim_before("POST", "/reshaper", times=2, DISK_GB=1)
    providers = [each["uuid"] for each in machine.records()]
    before = machine.usages()
    with pytest.raises(ReshapeFailed, match="others came before each of 2 tries, the last time so: the reshape is ref"):
        machine.update()
    assert [each["uuid"] for each in machine.records()] == providers
    assert machine.usages() == with_claims(before, 2)
    assert world.pauses == [0.5]
    # Whoever starts again when it is quiet has it done.
    machine.start(layout)
    assert machine.update().is_reshaped


def test_new_providers_that_could_not_be_deleted_at_once_are_when_it_is_given_up(machine, world):
    machine.terms = ReshapeTerms(reshape_tries=1)
    machine.start("gpus")
    machine.claim_before("POST", "/reshaper", DISK_GB=1)
    world.network.lose("DELETE", "/resource_providers/", is_done=False, times=4)
    with pytest.raises(ReshapeFailed):
        machine.update()
    assert world.children(HOST) == [HOST]


def test_where_it_cannot_be_seen_whether_new_providers_are_left_that_is_told(machine, world):
    machine.terms = ReshapeTerms(reshape_tries=1)
    machine.start("gpus")

    def meddle():
        world.hold("claimer", **{HOST: {"DISK_GB": 1}})
        world.network.lose("DELETE", "/resource_providers/", is_done=False, times=8)
        world.network.lose("GET", "in_tree=", is_done=False, times=8)

    world.network.first("POST", "/reshaper", meddle)
    with pytest.raises(ReshapeFailed, match="; new providers may be left, since the remote Placement cannot be used"):
        machine.update()
    assert len(world.children(HOST)) == 3


@pytest.mark.shows("S115", "S120")
@pytest.mark.parametrize("layout", ["gpus", "numa"])
def test_a_guest_that_does_not_use_what_it_holds_ends_the_agent_and_leaves_placement_as_it_was(
    machine, world, layout, capfd
):
    # It was built anew with less than it holds.
    less = msgspec.structs.replace(spec_of("one", machine.host), uuid=world.u("one"))
    machine.driver.spawn(less, "another operation")
    before = machine.dump()
    world.network.asked.clear()
    machine.start(layout)
    with pytest.raises(ReshapeFailed, match=f"{world.u('one')} holds 1 "):
        machine.update()
    assert machine.writes() == []
    assert machine.dump() == before
    assert '"event":"agent_ends"' in capfd.readouterr().err


@pytest.mark.shows("S127")
def test_a_reshape_that_placement_refuses_ends_the_agent_and_leaves_placement_as_it_was(machine, world):
    machine.start("gpus")
    held = machine.driver.update_provider_tree

    def forgetful(tree, node, allocations=None):
        held(tree, node, allocations)
        if allocations is not None:
            del allocations[world.u("two")]

    machine.driver.update_provider_tree = forgetful
    before = machine.dump()
    with pytest.raises(ReshapeFailed, match="the reshape is refused: "):
        machine.update()
    assert machine.dump() == before


@pytest.mark.shows("S114", "S119", "S120", "S121")
def test_an_agent_that_runs_never_reshapes_and_ends_unless_it_is_told_to_log(machine, capfd):
    before = machine.dump()
    machine.start("gpus")
    with pytest.raises(ReshapeNeeded, match="VGPU"):
        machine.update(is_startup=False)
    machine.terms = ReshapeTerms(periodic_reshape="log")
    machine.start("gpus")
    assert machine.update(is_startup=False) is None
    assert "VGPU of node" in capfd.readouterr().err
    assert machine.dump() == before


def test_an_inventory_that_is_held_and_vanishes_stops_the_start_and_is_logged_later(machine):
    machine.script = {"node": (FakeNode(vcpus=8, memory_mb=8192),)}
    machine.start()
    with pytest.raises(InUse):
        machine.update()
    machine.start()
    assert machine.update(is_startup=False) is None


def test_a_reshape_whose_answer_is_lost_is_done_once(machine, world):
    machine.start("gpus")
    world.network.lose("POST", "/reshaper", is_done=True)
    assert machine.update().is_reshaped
    assert machine.usages() == USED["gpus"]


@pytest.mark.shows("S115")
@pytest.mark.parametrize("is_told", [False, True])
def test_a_reshape_that_was_carried_out_in_the_last_try_has_not_failed(machine, world, is_told):
    machine.terms = ReshapeTerms(reshape_tries=1)
    machine.start("gpus")
    if is_told:
        machine.start("gpus", driver=Told(machine.driver))
    machine.claim_before("PUT", "/traits", DISK_GB=1)
    assert machine.update(is_disabled=True) is None
    assert machine.usages() == with_claims(USED["gpus"], 1)
    assert not machine.update(is_disabled=True).is_reshaped
    assert "COMPUTE_STATUS_DISABLED" in world.of(HOST, "traits")


def test_a_reshape_whose_answer_is_lost_in_the_last_try_has_not_failed(machine, world):
    machine.terms = ReshapeTerms(reshape_tries=1)
    machine.start("gpus")
    world.network.lose("POST", "/reshaper", is_done=True)
    assert machine.update() is None
    assert machine.usages() == USED["gpus"]
    assert not machine.update().is_reshaped


class Told:
    """A driver that wants to know each time what is held."""

    def __init__(self, driver):
        self._driver, self.told = driver, []

    @property
    def capabilities(self):
        """Say so."""
        return Capabilities(traits=self._driver.capabilities.traits, wants_allocations=True)

    def update_provider_tree(self, tree: ProviderTree, node, allocations=None):
        """Note what is held."""
        self.told.append(allocations)
        self._driver.update_provider_tree(tree, node, allocations)

    def __getattr__(self, name):
        return getattr(self._driver, name)


@pytest.mark.parametrize("layout", [*USED])
def test_a_driver_that_always_wants_to_know_what_is_held_reshapes_at_the_start_only(machine, world, layout):
    machine.start(layout)
    machine.start(layout, driver=Told(machine.driver))
    with pytest.raises(ReshapeNeeded, match=f"^{MOVED[layout]} of node"):
        machine.update(is_startup=False)
    assert machine.update().is_reshaped
    assert machine.usages() == USED[layout]
    world.network.asked.clear()
    assert not machine.update(is_startup=False).is_reshaped
    assert machine.writes() == []
    assert len(machine.driver.told[-1]) == 2
