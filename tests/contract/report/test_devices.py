"""PCI devices that an agent's tracker reports to any kind of Placement, one provider per device."""

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
from tests.support.agents.scripted_agents import AgentDeath
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
    """Return a host with devices tracked in Placement; its agent has not started."""
    machine = Machine(world, script(*DEVICES))
    machine.device_specs = ()
    return machine


def offers(machine):
    """Return inventories and traits of the child providers, by the device address in their names."""
    found = {}
    for each in machine.dump().values():
        if each["parent_provider_uuid"] is not None:
            totals = {name: (one["total"], one["reserved"]) for name, one in each["inventories"].items()}
            found[each["name"].removeprefix(f"{machine.host}_")] = (totals, each["traits"])
    return found


def log_lines(capfd, event):
    """Return the log lines of an event since the last call."""
    lines = [json.loads(line) for line in capfd.readouterr().err.splitlines() if line.startswith("{")]
    return [line for line in lines if line.get("event") == event]


def uuid_of(machine, address):
    return next(each["uuid"] for each in machine.records() if each["name"] == f"{machine.host}_{address.upper()}")


def card(count=1):
    return PciRequest(count=count, alternatives=({"vendor_id": "10de", "product_id": "1db4"},), request_id="pci0")


def test_each_device_is_a_provider_and_functions_count_on_their_card(machine):
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


def test_device_spec_selects_devices_their_class_and_traits(machine):
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
    # Devices of a network are for ports and are not tracked in Placement.
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
        (DEVICES, (f'{{"traits": "{"a" * 300}"}}',), "which is not a trait"),
        (DEVICES, (f'{{"resource_class": "{"a" * 300}"}}',), "which is not a resource class"),
    ],
)
def test_device_settings_that_conflict_on_one_provider_fail_the_start(machine, world, devices, specs, problem):
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
def test_driver_provider_with_the_name_of_a_device_fails_the_start(machine, children):
    machine.script = script(*DEVICES, provider=children)
    machine.start()
    with pytest.raises(BadSettings, match=f"device {OTHER} needs the provider .*0000:0B:00.0, which this agent"):
        machine.update()


@pytest.mark.parametrize("is_counting", [True, False])
def test_marked_provider_below_a_driver_provider_is_not_touched(machine, is_counting):
    deep = Child(name="{node}_deep", parent=ABOVE.name, inventories=ABOVE.inventories, traits=(OURS[0],))
    machine.script, machine.counts_devices = script(*DEVICES, provider=(ABOVE, deep)), is_counting
    machine.start()
    machine.update()
    assert offers(machine)["deep"] == ({"CUSTOM_A": (1, 0)}, [OURS[0]])
    machine.check_settled()


def test_missing_device_is_deleted_once_nothing_is_allocated(machine, world, capfd):
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
    (line,) = log_lines(capfd, "device_gone")
    assert (line["provider"], line["problem"]) == (f"{machine.host}_{CARD.upper()}", f"{world.u('one')} holds it")
    world.ask("DELETE", f"/allocations/{world.u('one')}")
    machine.update(is_startup=False)
    assert [*offers(machine)] == [NIC]


def test_operator_inventory_and_traits_on_a_device_persist(machine):
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


def test_device_providers_cannot_be_switched_off_again(machine):
    machine.start()
    machine.update()
    machine.counts_devices = False
    machine.start()
    with pytest.raises(BadSettings, match="cannot be switched off: Placement counts 3 devices of node"):
        machine.update()


@pytest.mark.parametrize("layout", ["flat", "numa", "gpus"])
def test_driver_layouts_and_device_providers_do_not_interfere(machine, layout):
    cells = (NumaCell(id=0, memory_mb=4096, cpus=(0, 1)), NumaCell(id=1, memory_mb=4096, cpus=(2, 3)))
    devices = (*DEVICES[:2], function(1, numa_node=0), function(2, numa_node=1))
    machine.script = script(*devices, cell=cells, gpu=(Gpu(name="gpu0", vgpus=2),))
    machine.start("flat")
    machine.update()
    before = offers(machine)
    machine.start(layout)
    machine.update()
    assert {name: each for name, each in offers(machine).items() if name in before} == before
    assert (len(offers(machine)) > len(before)) == (layout != "flat")


# --- devices of existing guests ---


def spawn_untracked(machine, world, *names, **more):
    """Start guests with a processor allocation and untracked devices; return the devices of each."""
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


def test_devices_of_existing_guests_are_allocated_at_the_start(machine, world, capfd):
    devices_of = spawn_untracked(machine, world, "one", "two")
    assert sorted(devices_of.values()) == [(CARD,), (OTHER,)]
    machine.start()
    found = machine.update()
    assert {line["consumer"]: (line["device"],) for line in log_lines(capfd, "devices_healed")} == devices_of
    for name in ("one", "two"):
        (address,) = devices_of[world.u(name)]
        assert world.held(name) == {world.u(HOST): {"VCPU": 1}, uuid_of(machine, address): {GPU: 1}}
        assert machine.book.of_instances[world.u(name)].addresses == (address,)
    assert not found.is_reshaped
    assert {name: each[0] for name, each in offers(machine).items() if name != NIC} == {
        CARD.upper(): {GPU: (1, 0)},
        OTHER.upper(): {GPU: (1, 0)},
    }
    assert [pool.count for pool in found.facts.pci_pools if pool.vendor_id == "10de"] == [0, 0]
    world.network.asked.clear()
    machine.update(is_startup=False)
    assert machine.writes() == []


