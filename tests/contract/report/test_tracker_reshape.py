"""Hosts that start with another layout: inventories move with all their allocations, or not at all."""

import msgspec
import pytest

from roost.compute.drivers.fake.script import FakeNode
from roost.compute.providers.provider_tree import ProviderTree
from roost.errors import InUse, ReshapeFailed, ReshapeNeeded
from roost.model.work.agent_terms import Capabilities, ReshapeTerms
from tests.support.agents.driver_doubles import spec_of
from tests.support.agents.trackers import HOST, ROOT, USED, Machine

MOVED_PARTS = {"gpus": "VGPU", "numa": "MEMORY_MB, SRIOV_NET_VF, VCPU", "renamed": "allocations"}


@pytest.fixture
def machine(world):
    """Return a host in layout flat, with two guests that hold all resource classes."""
    machine = Machine(world)
    machine.start("flat")
    machine.update()
    machine.populate("one", "two")
    world.network.asked.clear()
    return machine


def with_claims(used, count):
    """Return usages with more GiB of disk on the root."""
    return {**used, ROOT: {**used[ROOT], "DISK_GB": used[ROOT]["DISK_GB"] + count}}


@pytest.mark.shows("S108", "S109", "S110", "S111", "S119", "S139", "S141")
@pytest.mark.parametrize("layout", [*USED])
def test_live_allocations_move_and_the_next_start_changes_nothing(machine, world, layout):
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
def test_claims_during_a_reshape_are_included(machine, world, layout):
    machine.start(layout)
    machine.claim_before("POST", "/reshaper", times=3, DISK_GB=1)
    assert machine.update().is_reshaped
    assert machine.usages() == with_claims(USED[layout], 3)
    assert world.network.paths("POST").count("/reshaper") == 4
    assert world.pauses == [2.0, 4.0, 6.0]
    assert len(machine.children()) == len(USED[layout])


def test_claim_of_moving_resources_moves_with_them(machine):
    machine.start("gpus")
    machine.claim_before("POST", "/reshaper", VGPU=1)
    machine.update()
    used = machine.usages()
    assert sorted((used["gpu0"]["VGPU"], used["gpu1"]["VGPU"])) == [1, 2]


@pytest.mark.parametrize("layout", [*USED])
def test_start_that_loses_every_race_fails_and_changes_nothing(machine, world, layout):
    machine.terms = ReshapeTerms(reshape_tries=2, reshape_pause_s=0.5)
    world.provider("theirs", parent=HOST)  # It has no inventory, like the new providers of a failed reshape.
    machine.start(layout)
    machine.claim_before("POST", "/reshaper", times=2, DISK_GB=1)
    providers = [each["uuid"] for each in machine.records()]
    before = machine.usages()
    with pytest.raises(ReshapeFailed, match="each of 2 attempts met a concurrent change, the last time: the reshape"):
        machine.update()
    assert [each["uuid"] for each in machine.records()] == providers
    assert machine.usages() == with_claims(before, 2)
    assert world.pauses == [0.5]
    # A later start without concurrent claims succeeds.
    machine.start(layout)
    assert machine.update().is_reshaped


def test_new_providers_are_deleted_when_the_reshape_is_given_up(machine, world):
    machine.terms = ReshapeTerms(reshape_tries=1)
    machine.start("gpus")
    machine.claim_before("POST", "/reshaper", DISK_GB=1)
    world.network.lose("DELETE", "/resource_providers/", is_done=False, times=4)
    with pytest.raises(ReshapeFailed):
        machine.update()
    assert world.children(HOST) == [HOST]


def test_failed_cleanup_of_new_providers_is_reported(machine, world):
    machine.terms = ReshapeTerms(reshape_tries=1)
    machine.start("gpus")

    def interfere():
        world.hold("claimer", **{HOST: {"DISK_GB": 1}})
        world.network.lose("DELETE", "/resource_providers/", is_done=False, times=8)
        world.network.lose("GET", "in_tree=", is_done=False, times=8)

    world.network.first("POST", "/reshaper", interfere)
    with pytest.raises(ReshapeFailed, match="; new providers may remain, since the remote Placement cannot be used"):
        machine.update()
    assert len(world.children(HOST)) == 3


