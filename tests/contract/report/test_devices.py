"""PCI devices that an agent's tracker brings to any kind of Placement, a provider each."""

import json
from contextlib import contextmanager, suppress
from itertools import permutations

import pytest
from msgspec.structs import replace

from roost.compute.drivers.fake.script import Child, FakeNode, Gpu
from roost.compute.inventory.provider_config import ProviderConfig
from roost.errors import BadSettings, InUse
from roost.model.devices.numa import NumaCell
from roost.model.devices.pci import PciRequest
from roost.model.host import PciPool
from roost.model.provider import Inventory
from roost.model.work.agent_terms import PciDevice
from roost.model.work.guest_use import GuestNeeds, GuestUse
from tests.support.agents.driver_doubles import spec_of
from tests.support.agents.scripted_agents import Dead
from tests.support.agents.trackers import HOST, Machine

CARD, OTHER, NIC = "0000:0a:00.0", "0000:0b:00.0", "0000:81:00.0"
GPU, FUNCTION = "CUSTOM_PCI_10DE_1DB4", "CUSTOM_PCI_8086_154C"
OURS = ["COMPUTE_MANAGED_PCI_DEVICE", "OWNER_NOVA"]


def gpu(address, **more):
    return PciDevice(address=address, vendor_id="10de", product_id="1db4", **more)


def function(number, **more):
    return PciDevice(
        address=f"{NIC[:-4]}10.{number}",
        vendor_id="8086",
        product_id="154c",
        dev_type="type-VF",
        parent_address=NIC,
        **more,
    )


PORT = PciDevice(address=NIC, vendor_id="8086", product_id="1572", dev_type="type-PF")
DEVICES = (gpu(CARD, numa_node=0), gpu(OTHER, numa_node=1), function(1), function(2))


def script(*devices, **more):
    return {"node": (FakeNode(pci=devices, **more),)}


@pytest.fixture
def machine(world):
    """Give a host with devices that Placement is to count, whose agent has not started yet."""
    found = Machine(world, script(*DEVICES))
    found.device_specs = ()
    return found


def offers(machine):
    """Give the traits and inventories of the children, by the address at the end of the name."""
    found = {}
    for each in machine.dump().values():
        if each["parent_provider_uuid"] is not None:
            totals = {name: (one["total"], one["reserved"]) for name, one in each["inventories"].items()}
            found[each["name"].removeprefix(f"{machine.host}_")] = (totals, each["traits"])
    return found


def told(capfd, event):
    """Give the lines of an event that were logged since the last look."""
    lines = [json.loads(line) for line in capfd.readouterr().err.splitlines() if line.startswith("{")]
    return [line for line in lines if line.get("event") == event]


def uuid_of(machine, address):
    return next(each["uuid"] for each in machine.records() if each["name"] == f"{machine.host}_{address.upper()}")


def card(count=1):
    return PciRequest(count=count, alternatives=({"vendor_id": "10de", "product_id": "1db4"},), request_id="pci0")


def test_each_device_is_a_provider_and_functions_are_counted_on_that_of_their_card(machine):
    machine.start()
    found = machine.update()
    assert offers(machine) == {
        CARD.upper(): ({GPU: (1, 0)}, OURS),
        OTHER.upper(): ({GPU: (1, 0)}, OURS),
        NIC: ({FUNCTION: (2, 0)}, OURS),
    }
    pools = {pool.rp_uuids: (pool.address, pool.count, pool.numa_node) for pool in found.facts.pci_pools}
    assert pools == {
        (uuid_of(machine, CARD),): (CARD, 1, 0),
        (uuid_of(machine, OTHER),): (OTHER, 1, 1),
        (uuid_of(machine, NIC),): ("", 2, None),
    }
    machine.check_settled()