def test_allocation_of_the_wrong_device_is_corrected(machine, world):
    devices_of = spawn_untracked(machine, world, "one")
    machine.start()
    machine.update()
    (address,) = devices_of[world.u("one")]
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


def test_healing_replaces_one_wrong_allocation_per_missing_device(machine, world):
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
def test_driver_reshape_and_device_healing_share_one_request(machine, world, is_counting):
    machine.script = script(*DEVICES[:2], gpu=(Gpu(name="gpu0", vgpus=2),))
    devices_of = spawn_untracked(machine, world, "one", VGPU=1)
    machine.counts_devices = is_counting
    machine.start("gpus")
    world.network.asked.clear()
    assert machine.update().is_reshaped
    assert world.network.paths("POST").count("/reshaper") == 1
    part = next(each["uuid"] for each in machine.records() if each["name"] == f"{machine.host}_gpu0")
    device_allocations = {uuid_of(machine, address): {GPU: 1} for address in devices_of[world.u("one")] if is_counting}
    assert world.held("one") == {world.u(HOST): {"VCPU": 1}, part: {"VGPU": 1}, **device_allocations}
    machine.start("gpus")
    world.network.asked.clear()
    assert not machine.update().is_reshaped
    assert machine.writes() == []


def test_class_change_of_an_allocated_device_fails_the_start(machine, world):
    spawn_untracked(machine, world, "one")
    machine.start()
    machine.update()
    machine.device_specs = ('{"resource_class": "other"}',)
    machine.start()
    with pytest.raises(InUse):
        machine.update()


def test_guest_without_device_allocation_gets_one_at_the_next_update(machine, world):
    machine.start()
    machine.update()
    world.hold("one", **{HOST: {"VCPU": 1}})
    use = machine.tracker.use(machine.host).claim(world.u("one"), GuestNeeds(pci=(card(),))).use
    machine.book.of_instances[world.u("one")] = use
    assert use.addresses == (CARD,)
    machine.update(is_startup=False)
    assert world.held("one")[uuid_of(machine, CARD)] == {GPU: 1}


@pytest.mark.parametrize("holder", [None, "the move"])
def test_device_of_a_guest_without_allocation_is_reserved(machine, world, holder):
    machine.start()
    machine.update()
    if holder is not None:  # The devices of an instance that migrates away belong to its migration.
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


def test_start_fails_when_the_devices_of_a_guest_are_unknown(machine, world):
    machine.book.of_instances[world.u("one")] = GuestUse(
        devices=(PciPool(vendor_id="10de", product_id="1db4", count=2),)
    )
    machine.start()
    with pytest.raises(BadSettings, match=rf"cannot be switched on: {world.u('one')} has 2 PCI devices of node"):
        machine.update()
    assert world.network.paths("POST") == []


def test_unknown_guest_devices_are_accepted_while_tracking_is_off(machine, world):
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
def test_agent_that_dies_at_any_write_finishes_after_a_restart(world, layout, number, is_done):
    machine = Machine(world, script(*DEVICES[:2], gpu=(Gpu(name="gpu0", vgpus=2),)))
    devices_of = spawn_untracked(machine, world, "one")
    machine.start(layout)
    with death_at_write(world.network, number, is_done=is_done) as deaths, suppress(AgentDeath):
        machine.update()
    assert deaths or number > 5
    machine.start(layout)
    machine.update()
    (address,) = devices_of[world.u("one")]
    assert world.held("one") == {world.u(HOST): {"VCPU": 1}, uuid_of(machine, address): {GPU: 1}}
    children = offers(machine)
    assert [children.pop(name) for name in (CARD.upper(), OTHER.upper())] == [({GPU: (1, 0)}, OURS)] * 2
    assert [*children] == (["gpu0"] if layout == "gpus" else [])
    world.network.asked.clear()
    machine.update(is_startup=False)
    assert machine.writes() == []


@contextmanager
def death_at_write(network, number, *, is_done):
    """Kill the client at one of its writes, before or after it is applied; yield the path of that write."""
    inner, written, deaths = network.inner, [], []

    class DeadlyHttp:
        def ask(self, method, path, body=None, *, version):
            written.extend([path] if method != "GET" else [])
            is_last = method != "GET" and len(written) == number
            if not is_last or is_done:
                answer = inner.ask(method, path, body, version=version)
            if is_last:
                deaths.append(path)
                raise AgentDeath
            return answer

    network.inner = DeadlyHttp()
    try:
        yield deaths
    finally:
        network.inner = inner


def test_claim_during_healing_causes_another_try(machine, world):
    devices_of = spawn_untracked(machine, world, "one")
    machine.start()
    machine.claim_before("POST", "/reshaper", times=2, VCPU=1)
    machine.update()
    (address,) = devices_of[world.u("one")]
    assert world.held("one")[uuid_of(machine, address)] == {GPU: 1}
    assert world.held("claimer 1") == {world.u(HOST): {"VCPU": 1}}


def test_losing_every_healing_race_does_not_end_the_agent(machine, world):
    spawn_untracked(machine, world, "one")
    machine.start()
    machine.claim_before("POST", "/reshaper", times=machine.terms.reshape_tries, VCPU=1)
    assert machine.update() is None
    assert machine.update() is not None
    assert len(world.held("one")) == 2


def test_update_after_a_lost_reply_finds_the_healing_done(machine, world):
    spawn_untracked(machine, world, "one")
    machine.start()
    world.network.lose("POST", "/reshaper", is_done=True, times=4)
    assert machine.update() is None
    assert machine.update() is not None
    assert len(world.held("one")) == 2