@pytest.mark.shows("S115", "S120")
@pytest.mark.parametrize("layout", ["gpus", "numa"])
def test_guest_that_does_not_use_its_allocations_fails_the_start(machine, world, layout, capfd):
    # The guest is respawned with less than its allocations.
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
def test_reshape_refused_by_placement_fails_and_changes_nothing(machine, world):
    machine.start("gpus")
    update = machine.driver.update_provider_tree

    def update_without_two(tree, node, allocations=None):
        update(tree, node, allocations)
        if allocations is not None:
            del allocations[world.u("two")]

    machine.driver.update_provider_tree = update_without_two
    before = machine.dump()
    with pytest.raises(ReshapeFailed, match="the reshape is refused: "):
        machine.update()
    assert machine.dump() == before


@pytest.mark.shows("S114", "S119", "S120", "S121")
def test_periodic_update_never_reshapes_and_fails_or_logs(machine, capfd):
    before = machine.dump()
    machine.start("gpus")
    with pytest.raises(ReshapeNeeded, match="VGPU"):
        machine.update(is_startup=False)
    machine.terms = ReshapeTerms(periodic_reshape="log")
    machine.start("gpus")
    assert machine.update(is_startup=False) is None
    assert "VGPU of node" in capfd.readouterr().err
    assert machine.dump() == before


def test_vanished_inventory_in_use_fails_the_start_and_is_logged_later(machine):
    machine.script = {"node": (FakeNode(vcpus=8, memory_mb=8192),)}
    machine.start()
    with pytest.raises(InUse):
        machine.update()
    machine.start()
    assert machine.update(is_startup=False) is None


def test_reshape_with_a_lost_reply_is_done_once(machine, world):
    machine.start("gpus")
    world.network.lose("POST", "/reshaper", is_done=True)
    assert machine.update().is_reshaped
    assert machine.usages() == USED["gpus"]


@pytest.mark.shows("S115")
@pytest.mark.parametrize("wants_allocations", [False, True])
def test_reshape_completed_in_the_last_try_is_not_a_failure(machine, world, wants_allocations):
    machine.terms = ReshapeTerms(reshape_tries=1)
    machine.start("gpus")
    if wants_allocations:
        machine.start("gpus", driver=AllocationDriver(machine.driver))
    machine.claim_before("PUT", "/traits", DISK_GB=1)
    assert machine.update(is_disabled=True) is None
    assert machine.usages() == with_claims(USED["gpus"], 1)
    assert not machine.update(is_disabled=True).is_reshaped
    assert "COMPUTE_STATUS_DISABLED" in world.of(HOST, "traits")


def test_lost_reply_in_the_last_try_is_not_a_failure(machine, world):
    machine.terms = ReshapeTerms(reshape_tries=1)
    machine.start("gpus")
    world.network.lose("POST", "/reshaper", is_done=True)
    assert machine.update() is None
    assert machine.usages() == USED["gpus"]
    assert not machine.update().is_reshaped


class AllocationDriver:
    """A driver that requests the allocations at each update."""

    def __init__(self, driver):
        self._driver, self.allocations = driver, []

    @property
    def capabilities(self):
        """Return capabilities that request allocations."""
        return Capabilities(traits=self._driver.capabilities.traits, wants_allocations=True)

    def update_provider_tree(self, tree: ProviderTree, node, allocations=None):
        """Record the allocations and update the tree."""
        self.allocations.append(allocations)
        self._driver.update_provider_tree(tree, node, allocations)

    def __getattr__(self, name):
        return getattr(self._driver, name)


@pytest.mark.parametrize("layout", [*USED])
def test_driver_that_wants_allocations_reshapes_only_at_the_start(machine, world, layout):
    machine.start(layout)
    machine.start(layout, driver=AllocationDriver(machine.driver))
    with pytest.raises(ReshapeNeeded, match=f"^{MOVED_PARTS[layout]} of node"):
        machine.update(is_startup=False)
    assert machine.update().is_reshaped
    assert machine.usages() == USED[layout]
    world.network.asked.clear()
    assert not machine.update(is_startup=False).is_reshaped
    assert machine.writes() == []
    assert len(machine.driver.allocations[-1]) == 2
