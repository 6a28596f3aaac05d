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
from tests.support.agents.driver_doubles import fake, spec_of, tree_of
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
    """A host whose agent starts with one layout after another, and what Placement has of it."""

    def __init__(self, *, terms=None, **more):
        self.shelf, self.tree, self.held = MemoryShelf(), tree_of(NODE), {}
        self.terms = terms or HostTerms(reserved_host_memory_mb=0)
        self.script = replace(SCRIPT, **more)
        self.start("flat")

    def start(self, layout):
        """Start the agent, which reshapes where it must, and say whether it did."""
        self.driver = fake(replace(self.script, layout=layout), NODE, shelf=self.shelf, terms=self.terms)
        try:
            self.driver.update_provider_tree(self.tree, NODE)
        except ReshapeNeeded:
            self.driver.update_provider_tree(self.tree, NODE, self.held)
            return True
        return False

    def claim(self, name, **held):
        """Let a consumer hold something of the root."""
        self.held[uuid_named(name)] = {
            "allocations": {ROOT: {"resources": held}},
            "project_id": "p",
            "user_id": "u",
            "consumer_generation": 1,
        }

    def spawn(self, name, **held):
        """Let a guest run that holds something of the root."""
        self.claim(name, **held)
        self.driver.spawn(spec_of(name, NODE, held=held), f"build {name}")

    def holds(self, name):
        """Give what a consumer holds, by names of providers."""
        held = self.held[uuid_named(name)]["allocations"]
        return {self.tree.data(uuid).name: record["resources"] for uuid, record in held.items()}

    def totals(self):
        """Give what there is, by names of providers."""
        found = [self.tree.data(uuid) for uuid in self.tree.get_provider_uuids()]
        return {each.name: {name: record["total"] for name, record in each.inventory.items()} for each in found}

    def everything(self):
        """Give all that Placement would have."""
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
def test_a_new_host_has_the_shape_of_its_layout_at_once(layout):
    driver, tree = fake(replace(SCRIPT, layout=layout), NODE), tree_of(NODE)
    driver.update_provider_tree(tree, NODE)
    found = [tree.data(uuid) for uuid in tree.get_provider_uuids()]
    assert {each.name: {name: record["total"] for name, record in each.inventory.items()} for each in found} == SHAPES[
        layout
    ]
    assert tree.has_traits(NODE, ["HW_CPU_X86_AVX2"])


@pytest.mark.shows("S109", "S114", "S116", "S137")
def test_virtual_gpus_move_from_the_root_to_the_gpus_that_guests_use():
    host = Host()
    for number in range(3):
        host.spawn(f"guest{number}", VCPU=1, VGPU=1)
    host.spawn("plain", VCPU=1)
    before = host.everything()
    with pytest.raises(ReshapeNeeded, match=r"^VGPU of node host-a must move"):
        fake(replace(SCRIPT, layout="gpus"), NODE, shelf=host.shelf).update_provider_tree(host.tree, NODE)
    assert host.everything() == before
    assert host.start("gpus")
    # Each went onto the GPU with most left.
    assert [host.holds(f"guest{number}") for number in range(3)] == [
        {NODE: {"VCPU": 1}, gpu: {"VGPU": 1}} for gpu in (GPU0, GPU1, GPU0)
    ]
    assert host.holds("plain") == {NODE: {"VCPU": 1}}
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
def test_what_memory_nodes_have_moves_to_those_that_guests_use():
    host = Host()
    host.spawn("big", VCPU=2, MEMORY_MB=3000, SRIOV_NET_VF=1, DISK_GB=5)
    host.spawn("small", VCPU=2, MEMORY_MB=1500, PCPU=1)
    host.spawn("wide", VCPU=1, SRIOV_NET_VF=5)
    assert host.start("numa")
    assert host.holds("big") == {NODE: {"DISK_GB": 5}, CELL0: {"VCPU": 2, "MEMORY_MB": 3000, "SRIOV_NET_VF": 1}}
    assert host.holds("small") == {CELL1: {"VCPU": 2, "MEMORY_MB": 1500, "PCPU": 1}}
    wide = host.holds("wide")
    assert {part: each["SRIOV_NET_VF"] for part, each in wide.items()} == {CELL0: 3, CELL1: 2}
    assert sum(each.get("VCPU", 0) for each in wide.values()) == 1
    assert host.totals() == SHAPES["numa"]
    assert not host.start("numa")