def test_settings_say_which_devices_are_offered_and_as_what(machine):
    machine.script = script(*DEVICES, function(3, tags={"physical_network": "net"}))
    machine.device_specs = (
        f'{{"address": "{CARD}", "resource_class": "big gpu", "traits": "hw_gpu_api_vulkan, fast one"}}',
        '{"vendor_id": "8086"}',
    )
    machine.start()
    found = machine.update()
    assert offers(machine) == {
        CARD.upper(): ({"CUSTOM_BIG_GPU": (1, 0)}, sorted([*OURS, "CUSTOM_FAST_ONE", "HW_GPU_API_VULKAN"])),
        NIC: ({FUNCTION: (2, 0)}, OURS),
    }
    # Devices of a network are for ports, which Placement is not asked for.
    assert [(pool.count, bool(pool.rp_uuids)) for pool in found.facts.pci_pools] == [(1, True), (2, True), (1, False)]


@pytest.mark.parametrize(
    ("devices", "specs", "problem"),
    [
        *[
            (both, (), f"agent.device_spec: offers device {NIC} and its function 0000:81:10.1: only one of the two can")
            for both in permutations([PORT, function(1)])
        ],
        (
            DEVICES,
            ('{"address": "*:81:10.1", "traits": "a"}', "{}"),
            f"gives functions 0000:81:10.1 and 0000:81:10.2 of device {NIC} different traits",
        ),
        (
            DEVICES,
            ('{"address": "*:81:10.1", "resource_class": "a"}', "{}"),
            f"gives functions 0000:81:10.1 and 0000:81:10.2 of device {NIC} different resource classes",
        ),
        (DEVICES, (f'{{"traits": "{"a" * 300}"}}',), "which is no trait"),
        (DEVICES, (f'{{"resource_class": "{"a" * 300}"}}',), "which is no resource class"),
    ],
)
def test_what_one_provider_cannot_stand_for_ends_the_start(machine, world, devices, specs, problem):
    machine.script, machine.device_specs = script(*devices), specs
    machine.start()
    with pytest.raises(BadSettings, match=problem):
        machine.update()
    assert machine.writes() == []
    assert world.children(HOST) == []


ABOVE = Child(name="{node}_above", inventories={"CUSTOM_A": Inventory(total=1)})


@pytest.mark.parametrize(
    "children",
    [
        (Child(name=f"{{node}}_{OTHER.upper()}", inventories={"CUSTOM_A": Inventory(total=1)}),),
        (Child(name=f"{{node}}_{OTHER.upper()}", inventories={GPU: Inventory(total=1)}, traits=("CUSTOM_A",)),),
        (ABOVE, Child(name=f"{{node}}_{OTHER.upper()}", parent=ABOVE.name)),
    ],
    ids=["another class", "traits of its own", "below another provider"],
)
def test_a_name_that_is_somebody_elses_ends_the_start_with_that_of_the_device(machine, children):
    machine.script = script(*DEVICES, provider=children)
    machine.start()
    with pytest.raises(BadSettings, match=f"device {OTHER} would have the provider .*0000:0B:00.0, which is somebody"):
        machine.update()


@pytest.mark.parametrize("is_counting", [True, False])
def test_what_is_marked_as_a_device_below_another_provider_is_left_alone(machine, is_counting):
    deep = Child(name="{node}_deep", parent=ABOVE.name, inventories=ABOVE.inventories, traits=(OURS[0],))
    machine.script, machine.counts_devices = script(*DEVICES, provider=(ABOVE, deep)), is_counting
    machine.start()
    machine.update()
    assert offers(machine)["deep"] == ({"CUSTOM_A": (1, 0)}, [OURS[0]])
    machine.check_settled()


def test_a_device_that_is_gone_goes_once_nothing_is_held_of_it(machine, world, capfd):
    machine.start()
    machine.update()
    world.ask(
        "PUT",
        f"/allocations/{world.u('one')}",
        world.payload(None)
        | {
            "allocations": {uuid_of(machine, CARD): {"resources": {GPU: 1}}},
        },
    )
    machine.script = script(*DEVICES[2:])
    machine.start()
    machine.update()
    assert offers(machine) == {CARD.upper(): ({GPU: (1, 1)}, OURS), NIC: ({FUNCTION: (2, 0)}, OURS)}
    world.network.asked.clear()
    machine.update(is_startup=False)
    assert machine.writes() == []
    (line,) = told(capfd, "device_gone")
    assert (line["provider"], line["problem"]) == (f"{machine.host}_{CARD.upper()}", f"{world.u('one')} holds it")
    world.ask("DELETE", f"/allocations/{world.u('one')}")
    machine.update(is_startup=False)
    assert [*offers(machine)] == [NIC]


