"""Trees and allocations reshaped by a driver are valid for one request to the Placement API."""

import pytest

import roost
from roost.compute.drivers.fake.guests import MemoryShelf
from roost.compute.drivers.fake.script import FakeNode, Gpu, Script
from roost.compute.providers.provider_tree import ProviderTree
from roost.errors import ReshapeFailed, ReshapeNeeded
from roost.model.devices.numa import NumaCell
from roost.model.provider import Inventory
from roost.model.work.agent_terms import PciDevice
from tests.support.agents.driver_doubles import fake_driver, spec_of
from tests.support.fleets.worlds import uuid_named

NODE = "host-a"
ROOT = uuid_named(NODE)
VERSION = "1.30"
SCRIPT = {
    "renames": {"CUSTOM_FPGA": "FPGA"},
    "node": (
        FakeNode(
            inventories={"CUSTOM_FPGA": Inventory(total=4)},
            cell=(
                NumaCell(id=0, memory_mb=4096, cpus=(0, 1, 2, 3)),
                NumaCell(id=1, memory_mb=4096, cpus=(4, 5, 6, 7)),
            ),
            gpu=(Gpu(name="gpu0", vgpus=2), Gpu(name="gpu1", vgpus=2)),
            pci=tuple(
                PciDevice(address=str(cell), vendor_id="8086", product_id="1", dev_type="type-VF", numa_node=cell)
                for cell in (0, 1)
            ),
        ),
    ),
}
GUESTS = {
    f"guest{number}": {"VCPU": 1, "MEMORY_MB": 1024, "DISK_GB": 1, "VGPU": 1, "SRIOV_NET_VF": 1, "CUSTOM_FPGA": 1}
    for number in (0, 1)
}


class Placement:
    """A client of the Placement API with the requests of an agent."""

    def __init__(self, client):
        self.client = client

    def request(self, method, path, body=None, *, status=(200, 201, 204)):
        """Send a request; return the body of the response."""
        more = {} if body is None else {"json": body}
        answer = getattr(self.client, method)(path, microversion=VERSION, headers={"x-roles": "admin,service"}, **more)
        assert answer.status_code in status, answer.text
        return answer.json() if answer.content else None

    def tree(self):
        """Return the tree of the host."""
        tree = ProviderTree()
        tree.populate_from_iterable(self.request("get", f"/resource_providers?in_tree={ROOT}")["resource_providers"])
        for uuid in tree.get_provider_uuids():
            body = self.request("get", f"/resource_providers/{uuid}/inventories")
            tree.update_inventory(uuid, body["inventories"], body["resource_provider_generation"])
        return tree

    def allocations(self, tree):
        """Return all allocations in a tree."""
        consumers = {
            each
            for uuid in tree.get_provider_uuids()
            for each in self.request("get", f"/resource_providers/{uuid}/allocations")["allocations"]
        }
        return {each: self.request("get", f"/allocations/{each}") for each in sorted(consumers)}

    def create(self, tree):
        """Create the providers that are new in a tree."""
        known = {each["uuid"] for each in self.request("get", "/resource_providers")["resource_providers"]}
        for uuid in tree.get_provider_uuids():
            data = tree.data(uuid)
            if uuid not in known:
                body = {"name": data.name, "uuid": uuid, "parent_provider_uuid": data.parent_uuid}
                created = self.request("post", "/resource_providers", body)
                tree.update_inventory(uuid, data.inventory, created["generation"])

    def reshape(self, tree, allocations):
        """Send a tree and its allocations as one reshape."""
        self.create(tree)
        found = [tree.data(uuid) for uuid in tree.get_provider_uuids()]
        inventories = {
            each.uuid: {"resource_provider_generation": each.generation, "inventories": each.inventory}
            for each in found
        }
        self.request("post", "/reshaper", {"inventories": inventories, "allocations": allocations})

    def usages(self, tree):
        """Return the usages by provider name."""
        bodies = {uuid: self.request("get", f"/resource_providers/{uuid}/usages") for uuid in tree.get_provider_uuids()}
        return {
            tree.data(uuid).name: {name: used for name, used in each["usages"].items() if used}
            for uuid, each in bodies.items()
        }


@pytest.fixture
def placement():
    """Yield a Placement client with the root provider of the host."""
    with roost.PlacementDirect("sqlite://") as client:
        api = Placement(client)
        api.request("put", "/resource_classes/CUSTOM_FPGA")
        api.request("post", "/resource_providers", {"name": NODE, "uuid": ROOT})
        yield api


