import copy
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from roost.compute.drivers.fake.guests import MemoryShelf
from roost.compute.drivers.fake.script import Child, FakeNode, Gpu, Script
from roost.errors import ReshapeFailed, ReshapeNeeded
from roost.model.devices.numa import NumaCell
from roost.model.devices.topology import InstanceCell, Pins, PlacedCell
from roost.model.provider import Inventory
from roost.model.work.agent_terms import HostTerms, PciDevice
from tests.support.agents.driver_doubles import fake_driver, spec_of, tree_of
from tests.support.fleets.worlds import uuid_named

NODE = "host-a"
ROOT = uuid_named(NODE)
GPU0, GPU1 = f"{NODE}_gpu0", f"{NODE}_gpu1"
CELL0, CELL1 = f"{NODE}_numa0", f"{NODE}_numa1"
FULL = FakeNode(
    local_gb=100,
    traits=("HW_CPU_X86_AVX2",),
    inventories={"CUSTOM_FPGA": Inventory(total=6, max_unit=2)},
    cell=(
        NumaCell(id=0, memory_mb=4096, cpus=(0, 1, 2, 3), pcpus=(4, 5)),
        NumaCell(id=1, memory_mb=2048, cpus=(6, 7, 8, 9), pcpus=(10, 11)),
    ),
    gpu=(Gpu(name="gpu0", vgpus=2, traits=("CUSTOM_A",)), Gpu(name="gpu1", vgpus=2)),
    pci=tuple(
        PciDevice(
            address=f"0000:0{cell}:00.{number}", vendor_id="8086", product_id="1", dev_type="type-VF", numa_node=cell
        )
        for cell in (0, 1)
        for number in range(4)
    ),
)
SCRIPT = Script(node=(FULL,), renames={"CUSTOM_FPGA": "FPGA"})
LAYOUTS = ("flat", "gpus", "numa", "renamed", "shared")


class Host:
    """A host whose agent starts with different layouts, and its state in Placement."""

    def __init__(self, *, terms=None, **more):
        self.shelf, self.tree, self.held = MemoryShelf(), tree_of(NODE), {}
        self.terms = terms or HostTerms(reserved_host_memory_mb=0)
        self.script = replace(SCRIPT, **more)
        self.start("flat")

    def start(self, layout):
        """Start the agent, reshape if needed, and return whether it did."""
        self.driver = fake_driver(replace(self.script, layout=layout), NODE, shelf=self.shelf, terms=self.terms)
        try:
            self.driver.update_provider_tree(self.tree, NODE)
        except ReshapeNeeded:
            self.driver.update_provider_tree(self.tree, NODE, self.held)
            return True
        return False

    def claim(self, name, **held):
        """Add an allocation of a consumer on the root."""
        self.held[uuid_named(name)] = {
            "allocations": {ROOT: {"resources": held}},
            "project_id": "p",
            "user_id": "u",
            "consumer_generation": 1,
        }

    def spawn(self, name, **held):
        """Build a guest with an allocation on the root."""
        self.claim(name, **held)
        self.driver.spawn(spec_of(name, NODE, held=held), f"build {name}")

    def holdings(self, name):
        """Return the allocation of a consumer, by provider name."""
        held = self.held[uuid_named(name)]["allocations"]
        return {self.tree.data(uuid).name: record["resources"] for uuid, record in held.items()}

    def totals(self):
        """Return the inventory totals, by provider name."""
        providers = [self.tree.data(uuid) for uuid in self.tree.get_provider_uuids()]
        return {each.name: {name: record["total"] for name, record in each.inventory.items()} for each in providers}

    def everything(self):
        """Return the full state of Placement."""
        return [self.tree.data(uuid) for uuid in self.tree.get_provider_uuids()], copy.deepcopy(self.held)