def test_what_operators_add_to_a_device_stays(machine):
    config = ProviderConfig(
        provider=f"{machine.host}_{CARD.upper()}",
        path="site.yaml",
        traits=frozenset({"CUSTOM_NEAR"}),
        inventories={"CUSTOM_SEAT": Inventory(total=2)},
    )
    machine.configs = [config]
    for is_startup in (True, False):
        machine.start()
        machine.update(is_startup=is_startup)
        totals, traits = offers(machine)[CARD.upper()]
        assert ({*totals}, traits) == ({GPU, "CUSTOM_SEAT"}, sorted([*OURS, "CUSTOM_NEAR"]))


def test_it_cannot_be_switched_off_again(machine):
    machine.start()
    machine.update()
    machine.counts_devices = False
    machine.start()
    with pytest.raises(BadSettings, match="cannot be switched off: Placement counts 3 devices of node"):
        machine.update()


@pytest.mark.parametrize("layout", ["flat", "numa", "gpus"])
def test_layouts_of_the_driver_and_devices_leave_each_other_alone(machine, layout):
    cells = (NumaCell(id=0, memory_mb=4096, cpus=(0, 1)), NumaCell(id=1, memory_mb=4096, cpus=(2, 3)))
    devices = (*DEVICES[:2], function(1, numa_node=0), function(2, numa_node=1))
    machine.script = script(*devices, cell=cells, gpu=(Gpu(name="gpu0", vgpus=2),))
    machine.start("flat")
    machine.update()
    before = offers(machine)
    machine.start(layout)
    machine.update()
    assert {name: told for name, told in offers(machine).items() if name in before} == before
    assert (len(offers(machine)) > len(before)) == (layout != "flat")


# --- what guests have already ---


def populated(machine, world, *names, **more):
    """Let guests run whose devices Placement does not count, and which hold a processor; give the devices of each."""
    machine.device_specs = None
    machine.start()
    machine.update()
    use, held = machine.tracker.use(machine.host), {"VCPU": 1, **more}
    for name in names:
        world.hold(name, **{HOST: held})
        spec = spec_of(name, machine.host, pci=(card(),), allocations={world.u(HOST): held})
        spec = replace(spec, uuid=world.u(name))
        machine.driver.spawn(spec, "operation")
        machine.book.of_instances[spec.uuid] = use.claim(spec.uuid, GuestNeeds(pci=spec.pci)).use
    machine.device_specs = ()
    return machine.driver.resources(machine.host).pci_in_use


def test_what_guests_have_is_held_from_then_on(machine, world, capfd):
    had = populated(machine, world, "one", "two")
    assert sorted(had.values()) == [(CARD,), (OTHER,)]
    machine.start()
    found = machine.update()
    assert {line["consumer"]: (line["device"],) for line in told(capfd, "devices_healed")} == had
    for name in ("one", "two"):
        (address,) = had[world.u(name)]
        assert world.held(name) == {world.u(HOST): {"VCPU": 1}, uuid_of(machine, address): {GPU: 1}}
        assert machine.book.of_instances[world.u(name)].addresses == (address,)
    assert not found.is_reshaped
    assert {name: told[0] for name, told in offers(machine).items() if name != NIC} == {
        CARD.upper(): {GPU: (1, 0)},
        OTHER.upper(): {GPU: (1, 0)},
    }
    assert [pool.count for pool in found.facts.pci_pools if pool.vendor_id == "10de"] == [0, 0]
    world.network.asked.clear()
    machine.update(is_startup=False)
    assert machine.writes() == []


