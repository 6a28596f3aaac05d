"""What an agent's tracker brings to any kind of Placement, and what it tells of its node."""

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
from tests.support.agents.driver_doubles import fake, spec_of
from tests.support.agents.trackers import HELD, HOST, Machine


@pytest.fixture
def machine(world):
    """Give a host whose agent has not started yet."""
    return Machine(world)


@pytest.mark.shows("S132", "S139")
def test_the_first_start_brings_inventory_and_traits_and_the_next_one_writes_nothing(machine, world, capfd):
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
    said = capfd.readouterr().err
    assert said.count('"event":"node_resources"') == 3  # Once in each life.
    assert '"vcpus":8,"vcpus_used":0,"memory_mb":8192' in said


def told(machine):
    """Let the driver note the consumers whose allocations it is told of; None: it is told of none."""
    found, update = [], machine.driver.update_provider_tree

    def noting(tree, node, allocations=None):
        found.append(None if allocations is None else {*allocations})
        update(tree, node, allocations)

    machine.driver.update_provider_tree = noting
    return found


@pytest.mark.shows("S134")
def test_what_is_held_is_told_to_a_driver_only_where_something_must_move(machine, world):
    machine.instances = Known({})
    machine.start()
    machine.update()
    machine.populate("one")
    machine.start()
    found = told(machine)
    world.network.asked.clear()
    machine.update()
    machine.update(is_startup=False)
    assert found == [None, None]
    # Who holds something of each provider is looked at, to give back what deleted instances hold.
    held_of = f"/resource_providers/{world.u(HOST)}/allocations"
    assert [path for path in world.network.paths("GET") if "allocations" in path] == [held_of] * 2
    machine.start("gpus")
    found = told(machine)
    machine.update()
    assert found == [None, {world.u("one")}]


@pytest.mark.shows("S134")
def test_nothing_of_what_is_held_is_read_where_nobody_knows_of_instances(machine, world):
    machine.start()
    machine.update()
    machine.populate("one")
    world.network.asked.clear()
    machine.start()
    machine.update()
    assert [path for path in world.network.paths("GET") if "allocations" in path] == []


def test_what_changes_on_the_host_arrives_and_traits_of_others_stay(machine, world):
    machine.start()
    machine.update()
    world.ask("PUT", "/traits/CUSTOM_SITE")
    world.put(HOST, "traits", [*world.of(HOST, "traits"), "CUSTOM_SITE", "COMPUTE_TRUSTED_CERTS"])
    machine.host_terms = HostTerms(cpu_allocation_ratio=2.0, reserved_host_cpus=1)
    machine.start()
    machine.update(is_startup=False, is_disabled=True)
    traits = set(world.of(HOST, "traits"))
    assert {"CUSTOM_SITE", "COMPUTE_STATUS_DISABLED"} <= traits
    # What says what drivers can is the driver's to say.
    assert "COMPUTE_TRUSTED_CERTS" not in traits
    vcpu = world.of(HOST, "inventories")["VCPU"]
    assert (vcpu["allocation_ratio"], vcpu["reserved"]) == (2.0, 1)
    machine.update(is_startup=False)
    assert "COMPUTE_STATUS_DISABLED" in world.of(HOST, "traits")
    machine.update(is_startup=False, is_disabled=False)
    assert set(world.of(HOST, "traits")) == traits - {"COMPUTE_STATUS_DISABLED"}


def test_what_operators_add_is_there_too(machine, world):
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


def test_what_operators_add_in_vain_is_told_and_nothing_is_written(machine, world, capfd):
    machine.configs = [ProviderConfig(provider="$COMPUTE_NODE", traits=frozenset({"CUSTOM_A"}), path="a.yaml")]
    machine.configs += [ProviderConfig(provider=machine.host, inventories={"VCPU": Inventory(total=3)}, path="b.yaml")]
    machine.start()
    assert machine.update() is None
    assert "has inventory of VCPU already" in capfd.readouterr().err
    assert world.totals(HOST) == {}