@pytest.mark.shows("S111", "S137")
def test_a_custom_class_becomes_a_standard_one_on_its_provider():
    host = Host()
    host.spawn("guest", VCPU=1, CUSTOM_FPGA=2)
    assert host.start("renamed")
    assert host.holds("guest") == {NODE: {"VCPU": 1, "FPGA": 2}}
    assert host.totals() == SHAPES["renamed"]
    assert host.tree.data(NODE).inventory["FPGA"]["max_unit"] == 2
    assert not host.start("renamed")


def pinned(count, *, emulator=()):
    """Give a guest on the second cell with processors of its own, and of its emulator."""
    cell = InstanceCell(id=0, pcpus=frozenset(range(count)), memory_mb=64, policy="dedicated")
    return (PlacedCell(cell=cell, host_cell=1, pins=Pins(reserved=emulator)),)


def on_shared_processors():
    """Give a host whose guests hold processors of their own as VCPU, as one does that knows no others."""
    host = Host()
    host.start("shared")
    held = {"VCPU": 2, "MEMORY_MB": 64}
    for name, cells in (("pinned", pinned(2)), ("plain", ()), ("beside", pinned(1, emulator=(11,)))):
        host.claim(name, **held)
        host.driver.spawn(spec_of(name, NODE, held=held, cells=cells), f"build {name}")
    return host


@pytest.mark.shows("S137")
def test_processors_of_guests_own_become_pcpu_where_they_are_offered_so():
    host = on_shared_processors()
    host.claim("ordered", VCPU=2)
    before = host.everything()
    with pytest.raises(ReshapeNeeded, match=r"^VCPU of node host-a must move"):
        fake(SCRIPT, NODE, shelf=host.shelf).update_provider_tree(host.tree, NODE)
    assert host.everything() == before
    assert host.start("flat")
    assert [host.holds(name) for name in ("pinned", "plain", "beside", "ordered")] == [
        {NODE: {"PCPU": 2, "MEMORY_MB": 64}},
        {NODE: {"VCPU": 2, "MEMORY_MB": 64}},
        {NODE: {"PCPU": 2, "MEMORY_MB": 64}},
        {NODE: {"VCPU": 2}},
    ]
    assert host.totals() == SHAPES["flat"]
    assert not host.start("flat")
    assert host.start("shared")
    assert host.holds("pinned") == {NODE: {"VCPU": 2, "MEMORY_MB": 64}}


def test_processors_of_guests_own_become_pcpu_of_their_memory_nodes_at_once():
    host = on_shared_processors()
    assert host.start("numa")
    assert host.holds("pinned") == {CELL1: {"PCPU": 2, "MEMORY_MB": 64}}
    assert host.holds("plain") == {CELL0: {"VCPU": 2, "MEMORY_MB": 64}}
    assert host.totals() == SHAPES["numa"]
    assert not host.start("numa")


def test_the_consumer_of_a_move_has_the_processors_of_the_guest_that_leaves():
    host = on_shared_processors()
    host.held[uuid_named("migration")] = host.held.pop(uuid_named("pinned"))
    assert host.start("flat")
    assert host.holds("migration") == {NODE: {"PCPU": 2, "MEMORY_MB": 64}}


def test_a_guest_that_has_more_processors_of_its_own_than_it_holds_holds_those_from_then_on(capfd):
    host = on_shared_processors()
    host.claim("pinned", VCPU=1)
    assert host.start("flat")
    assert host.holds("pinned") == {NODE: {"PCPU": 2}}
    assert "uses_differ" in capfd.readouterr().err


def test_a_host_whose_guests_have_no_processors_of_their_own_need_not_be_reshaped_for_them():
    host = Host()
    host.start("shared")
    host.spawn("plain", VCPU=2)
    assert not host.start("flat")
    assert host.totals() == SHAPES["flat"]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_single_resources_are_on_the_root_in_any_layout_with_their_names(layout):
    host = Host(node=(replace(FULL, pieces={"CUSTOM_PMEM": ("ns0", "ns1"), "CUSTOM_NONE": ()}),))
    host.start(layout)
    assert host.tree.data(NODE).inventory["CUSTOM_PMEM"]["total"] == 2
    assert "CUSTOM_NONE" not in host.tree.data(NODE).inventory
    assert host.tree.data(NODE).resources["CUSTOM_PMEM"] == {"ns0", "ns1"}


def test_what_others_have_below_its_providers_is_left_alone_though_it_is_called_alike():
    host = Host()
    host.start("gpus")
    host.tree.new_child(f"{NODE}_deep", GPU0, uuid_named("deep"))
    assert not host.start("gpus")
    assert host.totals() == {**SHAPES["gpus"], f"{NODE}_deep": {}}