def test_who_holds_another_device_than_it_has_holds_that_one_instead(machine, world):
    had = populated(machine, world, "one")
    machine.start()
    machine.update()
    (address,) = had[world.u("one")]
    wrong = {uuid_of(machine, OTHER if address == CARD else CARD): {"resources": {GPU: 1}}}
    held = world.ask("GET", f"/allocations/{world.u('one')}")
    root = {world.u(HOST): {"resources": {"VCPU": 1}}}
    world.ask(
        "PUT",
        f"/allocations/{world.u('one')}",
        world.payload(held["consumer_generation"])
        | {
            "allocations": root | wrong,
        },
    )
    machine.update(is_startup=False)
    assert world.held("one") == {world.u(HOST): {"VCPU": 1}, uuid_of(machine, address): {GPU: 1}}


def test_who_holds_more_devices_than_it_has_gives_back_as_many_as_it_is_given(machine, world):
    third = "0000:0c:00.0"
    machine.script = script(*DEVICES, gpu(third))
    machine.start()
    machine.update()
    world.hold("one", **{HOST: {"VCPU": 1}})
    held = world.ask("GET", f"/allocations/{world.u('one')}")
    cards = {uuid_of(machine, address): {"resources": {GPU: 1}} for address in (CARD, OTHER)}
    world.ask(
        "PUT",
        f"/allocations/{world.u('one')}",
        world.payload(held["consumer_generation"])
        | {
            "allocations": cards,
        },
    )
    machine.book.of_instances[world.u("one")] = GuestUse(addresses=(third,))
    machine.update(is_startup=False)
    assert sum(amounts[GPU] for amounts in world.held("one").values()) == 2
    assert world.held("one")[uuid_of(machine, third)] == {GPU: 1}


@pytest.mark.parametrize("is_counting", [True, False])
def test_what_the_driver_moves_is_moved_in_the_same_request(machine, world, is_counting):
    machine.script = script(*DEVICES[:2], gpu=(Gpu(name="gpu0", vgpus=2),))
    had = populated(machine, world, "one", VGPU=1)
    machine.counts_devices = is_counting
    machine.start("gpus")
    world.network.asked.clear()
    assert machine.update().is_reshaped
    assert world.network.paths("POST").count("/reshaper") == 1
    part = next(each["uuid"] for each in machine.records() if each["name"] == f"{machine.host}_gpu0")
    counted = {uuid_of(machine, address): {GPU: 1} for address in had[world.u("one")] if is_counting}
    assert world.held("one") == {world.u(HOST): {"VCPU": 1}, part: {"VGPU": 1}, **counted}
    machine.start("gpus")
    world.network.asked.clear()
    assert not machine.update().is_reshaped
    assert machine.writes() == []


def test_another_class_for_a_device_that_is_held_ends_the_start(machine, world):
    populated(machine, world, "one")
    machine.start()
    machine.update()
    machine.device_specs = ('{"resource_class": "other"}',)
    machine.start()
    with pytest.raises(InUse):
        machine.update()


def test_a_guest_that_is_built_unasked_holds_its_devices_with_the_next_update(machine, world):
    machine.start()
    machine.update()
    world.hold("one", **{HOST: {"VCPU": 1}})
    use = machine.tracker.use(machine.host).claim(world.u("one"), GuestNeeds(pci=(card(),))).use
    machine.book.of_instances[world.u("one")] = use
    assert use.addresses == (CARD,)
    machine.update(is_startup=False)
    assert world.held("one")[uuid_of(machine, CARD)] == {GPU: 1}


@pytest.mark.parametrize("holder", [None, "the move"])
def test_what_somebody_has_who_holds_nothing_here_is_kept_back(machine, world, holder):
    machine.start()
    machine.update()
    if holder is not None:  # What an instance has that moves away is held by its migration.
        allocations = {"allocations": {uuid_of(machine, CARD): {"resources": {GPU: 1}}}}
        world.ask("PUT", f"/allocations/{world.u(holder)}", world.payload(None) | allocations)
    one = world.u("one")
    machine.book.of_instances[one] = GuestUse(
        devices=(PciPool(vendor_id="10de", product_id="1db4", count=1),), addresses=(CARD,)
    )
    machine.start()
    found = machine.update()
    assert world.held("one") == {}
    assert offers(machine)[CARD.upper()][0] == {GPU: (1, 0 if holder else 1)}
    assert [pool.count for pool in found.facts.pci_pools if pool.address == CARD] == [0]
    world.network.asked.clear()
    machine.update(is_startup=False)
    assert machine.writes() == []
    machine.book.of_instances.clear()
    machine.update(is_startup=False)
    assert offers(machine)[CARD.upper()][0] == {GPU: (1, 0)}