def start_driver(layout, shelf):
    """Return the driver of the host for a layout."""
    return fake_driver(Script(layout=layout, **SCRIPT), NODE, shelf=shelf)


def populate(api, shelf):
    """Write the inventory of layout flat, and spawn guests with allocations."""
    driver, tree = start_driver("flat", shelf), api.tree()
    driver.update_provider_tree(tree, NODE)
    api.reshape(tree, {})
    for name, held in GUESTS.items():
        driver.spawn(spec_of(name, NODE, held=held), "op-1")
        body = {
            "allocations": {ROOT: {"resources": held}},
            "project_id": "p",
            "user_id": "u",
            "consumer_generation": None,
        }
        api.request("put", f"/allocations/{uuid_named(name)}", body)


REST = {"DISK_GB": 2, "CUSTOM_FPGA": 2}
CELL = {"VCPU": 1, "MEMORY_MB": 1024, "SRIOV_NET_VF": 1}
SUMS = {"VCPU": 2, "MEMORY_MB": 2048, "SRIOV_NET_VF": 2}
USED = {
    "gpus": {NODE: REST | SUMS, "host-a_gpu0": {"VGPU": 1}, "host-a_gpu1": {"VGPU": 1}},
    "numa": {NODE: REST | {"VGPU": 2}, "host-a_numa0": CELL, "host-a_numa1": CELL},
    "renamed": {NODE: SUMS | {"DISK_GB": 2, "FPGA": 2, "VGPU": 2}},
}


@pytest.mark.parametrize("layout", [*USED])
def test_reshape_with_live_guests_succeeds_and_the_next_start_changes_nothing(placement, layout):
    shelf = MemoryShelf()
    populate(placement, shelf)
    tree = placement.tree()
    driver = start_driver(layout, shelf)
    with pytest.raises(ReshapeNeeded):
        driver.update_provider_tree(tree, NODE)
    allocations = placement.allocations(tree)
    assert len(allocations) == 2
    driver.update_provider_tree(tree, NODE, allocations)
    placement.reshape(tree, allocations)
    tree = placement.tree()
    assert placement.usages(tree) == USED[layout]
    again = placement.tree()
    start_driver(layout, shelf).update_provider_tree(again, NODE)
    assert [again.data(uuid) for uuid in again.get_provider_uuids()] == [
        tree.data(uuid) for uuid in tree.get_provider_uuids()
    ]


@pytest.mark.parametrize("layout", [*USED])
def test_reshape_back_to_flat_restores_the_usages(placement, layout):
    shelf = MemoryShelf()
    populate(placement, shelf)
    before = placement.usages(placement.tree())[NODE]
    for each in (layout, "flat"):
        tree = placement.tree()
        allocations = placement.allocations(tree)
        start_driver(each, shelf).update_provider_tree(tree, NODE, allocations)
        placement.reshape(tree, allocations)
    assert placement.usages(placement.tree())[NODE] == before


def test_concurrent_claim_refuses_a_reshape_and_moves_in_the_next_one(placement):
    shelf = MemoryShelf()
    populate(placement, shelf)
    tree = placement.tree()
    driver, allocations = start_driver("gpus", shelf), placement.allocations(tree)
    driver.update_provider_tree(tree, NODE, allocations)
    body = {
        "allocations": {ROOT: {"resources": {"VGPU": 1}}},
        "project_id": "p",
        "user_id": "u",
        "consumer_generation": None,
    }
    placement.request("put", f"/allocations/{uuid_named('late')}", body)
    with pytest.raises(AssertionError, match="concurrent_update"):
        placement.reshape(tree, allocations)
    tree = placement.tree()
    allocations = placement.allocations(tree)
    driver.update_provider_tree(tree, NODE, allocations)
    placement.reshape(tree, allocations)
    used = placement.usages(tree)
    assert sorted(used[name]["VGPU"] for name in ("host-a_gpu0", "host-a_gpu1")) == [1, 2]


def test_guest_that_does_not_use_its_allocations_stops_the_reshape(placement):
    shelf = MemoryShelf()
    populate(placement, shelf)
    start_driver("flat", shelf).spawn(spec_of("guest0", NODE), "op-2")
    tree = placement.tree()
    with pytest.raises(ReshapeFailed, match=uuid_named("guest0")):
        start_driver("gpus", shelf).update_provider_tree(tree, NODE, placement.allocations(tree))