def test_a_guest_says_which_single_resources_it_has():
    host = Host()
    host.driver.spawn(spec_of("guest", NODE, pieces=("ns0", "ns1")), "op-1")
    assert host.driver.console(uuid_named("guest")).splitlines()[-1] == "built on host-a with ns0, ns1"


def test_contexts_of_encrypted_memory_are_offered_as_the_script_says():
    host = Host(node=(replace(FULL, inventories={"MEM_ENCRYPTION_CONTEXT": Inventory(total=15, max_unit=1)}),))
    assert host.tree.data(NODE).inventory["MEM_ENCRYPTION_CONTEXT"]["total"] == 15


def test_a_guest_built_on_providers_of_parts_uses_those():
    host = Host()
    host.start("gpus")
    spec = spec_of("guest", NODE, allocations={host.tree.data(GPU1).uuid: {"VGPU": 1}})
    host.driver.spawn(spec, "op-1")
    host.held[spec.uuid] = {"allocations": {host.tree.data(GPU1).uuid: {"resources": {"VGPU": 1}}}}
    assert host.start("flat")
    assert host.holds("guest") == {NODE: {"VGPU": 1}}
    assert host.start("gpus")
    assert host.holds("guest") == {GPU1: {"VGPU": 1}}


def test_a_ratio_that_was_changed_in_placement_moves_along():
    host = Host()
    inventory = host.tree.data(NODE).inventory
    inventory["VCPU"]["allocation_ratio"] = 2.5
    host.tree.update_inventory(NODE, inventory)
    host.start("numa")
    assert [host.tree.data(name).inventory["VCPU"]["allocation_ratio"] for name in (CELL0, CELL1)] == [2.5, 2.5]
    assert host.tree.data(CELL0).inventory["PCPU"]["allocation_ratio"] == 1.0


def test_what_the_host_keeps_is_kept_on_its_first_cells():
    host = Host(terms=HostTerms(reserved_host_memory_mb=5000, reserved_host_cpus=1))
    assert host.tree.data(NODE).inventory["MEMORY_MB"]["reserved"] == 5000
    host.start("numa")
    assert [host.tree.data(name).inventory["MEMORY_MB"]["reserved"] for name in (CELL0, CELL1)] == [4096, 904]
    assert [host.tree.data(name).inventory["VCPU"]["reserved"] for name in (CELL0, CELL1)] == [1, 0]


def test_who_has_no_guest_yet_gets_what_no_guest_uses_and_its_guest_uses_that():
    host = Host()
    host.spawn("guest", VGPU=2)  # all of gpu0
    host.claim("ordered", VGPU=1)
    assert host.start("gpus")
    assert (host.holds("guest"), host.holds("ordered")) == ({GPU0: {"VGPU": 2}}, {GPU1: {"VGPU": 1}})
    # Its order was written before; it still says the root.
    host.driver.spawn(spec_of("ordered", NODE, held={"VGPU": 1}), "op-1")
    assert host.start("flat")
    assert host.start("gpus")
    assert host.holds("ordered") == {GPU1: {"VGPU": 1}}


def test_others_do_not_get_what_was_promised_to_who_has_no_guest_yet():
    host = Host()
    host.claim("ordered", VGPU=2)
    host.start("gpus")
    assert host.holds("ordered") == {GPU0: {"VGPU": 2}}
    host.driver.spawn(spec_of("other", NODE, held={"VGPU": 2}), "op-1")
    host.claim("other")
    host.held[uuid_named("other")]["allocations"] = {host.tree.data(GPU1).uuid: {"resources": {"VGPU": 2}}}
    assert host.start("flat")
    assert host.start("gpus")
    assert (host.holds("ordered"), host.holds("other")) == ({GPU0: {"VGPU": 2}}, {GPU1: {"VGPU": 2}})


def test_what_was_promised_to_who_is_destroyed_before_it_is_built_is_free_again():
    host = Host()
    host.claim("ordered", VGPU=2)
    host.start("gpus")
    host.driver.destroy(uuid_named("ordered"), "gone")
    del host.held[uuid_named("ordered")]
    host.start("flat")
    host.spawn("first", VGPU=1)
    host.spawn("second", VGPU=2)
    assert host.start("gpus")
    assert [host.holds(name) for name in ("first", "second")] == [{GPU0: {"VGPU": 1}}, {GPU1: {"VGPU": 2}}]


def test_the_consumer_of_a_move_gets_the_parts_of_the_guest_that_leaves():
    host = Host()
    host.spawn("first", VGPU=2)
    host.spawn("leaving", VGPU=1)
    host.spawn("third", VGPU=1)
    del host.held[uuid_named("leaving")]
    host.claim("migration", VGPU=1)
    assert host.start("gpus")
    assert [host.holds(name) for name in ("first", "migration", "third")] == [
        {GPU0: {"VGPU": 2}},
        {GPU1: {"VGPU": 1}},
        {GPU1: {"VGPU": 1}},
    ]


