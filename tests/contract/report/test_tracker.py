"""The resource tracker of an agent: what it writes to Placement, and what it reports about its node."""

import msgspec
import pytest

from roost.compute.drivers.fake.script import FakeNode, Fault, Script
from roost.compute.inventory.host_use import Size
from roost.compute.inventory.provider_config import ProviderConfig
from roost.compute.inventory.stale_allocations import Standing
from roost.errors import BadSettings, DriverNotReady
from roost.model.host import PciPool
from roost.model.provider import Inventory
from roost.model.work.agent_terms import HostTerms
from roost.model.work.guest_use import GuestAmounts, GuestNeeds, GuestUse
from tests.support.agents.driver_doubles import fake_driver, spec_of
from tests.support.agents.trackers import HELD, HOST, Machine


@pytest.fixture
def machine(world):
    """Return a host whose agent has not started."""
    return Machine(world)


@pytest.mark.shows("S132", "S139")
def test_first_start_writes_inventory_and_traits_and_the_next_writes_nothing(machine, world, capfd):
    machine.start()
    found = machine.update()
    assert (found.node, found.uuid, found.is_reshaped) == (machine.host, world.u(HOST), False)
    assert world.totals(HOST) == {
        "VCPU": 8,
        "MEMORY_MB": 8192,
        "DISK_GB": 500,
        "VGPU": 4,
        "SRIOV_NET_VF": 2,
        "CUSTOM_FPGA": 4,
    }
    ratios = {name: each["allocation_ratio"] for name, each in world.of(HOST, "inventories").items()}
    assert (ratios["VCPU"], ratios["MEMORY_MB"]) == (4.0, 1.0)
    traits = world.of(HOST, "traits")
    assert {"COMPUTE_NODE", "OWNER_NOVA", "COMPUTE_IMAGE_TYPE_QCOW2"} <= set(traits)
    assert "COMPUTE_STATUS_DISABLED" not in traits
    machine.check_settled()
    log = capfd.readouterr().err
    assert log.count('"event":"node_resources"') == 3  # Once per agent run.
    assert '"vcpus":8,"vcpus_used":0,"memory_mb":8192' in log


def record_consumers(machine):
    """Record the consumers whose allocations the driver gets at each update; None: it gets no allocations."""
    found, update = [], machine.driver.update_provider_tree

    def recorder(tree, node, allocations=None):
        found.append(None if allocations is None else {*allocations})
        update(tree, node, allocations)

    machine.driver.update_provider_tree = recorder
    return found


@pytest.mark.shows("S134")
def test_driver_gets_allocations_only_when_a_reshape_is_needed(machine, world):
    machine.instances = KnownInstances({})
    machine.start()
    machine.update()
    machine.populate("one")
    machine.start()
    found = record_consumers(machine)
    world.network.asked.clear()
    machine.update()
    machine.update(is_startup=False)
    assert found == [None, None]
    # The consumers of each provider are read, to release allocations of deleted instances.
    held_of = f"/resource_providers/{world.u(HOST)}/allocations"
    assert [path for path in world.network.paths("GET") if "allocations" in path] == [held_of] * 2
    machine.start("gpus")
    found = record_consumers(machine)
    machine.update()
    assert found == [None, {world.u("one")}]


@pytest.mark.shows("S134")
def test_allocations_are_not_read_when_instances_are_unknown(machine, world):
    machine.start()
    machine.update()
    machine.populate("one")
    world.network.asked.clear()
    machine.start()
    machine.update()
    assert [path for path in world.network.paths("GET") if "allocations" in path] == []