def test_the_facts_are_those_of_the_driver_with_what_guests_have(machine):
    devices = (PciPool(vendor_id="8086", product_id="1", dev_type="type-VF", numa_node=1, address="1", count=1),)
    machine.book.of_instances = {"a": GuestUse(devices=devices)}
    machine.start(monitors=["cpu.virt_driver"])
    facts = machine.update().facts
    assert (facts.vcpus_total, facts.memory_mb, facts.local_gb, facts.host_ip) == (8, 8192, 500, "10.0.0.1")
    assert [cell.id for cell in facts.numa.cells] == [0, 1]
    assert [(pool.numa_node, pool.count) for pool in facts.pci_pools] == [(0, 1), (1, 0)]
    machine.tracker.use(machine.host).give_back("a")
    assert [pool.count for pool in machine.update(is_startup=False).facts.pci_pools] == [1, 1]


def test_facts_that_the_driver_tells_anew_are_those_of_the_next_report(machine):
    machine.start()
    resources = machine.driver.resources
    before = machine.update().facts
    machine.driver.resources = lambda node: msgspec.structs.replace(resources(node), pci_devices=(), vcpus=9)
    after = machine.update(is_startup=False).facts
    assert (len(before.pci_pools), before.vcpus_total, after.pci_pools, after.vcpus_total) == (2, 8, (), 9)


def test_a_node_that_lacks_a_piece_of_a_guest_is_refused_at_the_start_alone(machine):
    machine.script = {"node": (FakeNode(pieces={"CUSTOM_PMEM": ("ns0", "ns1")}),)}
    machine.book.of_instances = {"a": GuestUse(pieces=("ns1", "ns9"))}
    machine.start()
    with pytest.raises(BadSettings, match="host: a has ns9, which is not there any more"):
        machine.update()
    assert machine.update(is_startup=False) is not None
    machine.book.of_instances = {"a": GuestUse(pieces=("ns1",))}
    machine.start()
    assert machine.update() is not None


def test_what_guests_hold_of_all_providers_of_the_host_counts_within_limits(machine, world):
    machine.start("numa")
    tree = machine.report.get_provider_tree_and_ensure_root(machine.update().uuid)
    cell = tree.data(f"{machine.host}_numa1").uuid
    held = {cell: {"MEMORY_MB": 3000, "VCPU": 1}, world.u("shared"): {"DISK_GB": 9}}
    use = machine.tracker.use(machine.host).claim("a", GuestNeeds(), size=Size(allocations=held)).use
    assert use.amounts == GuestAmounts(vcpu=1, memory_mb=3000)


class Known:
    """What is known of instances."""

    def __init__(self, standings):
        self.standings_of, self.asked = standings, []

    def standings(self, uuids):
        """Give those known."""
        self.asked.append(list(uuids))
        return {uuid: each for uuid, each in self.standings_of.items() if uuid in uuids}


def test_what_deleted_instances_hold_is_given_back_and_nothing_else(machine, world, capfd):
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
    machine.instances = Known({world.u(name): each for name, each in standings.items()})
    machine.book.of_instances = {world.u("here"): GuestUse()}
    machine.book.of_migrations = {world.u("migration"): GuestUse()}
    machine.start()
    found = machine.update(is_startup=False)
    assert found.released == (world.u("gone"),)
    assert [name for name in names if not world.held(name)] == ["gone"]
    assert machine.instances.asked == [
        sorted(world.u(name) for name in names if name not in {"here", "migration"}),
        [world.u("elsewhere")],
    ]
    said = capfd.readouterr().err
    assert said.count("allocation_doubtful") == 2
    assert said.count('"event":"allocation_released"') == 1
    assert world.u("elsewhere") in said
    assert world.u("untracked") in said
    assert machine.update(is_startup=False).released == ()
    assert "allocation_doubtful" not in capfd.readouterr().err