def test_it_cannot_be_switched_on_where_nobody_says_who_has_which(machine, world):
    machine.book.of_instances[world.u("one")] = GuestUse(
        devices=(PciPool(vendor_id="10de", product_id="1db4", count=2),)
    )
    machine.start()
    with pytest.raises(BadSettings, match=rf"cannot be switched on: {world.u('one')} has 2 PCI devices of node"):
        machine.update()
    assert world.network.paths("POST") == []


def test_where_it_is_off_nobody_has_to_say_who_has_which(machine, world):
    machine.counts_devices = False
    devices = (PciPool(vendor_id="10de", product_id="1db4", numa_node=0, address=CARD, count=1),)
    machine.book.of_instances[world.u("one")] = GuestUse(devices=devices)
    machine.start()
    pools = {pool.address: (pool.count, pool.rp_uuids) for pool in machine.update().facts.pci_pools}
    assert (pools[CARD], pools[OTHER]) == ((0, ()), (1, ()))
    assert offers(machine) == {}


@pytest.mark.parametrize("is_done", [False, True])
@pytest.mark.parametrize("layout", ["flat", "gpus"])
@pytest.mark.parametrize("number", range(1, 9))
def test_an_agent_that_dies_at_a_write_goes_on_in_its_next_life(world, layout, number, is_done):
    machine = Machine(world, script(*DEVICES[:2], gpu=(Gpu(name="gpu0", vgpus=2),)))
    had = populated(machine, world, "one")
    machine.start(layout)
    with dying_at(world.network, number, is_done=is_done) as deaths, suppress(Dead):
        machine.update()
    assert deaths or number > 5
    machine.start(layout)
    machine.update()
    (address,) = had[world.u("one")]
    assert world.held("one") == {world.u(HOST): {"VCPU": 1}, uuid_of(machine, address): {GPU: 1}}
    told = offers(machine)
    assert [told.pop(name) for name in (CARD.upper(), OTHER.upper())] == [({GPU: (1, 0)}, OURS)] * 2
    assert [*told] == (["gpu0"] if layout == "gpus" else [])
    world.network.asked.clear()
    machine.update(is_startup=False)
    assert machine.writes() == []


@contextmanager
def dying_at(network, number, *, is_done):
    """Let whoever asks die at one of its writes, before or after that is done; give what was written then."""
    inner, written, deaths = network.inner, [], []

    class Deadly:
        def ask(self, method, path, body=None, *, version):
            written.extend([path] if method != "GET" else [])
            is_last = method != "GET" and len(written) == number
            if not is_last or is_done:
                answer = inner.ask(method, path, body, version=version)
            if is_last:
                deaths.append(path)
                raise Dead
            return answer

    network.inner = Deadly()
    try:
        yield deaths
    finally:
        network.inner = inner


def test_whoever_claims_meanwhile_makes_it_a_new_try(machine, world):
    had = populated(machine, world, "one")
    machine.start()
    machine.claim_before("POST", "/reshaper", times=2, VCPU=1)
    machine.update()
    (address,) = had[world.u("one")]
    assert world.held("one")[uuid_of(machine, address)] == {GPU: 1}
    assert world.held("claimer 1") == {world.u(HOST): {"VCPU": 1}}


def test_others_before_every_try_do_not_end_the_agent(machine, world):
    populated(machine, world, "one")
    machine.start()
    machine.claim_before("POST", "/reshaper", times=machine.terms.reshape_tries, VCPU=1)
    assert machine.update() is None
    assert machine.update() is not None
    assert len(world.held("one")) == 2


def test_an_answer_to_healing_that_is_lost_is_found_done_by_the_next_update(machine, world):
    populated(machine, world, "one")
    machine.start()
    world.network.lose("POST", "/reshaper", is_done=True, times=4)
    assert machine.update() is None
    assert machine.update() is not None
    assert len(world.held("one")) == 2