def test_host_changes_are_written_and_foreign_traits_stay(machine, world):
    machine.start()
    machine.update()
    world.ask("PUT", "/traits/CUSTOM_SITE")
    world.put(HOST, "traits", [*world.of(HOST, "traits"), "CUSTOM_SITE", "COMPUTE_TRUSTED_CERTS"])
    machine.host_terms = HostTerms(cpu_allocation_ratio=2.0, reserved_host_cpus=1)
    machine.start()
    machine.update(is_startup=False, is_disabled=True)
    traits = set(world.of(HOST, "traits"))
    assert {"CUSTOM_SITE", "COMPUTE_STATUS_DISABLED"} <= traits
    # Traits for driver capabilities belong to the driver.
    assert "COMPUTE_TRUSTED_CERTS" not in traits
    vcpu = world.of(HOST, "inventories")["VCPU"]
    assert (vcpu["allocation_ratio"], vcpu["reserved"]) == (2.0, 1)
    machine.update(is_startup=False)
    assert "COMPUTE_STATUS_DISABLED" in world.of(HOST, "traits")
    machine.update(is_startup=False, is_disabled=False)
    assert set(world.of(HOST, "traits")) == traits - {"COMPUTE_STATUS_DISABLED"}


def test_operator_inventory_and_traits_are_added(machine, world):
    machine.configs = [
        ProviderConfig(
            provider="$COMPUTE_NODE",
            inventories={"CUSTOM_LICENCE": Inventory(total=3)},
            traits=frozenset({"CUSTOM_RACKED"}),
            path="site.yaml",
        )
    ]
    machine.start()
    assert machine.update() is not None
    assert world.totals(HOST)["CUSTOM_LICENCE"] == 3
    assert "CUSTOM_RACKED" in world.of(HOST, "traits")
    world.network.asked.clear()
    machine.update(is_startup=False)
    assert machine.writes() == []


def test_invalid_operator_inventory_is_logged_and_nothing_is_written(machine, world, capfd):
    machine.configs = [ProviderConfig(provider="$COMPUTE_NODE", traits=frozenset({"CUSTOM_A"}), path="a.yaml")]
    machine.configs += [ProviderConfig(provider=machine.host, inventories={"VCPU": Inventory(total=3)}, path="b.yaml")]
    machine.start()
    assert machine.update() is None
    assert "has inventory of VCPU already" in capfd.readouterr().err
    assert world.totals(HOST) == {}


def test_facts_combine_driver_data_with_guest_devices(machine):
    devices = (PciPool(vendor_id="8086", product_id="1", dev_type="type-VF", numa_node=1, address="1", count=1),)
    machine.book.of_instances = {"a": GuestUse(devices=devices)}
    machine.start(monitors=["cpu.virt_driver"])
    facts = machine.update().facts
    assert (facts.vcpus_total, facts.memory_mb, facts.local_gb, facts.host_ip) == (8, 8192, 500, "10.0.0.1")
    assert [cell.id for cell in facts.numa.cells] == [0, 1]
    assert [(pool.numa_node, pool.count) for pool in facts.pci_pools] == [(0, 1), (1, 0)]
    machine.tracker.use(machine.host).release("a")
    assert [pool.count for pool in machine.update(is_startup=False).facts.pci_pools] == [1, 1]


def test_changed_driver_facts_appear_in_the_next_report(machine):
    machine.start()
    resources = machine.driver.resources
    before = machine.update().facts
    machine.driver.resources = lambda node: msgspec.structs.replace(resources(node), pci_devices=(), vcpus=9)
    after = machine.update(is_startup=False).facts
    assert (len(before.pci_pools), before.vcpus_total, after.pci_pools, after.vcpus_total) == (2, 8, (), 9)


def test_missing_driver_resource_of_a_guest_fails_only_the_start(machine):
    machine.script = {"node": (FakeNode(pieces={"CUSTOM_PMEM": ("ns0", "ns1")}),)}
    machine.book.of_instances = {"a": GuestUse(pieces=("ns1", "ns9"))}
    machine.start()
    with pytest.raises(BadSettings, match="host: a has ns9, which is missing now"):
        machine.update()
    assert machine.update(is_startup=False) is not None
    machine.book.of_instances = {"a": GuestUse(pieces=("ns1",))}
    machine.start()
    assert machine.update() is not None