def test_what_is_held_of_other_hosts_stays_as_it_is():
    host = Host()
    host.spawn("guest", VGPU=1)
    elsewhere = uuid_named("host-b")
    host.held[uuid_named("guest")]["allocations"][elsewhere] = {"resources": {"VGPU": 1}}
    assert host.start("gpus")
    held = host.held[uuid_named("guest")]["allocations"]
    assert held == {elsewhere: {"resources": {"VGPU": 1}}, host.tree.data(GPU0).uuid: {"resources": {"VGPU": 1}}}


def uses_nothing(host):
    host.driver.spawn(spec_of("guest", NODE), "op-1")
    host.claim("guest", VGPU=1)
    return "holds 1 VGPU and uses none there"


def holds_of_a_child(host):
    host.start("gpus")
    child = host.tree.data(GPU0).uuid
    inventory = host.tree.data(NODE).inventory | {"VGPU": {"total": 4}}
    host.tree.update_inventory(NODE, inventory)
    host.claim("guest")
    host.held[uuid_named("guest")]["allocations"] = {child: {"resources": {"VGPU": 1}}}
    return f"holds VGPU of {GPU0}, not of the root"


def finds_nothing_left(host):
    host.spawn("guest", VGPU=2)
    host.spawn("other", VGPU=2)
    host.claim("ordered", VGPU=1)
    return "holds 1 VGPU and has no guest, and guests use the rest"


@pytest.mark.shows("S115")
@pytest.mark.parametrize("wrong", [uses_nothing, holds_of_a_child, finds_nothing_left])
def test_a_reshape_that_cannot_be_right_fails_and_changes_nothing(wrong):
    host = Host()
    problem = wrong(host)
    before = host.everything()
    with pytest.raises(ReshapeFailed, match=r"^the providers of node host-a cannot be reshaped: ") as error:
        host.start("gpus")
    assert problem in str(error.value)
    assert host.everything() == before


def test_a_guest_that_uses_more_than_it_holds_holds_that_from_then_on(capfd):
    host = Host()
    host.spawn("guest", VGPU=2)
    host.claim("guest", VGPU=1)
    assert host.start("gpus")
    assert host.holds("guest") == {GPU0: {"VGPU": 2}}
    assert "uses_differ" in capfd.readouterr().err


def test_a_gpu_that_was_taken_out_has_no_provider_any_more():
    host = Host()
    host.start("gpus")
    node = replace(FULL, gpu=(FULL.gpu[0], Gpu(name="gpu1", vgpus=0)))
    host.script = replace(SCRIPT, node=(node,))
    assert not host.start("gpus")
    assert not host.tree.exists(GPU1)


def test_further_providers_of_the_script_are_there_in_any_layout():
    child = Child(name="{node}-child", inventories={"CUSTOM_MAGIC": Inventory(total=10)}, traits=("CUSTOM_A",))
    host = Host(node=(replace(FULL, provider=(child,)),))
    for layout in LAYOUTS:
        host.start(layout)
        assert host.totals()["host-a-child"] == {"CUSTOM_MAGIC": 10}
        assert host.tree.data("host-a-child").parent_uuid == ROOT
        assert host.tree.has_traits("host-a-child", ["CUSTOM_A"])


def summed(allocations):
    """Give how much a consumer holds of each class, by its first name."""
    found = {}
    for record in allocations["allocations"].values():
        for name, amount in record["resources"].items():
            known = {"FPGA": "CUSTOM_FPGA", "PCPU": "VCPU"}.get(name, name)
            found[known] = found.get(known, 0) + amount
    return found


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
def test_from_layout_to_layout_nobody_holds_more_or_less_and_nothing_is_held_of_what_is_not_offered(wanted, layouts):
    host = Host()
    for number, (held, is_built) in enumerate(wanted):
        (host.spawn if is_built else host.claim)(f"guest{number}", **held)
    before = {consumer: summed(held) for consumer, held in host.held.items()}
    has_own = any("PCPU" in held and is_built for held, is_built in wanted)
    for earlier, layout in itertools.pairwise(["flat", *layouts]):
        is_alike = earlier == layout or ((earlier, layout) == ("shared", "flat") and not has_own)
        assert host.start(layout) != is_alike
        assert host.totals() == SHAPES[layout]
        assert {consumer: summed(held) for consumer, held in host.held.items()} == before
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