FLAT = {
    "VCPU": 8,
    "MEMORY_MB": 6144,
    "DISK_GB": 100,
    "PCPU": 4,
    "SRIOV_NET_VF": 8,
    "VGPU": 4,
    "CUSTOM_FPGA": 6,
}
SHAPES = {
    "flat": {NODE: FLAT},
    "gpus": {
        NODE: {name: total for name, total in FLAT.items() if name != "VGPU"},
        GPU0: {"VGPU": 2},
        GPU1: {"VGPU": 2},
    },
    "numa": {
        NODE: {"DISK_GB": 100, "VGPU": 4, "CUSTOM_FPGA": 6},
        CELL0: {"VCPU": 4, "PCPU": 2, "MEMORY_MB": 4096, "SRIOV_NET_VF": 4},
        CELL1: {"VCPU": 4, "PCPU": 2, "MEMORY_MB": 2048, "SRIOV_NET_VF": 4},
    },
    "renamed": {NODE: {"FPGA" if name == "CUSTOM_FPGA" else name: total for name, total in FLAT.items()}},
    "shared": {NODE: {name: total for name, total in FLAT.items() if name != "PCPU"} | {"VCPU": 12}},
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_new_host_has_the_inventories_of_its_layout(layout):
    driver, tree = fake_driver(replace(SCRIPT, layout=layout), NODE), tree_of(NODE)
    driver.update_provider_tree(tree, NODE)
    providers = [tree.data(uuid) for uuid in tree.get_provider_uuids()]
    assert {
        each.name: {name: record["total"] for name, record in each.inventory.items()} for each in providers
    } == SHAPES[layout]
    assert tree.has_traits(NODE, ["HW_CPU_X86_AVX2"])


@pytest.mark.shows("S109", "S114", "S116", "S137")
def test_vgpus_move_from_the_root_to_the_gpus_in_use():
    host = Host()
    for number in range(3):
        host.spawn(f"guest{number}", VCPU=1, VGPU=1)
    host.spawn("plain", VCPU=1)
    before = host.everything()
    with pytest.raises(ReshapeNeeded, match=r"^VGPU of node host-a must move"):
        fake_driver(replace(SCRIPT, layout="gpus"), NODE, shelf=host.shelf).update_provider_tree(host.tree, NODE)
    assert host.everything() == before
    assert host.start("gpus")
    # Each guest uses the GPU with the most free VGPU.
    assert [host.holdings(f"guest{number}") for number in range(3)] == [
        {NODE: {"VCPU": 1}, gpu: {"VGPU": 1}} for gpu in (GPU0, GPU1, GPU0)
    ]
    assert host.holdings("plain") == {NODE: {"VCPU": 1}}
    assert host.totals() == SHAPES["gpus"]
    record = host.tree.data(GPU0).inventory["VGPU"]
    assert record == {
        "total": 2,
        "reserved": 0,
        "min_unit": 1,
        "max_unit": 2,
        "step_size": 1,
        "allocation_ratio": 1.0,
    }
    assert (host.tree.has_traits(GPU0, ["CUSTOM_A"]), host.tree.has_traits(GPU1, ["CUSTOM_A"])) == (True, False)
    before = host.everything()
    assert not host.start("gpus")
    host.driver.update_provider_tree(host.tree, NODE, host.held)
    assert host.everything() == before


@pytest.mark.shows("S110", "S137")
def test_numa_resources_move_to_the_cells_in_use():
    host = Host()
    host.spawn("big", VCPU=2, MEMORY_MB=3000, SRIOV_NET_VF=1, DISK_GB=5)
    host.spawn("small", VCPU=2, MEMORY_MB=1500, PCPU=1)
    host.spawn("wide", VCPU=1, SRIOV_NET_VF=5)
    assert host.start("numa")
    assert host.holdings("big") == {NODE: {"DISK_GB": 5}, CELL0: {"VCPU": 2, "MEMORY_MB": 3000, "SRIOV_NET_VF": 1}}
    assert host.holdings("small") == {CELL1: {"VCPU": 2, "MEMORY_MB": 1500, "PCPU": 1}}
    wide = host.holdings("wide")
    assert {part: each["SRIOV_NET_VF"] for part, each in wide.items()} == {CELL0: 3, CELL1: 2}
    assert sum(each.get("VCPU", 0) for each in wide.values()) == 1
    assert host.totals() == SHAPES["numa"]
    assert not host.start("numa")


@pytest.mark.shows("S111", "S137")
def test_a_custom_class_becomes_a_standard_one_on_its_provider():
    host = Host()
    host.spawn("guest", VCPU=1, CUSTOM_FPGA=2)
    assert host.start("renamed")
    assert host.holdings("guest") == {NODE: {"VCPU": 1, "FPGA": 2}}
    assert host.totals() == SHAPES["renamed"]
    assert host.tree.data(NODE).inventory["FPGA"]["max_unit"] == 2
    assert not host.start("renamed")


def pinned_cells(count, *, emulator=()):
    """Return placed cells: dedicated CPUs on the second cell, for a guest and its emulator."""
    cell = InstanceCell(id=0, pcpus=frozenset(range(count)), memory_mb=64, policy="dedicated")
    return (PlacedCell(cell=cell, host_cell=1, pins=Pins(reserved=emulator)),)


def host_with_shared_cpus():
    """Return a host whose guests hold dedicated CPUs as VCPU, in the layout without PCPU."""
    host = Host()
    host.start("shared")
    held = {"VCPU": 2, "MEMORY_MB": 64}
    for name, cells in (("pinned", pinned_cells(2)), ("plain", ()), ("beside", pinned_cells(1, emulator=(11,)))):
        host.claim(name, **held)
        host.driver.spawn(spec_of(name, NODE, held=held, cells=cells), f"build {name}")
    return host


@pytest.mark.shows("S137")
def test_dedicated_cpus_become_pcpu_when_the_host_offers_it():
    host = host_with_shared_cpus()
    host.claim("ordered", VCPU=2)
    before = host.everything()
    with pytest.raises(ReshapeNeeded, match=r"^VCPU of node host-a must move"):
        fake_driver(SCRIPT, NODE, shelf=host.shelf).update_provider_tree(host.tree, NODE)
    assert host.everything() == before
    assert host.start("flat")
    assert [host.holdings(name) for name in ("pinned", "plain", "beside", "ordered")] == [
        {NODE: {"PCPU": 2, "MEMORY_MB": 64}},
        {NODE: {"VCPU": 2, "MEMORY_MB": 64}},
        {NODE: {"PCPU": 2, "MEMORY_MB": 64}},
        {NODE: {"VCPU": 2}},
    ]
    assert host.totals() == SHAPES["flat"]
    assert not host.start("flat")
    assert host.start("shared")
    assert host.holdings("pinned") == {NODE: {"VCPU": 2, "MEMORY_MB": 64}}


def test_dedicated_cpus_become_pcpu_of_numa_cells_in_one_reshape():
    host = host_with_shared_cpus()
    assert host.start("numa")
    assert host.holdings("pinned") == {CELL1: {"PCPU": 2, "MEMORY_MB": 64}}
    assert host.holdings("plain") == {CELL0: {"VCPU": 2, "MEMORY_MB": 64}}
    assert host.totals() == SHAPES["numa"]
    assert not host.start("numa")


def test_migration_consumer_takes_the_cpus_of_the_departing_guest():
    host = host_with_shared_cpus()
    host.held[uuid_named("migration")] = host.held.pop(uuid_named("pinned"))
    assert host.start("flat")
    assert host.holdings("migration") == {NODE: {"PCPU": 2, "MEMORY_MB": 64}}


def test_guest_using_more_dedicated_cpus_than_held_holds_them_all(capfd):
    host = host_with_shared_cpus()
    host.claim("pinned", VCPU=1)
    assert host.start("flat")
    assert host.holdings("pinned") == {NODE: {"PCPU": 2}}
    assert "uses_differ" in capfd.readouterr().err


def test_host_without_pinned_guests_needs_no_pcpu_reshape():
    host = Host()
    host.start("shared")
    host.spawn("plain", VCPU=2)
    assert not host.start("flat")
    assert host.totals() == SHAPES["flat"]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_pieces_are_named_resources_of_the_root_in_every_layout(layout):
    host = Host(node=(replace(FULL, pieces={"CUSTOM_PMEM": ("ns0", "ns1"), "CUSTOM_NONE": ()}),))
    host.start(layout)
    assert host.tree.data(NODE).inventory["CUSTOM_PMEM"]["total"] == 2
    assert "CUSTOM_NONE" not in host.tree.data(NODE).inventory
    assert host.tree.data(NODE).resources["CUSTOM_PMEM"] == {"ns0", "ns1"}


def test_foreign_child_providers_are_left_alone():
    host = Host()
    host.start("gpus")
    host.tree.new_child(f"{NODE}_deep", GPU0, uuid_named("deep"))
    assert not host.start("gpus")
    assert host.totals() == {**SHAPES["gpus"], f"{NODE}_deep": {}}


def test_guest_console_lists_its_pieces():
    host = Host()
    host.driver.spawn(spec_of("guest", NODE, pieces=("ns0", "ns1")), "op-1")
    assert host.driver.console(uuid_named("guest")).splitlines()[-1] == "built on host-a with ns0, ns1"


def test_memory_encryption_contexts_come_from_the_script():
    host = Host(node=(replace(FULL, inventories={"MEM_ENCRYPTION_CONTEXT": Inventory(total=15, max_unit=1)}),))
    assert host.tree.data(NODE).inventory["MEM_ENCRYPTION_CONTEXT"]["total"] == 15


def test_guest_built_on_gpu_providers_uses_them():
    host = Host()
    host.start("gpus")
    spec = spec_of("guest", NODE, allocations={host.tree.data(GPU1).uuid: {"VGPU": 1}})
    host.driver.spawn(spec, "op-1")
    host.held[spec.uuid] = {"allocations": {host.tree.data(GPU1).uuid: {"resources": {"VGPU": 1}}}}
    assert host.start("flat")
    assert host.holdings("guest") == {NODE: {"VGPU": 1}}
    assert host.start("gpus")
    assert host.holdings("guest") == {GPU1: {"VGPU": 1}}


def test_allocation_ratio_set_in_placement_moves_to_the_cells():
    host = Host()
    inventory = host.tree.data(NODE).inventory
    inventory["VCPU"]["allocation_ratio"] = 2.5
    host.tree.update_inventory(NODE, inventory)
    host.start("numa")
    assert [host.tree.data(name).inventory["VCPU"]["allocation_ratio"] for name in (CELL0, CELL1)] == [2.5, 2.5]
    assert host.tree.data(CELL0).inventory["PCPU"]["allocation_ratio"] == 1.0


def test_host_reserve_is_taken_from_the_first_cells():
    host = Host(terms=HostTerms(reserved_host_memory_mb=5000, reserved_host_cpus=1))
    assert host.tree.data(NODE).inventory["MEMORY_MB"]["reserved"] == 5000
    host.start("numa")
    assert [host.tree.data(name).inventory["MEMORY_MB"]["reserved"] for name in (CELL0, CELL1)] == [4096, 904]
    assert [host.tree.data(name).inventory["VCPU"]["reserved"] for name in (CELL0, CELL1)] == [1, 0]


def test_consumer_without_a_guest_gets_free_vgpus_that_its_guest_uses():
    host = Host()
    host.spawn("guest", VGPU=2)  # all of gpu0
    host.claim("ordered", VGPU=1)
    assert host.start("gpus")
    assert (host.holdings("guest"), host.holdings("ordered")) == ({GPU0: {"VGPU": 2}}, {GPU1: {"VGPU": 1}})
    # Its order predates the reshape, and still names the root.
    host.driver.spawn(spec_of("ordered", NODE, held={"VGPU": 1}), "op-1")
    assert host.start("flat")
    assert host.start("gpus")
    assert host.holdings("ordered") == {GPU1: {"VGPU": 1}}


def test_vgpus_of_an_unbuilt_guest_are_not_given_to_others():
    host = Host()
    host.claim("ordered", VGPU=2)
    host.start("gpus")
    assert host.holdings("ordered") == {GPU0: {"VGPU": 2}}
    host.driver.spawn(spec_of("other", NODE, held={"VGPU": 2}), "op-1")
    host.claim("other")
    host.held[uuid_named("other")]["allocations"] = {host.tree.data(GPU1).uuid: {"resources": {"VGPU": 2}}}
    assert host.start("flat")
    assert host.start("gpus")
    assert (host.holdings("ordered"), host.holdings("other")) == ({GPU0: {"VGPU": 2}}, {GPU1: {"VGPU": 2}})


def test_vgpus_of_a_guest_destroyed_before_its_build_are_free_again():
    host = Host()
    host.claim("ordered", VGPU=2)
    host.start("gpus")
    host.driver.destroy(uuid_named("ordered"), "gone")
    del host.held[uuid_named("ordered")]
    host.start("flat")
    host.spawn("first", VGPU=1)
    host.spawn("second", VGPU=2)
    assert host.start("gpus")
    assert [host.holdings(name) for name in ("first", "second")] == [{GPU0: {"VGPU": 1}}, {GPU1: {"VGPU": 2}}]


def test_migration_consumer_takes_the_vgpus_of_the_departing_guest():
    host = Host()
    host.spawn("first", VGPU=2)
    host.spawn("leaving", VGPU=1)
    host.spawn("third", VGPU=1)
    del host.held[uuid_named("leaving")]
    host.claim("migration", VGPU=1)
    assert host.start("gpus")
    assert [host.holdings(name) for name in ("first", "migration", "third")] == [
        {GPU0: {"VGPU": 2}},
        {GPU1: {"VGPU": 1}},
        {GPU1: {"VGPU": 1}},
    ]


def test_allocations_on_other_hosts_are_unchanged():
    host = Host()
    host.spawn("guest", VGPU=1)
    elsewhere = uuid_named("host-b")
    host.held[uuid_named("guest")]["allocations"][elsewhere] = {"resources": {"VGPU": 1}}
    assert host.start("gpus")
    held = host.held[uuid_named("guest")]["allocations"]
    assert held == {elsewhere: {"resources": {"VGPU": 1}}, host.tree.data(GPU0).uuid: {"resources": {"VGPU": 1}}}


def unused_holding(host):
    host.driver.spawn(spec_of("guest", NODE), "op-1")
    host.claim("guest", VGPU=1)
    return "holds 1 VGPU and uses none on the new providers"


def holding_on_a_child(host):
    host.start("gpus")
    child = host.tree.data(GPU0).uuid
    inventory = host.tree.data(NODE).inventory | {"VGPU": {"total": 4}}
    host.tree.update_inventory(NODE, inventory)
    host.claim("guest")
    host.held[uuid_named("guest")]["allocations"] = {child: {"resources": {"VGPU": 1}}}
    return f"holds VGPU of {GPU0}, not of the root"


def holding_without_room(host):
    host.spawn("guest", VGPU=2)
    host.spawn("other", VGPU=2)
    host.claim("ordered", VGPU=1)
    return "holds 1 VGPU and has no guest, and too few are free"


@pytest.mark.shows("S115")
@pytest.mark.parametrize("scenario", [unused_holding, holding_on_a_child, holding_without_room])
def test_inconsistent_reshape_fails_and_changes_nothing(scenario):
    host = Host()
    problem = scenario(host)
    before = host.everything()
    with pytest.raises(ReshapeFailed, match=r"^the providers of node host-a cannot be reshaped: ") as error:
        host.start("gpus")
    assert problem in str(error.value)
    assert host.everything() == before


def test_guest_using_more_vgpus_than_held_holds_them_all(capfd):
    host = Host()
    host.spawn("guest", VGPU=2)
    host.claim("guest", VGPU=1)
    assert host.start("gpus")
    assert host.holdings("guest") == {GPU0: {"VGPU": 2}}
    assert "uses_differ" in capfd.readouterr().err


def test_removed_gpu_loses_its_provider():
    host = Host()
    host.start("gpus")
    node = replace(FULL, gpu=(FULL.gpu[0], Gpu(name="gpu1", vgpus=0)))
    host.script = replace(SCRIPT, node=(node,))
    assert not host.start("gpus")
    assert not host.tree.exists(GPU1)


def test_script_providers_exist_in_every_layout():
    child = Child(name="{node}-child", inventories={"CUSTOM_MAGIC": Inventory(total=10)}, traits=("CUSTOM_A",))
    host = Host(node=(replace(FULL, provider=(child,)),))
    for layout in LAYOUTS:
        host.start(layout)
        assert host.totals()["host-a-child"] == {"CUSTOM_MAGIC": 10}
        assert host.tree.data("host-a-child").parent_uuid == ROOT
        assert host.tree.has_traits("host-a-child", ["CUSTOM_A"])


def total_amounts(allocations):
    """Return the amounts of a consumer, by class before renames."""
    totals = {}
    for record in allocations["allocations"].values():
        for name, amount in record["resources"].items():
            old_name = {"FPGA": "CUSTOM_FPGA", "PCPU": "VCPU"}.get(name, name)
            totals[old_name] = totals.get(old_name, 0) + amount
    return totals


small = st.fixed_dictionaries(
    {"VCPU": st.integers(1, 2), "MEMORY_MB": st.integers(1, 700)},
    optional={
        "VGPU": st.just(1),
        "PCPU": st.just(1),
        "SRIOV_NET_VF": st.just(1),
        "CUSTOM_FPGA": st.just(1),
    },
)


@given(
    wanted=st.lists(st.tuples(small, st.booleans()), max_size=4),
    layouts=st.lists(st.sampled_from(LAYOUTS), min_size=1, max_size=5),
)
def test_layout_changes_keep_amounts_and_stay_within_inventories(wanted, layouts):
    host = Host()
    for number, (held, is_built) in enumerate(wanted):
        (host.spawn if is_built else host.claim)(f"guest{number}", **held)
    before = {consumer: total_amounts(held) for consumer, held in host.held.items()}
    has_own = any("PCPU" in held and is_built for held, is_built in wanted)
    for earlier, layout in itertools.pairwise(["flat", *layouts]):
        is_alike = earlier == layout or ((earlier, layout) == ("shared", "flat") and not has_own)
        assert host.start(layout) != is_alike
        assert host.totals() == SHAPES[layout]
        assert {consumer: total_amounts(held) for consumer, held in host.held.items()} == before
        used = {}
        for held in host.held.values():
            assert all(record["resources"] for record in held["allocations"].values())
            for uuid, record in held["allocations"].items():
                for name, amount in record["resources"].items():
                    assert name in host.tree.data(uuid).inventory
                    used[uuid, name] = used.get((uuid, name), 0) + amount
        for (uuid, name), amount in used.items():
            record = host.tree.data(uuid).inventory[name]
            assert amount <= (record["total"] - record["reserved"]) * record["allocation_ratio"]
        assert not host.start(layout)