def test_guest_use_counts_allocations_on_all_providers_of_the_host(machine, world):
    machine.start("numa")
    tree = machine.report.get_provider_tree_and_ensure_root(machine.update().uuid)
    cell = tree.data(f"{machine.host}_numa1").uuid
    held = {cell: {"MEMORY_MB": 3000, "VCPU": 1}, world.u("shared"): {"DISK_GB": 9}}
    use = machine.tracker.use(machine.host).claim("a", GuestNeeds(), size=Size(allocations=held)).use
    assert use.amounts == GuestAmounts(vcpu=1, memory_mb=3000)


class KnownInstances:
    """The instances that the server knows."""

    def __init__(self, standings):
        self.standings_of, self.queries = standings, []

    def standings(self, uuids):
        """Return the standings of the known instances."""
        self.queries.append(list(uuids))
        return {uuid: each for uuid, each in self.standings_of.items() if uuid in uuids}


def test_only_allocations_of_deleted_instances_are_released(machine, world, capfd):
    machine.start()
    machine.update()
    names = ["gone", "here", "building", "untracked", "busy", "elsewhere", "foreign", "migration"]
    for name in names:
        world.hold(name, **{HOST: {"VCPU": 1}})
    standings = {
        "gone": Standing(is_deleted=True, host=machine.host),
        "here": Standing(is_deleted=True),
        "building": Standing(),
        "untracked": Standing(host=machine.host),
        "busy": Standing(host=machine.host, is_busy=True),
        "elsewhere": Standing(host="another"),
        "migration": Standing(is_deleted=True),
    }
    machine.instances = KnownInstances({world.u(name): each for name, each in standings.items()})
    machine.book.of_instances = {world.u("here"): GuestUse()}
    machine.book.of_migrations = {world.u("migration"): GuestUse()}
    machine.start()
    found = machine.update(is_startup=False)
    assert found.released == (world.u("gone"),)
    assert [name for name in names if not world.held(name)] == ["gone"]
    assert machine.instances.queries == [
        sorted(world.u(name) for name in names if name not in {"here", "migration"}),
        [world.u("elsewhere")],
    ]
    log = capfd.readouterr().err
    assert log.count("allocation_doubtful") == 2
    assert log.count('"event":"allocation_released"') == 1
    assert world.u("elsewhere") in log
    assert world.u("untracked") in log
    assert machine.update(is_startup=False).released == ()
    assert "allocation_doubtful" not in capfd.readouterr().err


def test_instance_that_moved_away_releases_only_this_host(machine, world):
    machine.start()
    machine.update()
    world.provider("other", VCPU=8)
    for name in ("moved", "moving", "guest"):
        world.hold(name, **{HOST: {"VCPU": 1}, "other": {"VCPU": 2}})
    machine.instances = KnownInstances(
        {
            world.u("moved"): Standing(host="other"),
            world.u("moving"): Standing(host="other", is_busy=True),
            world.u("guest"): Standing(host="other"),
        }
    )
    machine.start()
    spec = spec_of("guest", machine.host)
    machine.driver.spawn(msgspec.structs.replace(spec, uuid=world.u("guest")), "operation")
    assert machine.update(is_startup=False).released == (world.u("moved"),)
    assert world.held("moved") == world.amounts(other={"VCPU": 2})
    both = world.amounts(**{HOST: {"VCPU": 1}, "other": {"VCPU": 2}})
    assert (world.held("moving"), world.held("guest")) == (both, both)


def test_instance_changed_during_the_cleanup_keeps_its_allocations(machine, world, capfd):
    machine.start()
    machine.update()
    world.provider("other", VCPU=8)
    world.hold("moved", **{HOST: {"VCPU": 1}, "other": {"VCPU": 2}})
    machine.instances = KnownInstances({world.u("moved"): Standing(host="other")})
    machine.start()
    back = {HOST: {"VCPU": 3}, "other": {"VCPU": 2}}
    world.network.first("PUT", "/allocations/", lambda: world.hold("moved", 1, **back))
    assert machine.update(is_startup=False).released == ()
    assert world.held("moved") == world.amounts(**back)
    assert '"event":"allocation_kept"' in capfd.readouterr().err