def test_an_instance_that_is_elsewhere_gives_back_what_it_holds_here_and_keeps_the_rest(machine, world):
    machine.start()
    machine.update()
    world.provider("other", VCPU=8)
    for name in ("moved", "moving", "guest"):
        world.hold(name, **{HOST: {"VCPU": 1}, "other": {"VCPU": 2}})
    machine.instances = Known(
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


def test_an_instance_that_comes_back_while_it_is_looked_at_keeps_what_it_holds(machine, world, capfd):
    machine.start()
    machine.update()
    world.provider("other", VCPU=8)
    world.hold("moved", **{HOST: {"VCPU": 1}, "other": {"VCPU": 2}})
    machine.instances = Known({world.u("moved"): Standing(host="other")})
    machine.start()
    back = {HOST: {"VCPU": 3}, "other": {"VCPU": 2}}
    world.network.first("PUT", "/allocations/", lambda: world.hold("moved", 1, **back))
    assert machine.update(is_startup=False).released == ()
    assert world.held("moved") == world.amounts(**back)
    assert '"event":"allocation_kept"' in capfd.readouterr().err


def test_guests_that_the_driver_cannot_tell_leave_all_as_it_is_and_the_node_is_reported(machine, world, capfd):
    machine.start()
    machine.update()
    world.hold("gone", **{HOST: {"VCPU": 1}})
    machine.instances = Known({world.u("gone"): Standing(is_deleted=True)})
    machine.start()
    machine.driver.guests = lambda: [None]
    assert machine.update(is_startup=False).released == ()
    assert "TypeError: guests of the driver returned no list of GuestReport" in capfd.readouterr().err
    assert world.held("gone")


def test_what_changes_while_it_is_given_back_is_kept_until_the_next_update(machine, world):
    machine.start()
    machine.update()
    world.hold("gone", **{HOST: {"VCPU": 1}})
    machine.instances = Known({world.u("gone"): Standing(is_deleted=True)})
    machine.start()
    world.network.first("PUT", "/allocations/", lambda: world.hold("gone", 1, **{HOST: {"VCPU": 2}}))
    assert machine.update(is_startup=False).released == ()
    assert world.held("gone") == world.amounts(**{HOST: {"VCPU": 2}})
    assert machine.update(is_startup=False).released == (world.u("gone"),)


def test_a_host_that_changes_all_the_time_is_tried_four_times_and_the_next_update_does_it(machine, world, capfd):
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


def test_nodes_that_will_not_come_back_are_deleted_when_nothing_is_held_there_any_more(machine, world, capfd):
    machine.start()
    machine.update()
    world.hold("one", **{HOST: HELD})
    assert machine.tracker.drop_gone_nodes() == []
    machine.start(driver=fake(Script(), "another"))
    assert [machine.tracker.drop_gone_nodes() for _ in range(2)] == [[], []]
    assert (HOST in world.children(HOST), capfd.readouterr().err.count('"event":"node_left"')) == (True, 1)
    world.hold("one", 1)
    assert machine.tracker.drop_gone_nodes() == [machine.host]
    assert (world.children(HOST), machine.book.nodes) == ([], {})
    assert capfd.readouterr().err.count('"event":"node_dropped"') == 1
    assert machine.tracker.drop_gone_nodes() == []


def test_nodes_that_are_not_told_now_and_may_come_back_stay(machine, world):
    machine.start()
    machine.update()
    machine.driver.nodes, machine.driver.is_node_gone = list, lambda _: False
    assert machine.tracker.drop_gone_nodes() == []
    assert (world.children(HOST), machine.book.nodes) == ([HOST], {machine.host: world.u(HOST)})


@pytest.mark.parametrize("error", [DriverNotReady("away"), RuntimeError("broken")])
def test_where_the_driver_cannot_tell_which_nodes_are_gone_all_stay(machine, world, monkeypatch, error, capfd):
    machine.start()
    machine.update()
    another = fake(Script(), "another")

    def fails():
        raise error

    monkeypatch.setattr(another, "nodes", fails)
    machine.start(driver=another)
    assert machine.tracker.drop_gone_nodes() == []
    assert "nodes_not_dropped" in capfd.readouterr().err
    assert world.children(HOST) == [HOST]


@pytest.mark.parametrize("kind", ["unready", "crash", "failed"])
def test_a_driver_that_fails_is_contained(machine, kind, capfd):
    script = Script(**machine.script, fault=(Fault(action="update_provider_tree", kind=kind, times=1),))
    machine.start(driver=fake(script, machine.host))
    assert machine.update() is None
    assert "was to go wrong" in capfd.readouterr().err
    assert machine.update() is not None