def test_cleanup_is_skipped_when_the_driver_cannot_list_guests(machine, world, capfd):
    machine.start()
    machine.update()
    world.hold("gone", **{HOST: {"VCPU": 1}})
    machine.instances = KnownInstances({world.u("gone"): Standing(is_deleted=True)})
    machine.start()
    machine.driver.guests = lambda: [None]
    assert machine.update(is_startup=False).released == ()
    assert "TypeError: guests of the driver returned list, not a list of GuestReport" in capfd.readouterr().err
    assert world.held("gone")


def test_allocation_changed_during_release_is_released_by_the_next_update(machine, world):
    machine.start()
    machine.update()
    world.hold("gone", **{HOST: {"VCPU": 1}})
    machine.instances = KnownInstances({world.u("gone"): Standing(is_deleted=True)})
    machine.start()
    world.network.first("PUT", "/allocations/", lambda: world.hold("gone", 1, **{HOST: {"VCPU": 2}}))
    assert machine.update(is_startup=False).released == ()
    assert world.held("gone") == world.amounts(**{HOST: {"VCPU": 2}})
    assert machine.update(is_startup=False).released == (world.u("gone"),)


def test_update_that_loses_four_races_is_done_by_the_next_one(machine, world, capfd):
    machine.start()
    machine.update()
    machine.host_terms = HostTerms(reserved_host_cpus=2)
    machine.start()
    machine.claim_before("PUT", "/inventories", times=4, VCPU=1)
    assert machine.update(is_startup=False) is None
    assert '"event":"node_not_updated"' in capfd.readouterr().err
    assert world.pauses == [2.0, 4.0, 6.0]
    assert machine.update(is_startup=False) is not None
    assert world.of(HOST, "inventories")["VCPU"]["reserved"] == 2


def test_gone_nodes_are_deleted_once_nothing_is_allocated_there(machine, world, capfd):
    machine.start()
    machine.update()
    world.hold("one", **{HOST: HELD})
    assert machine.tracker.drop_gone_nodes() == []
    machine.start(driver=fake_driver(Script(), "another"))
    assert [machine.tracker.drop_gone_nodes() for _ in range(2)] == [[], []]
    assert (HOST in world.children(HOST), capfd.readouterr().err.count('"event":"node_left"')) == (True, 1)
    world.hold("one", 1)
    assert machine.tracker.drop_gone_nodes() == [machine.host]
    assert (world.children(HOST), machine.book.nodes) == ([], {})
    assert capfd.readouterr().err.count('"event":"node_dropped"') == 1
    assert machine.tracker.drop_gone_nodes() == []


def test_missing_nodes_that_may_return_are_not_deleted(machine, world):
    machine.start()
    machine.update()
    machine.driver.nodes, machine.driver.is_node_gone = list, lambda _: False
    assert machine.tracker.drop_gone_nodes() == []
    assert (world.children(HOST), machine.book.nodes) == ([HOST], {machine.host: world.u(HOST)})


@pytest.mark.parametrize("error", [DriverNotReady("away"), RuntimeError("broken")])
def test_no_node_is_deleted_when_the_driver_cannot_tell_which_are_gone(machine, world, monkeypatch, error, capfd):
    machine.start()
    machine.update()
    another = fake_driver(Script(), "another")

    def fail():
        raise error

    monkeypatch.setattr(another, "nodes", fail)
    machine.start(driver=another)
    assert machine.tracker.drop_gone_nodes() == []
    assert "nodes_not_dropped" in capfd.readouterr().err
    assert world.children(HOST) == [HOST]


@pytest.mark.parametrize("kind", ["unready", "crash", "failed"])
def test_driver_failure_skips_one_update(machine, kind, capfd):
    script = Script(**machine.script, fault=(Fault(action="update_provider_tree", kind=kind, times=1),))
    machine.start(driver=fake_driver(script, machine.host))
    assert machine.update() is None
    assert "was made to fail" in capfd.readouterr().err
    assert machine.update() is not None
