import os
import threading

import pytest

from roost.compute.driver import load
from roost.compute.drivers.fake.guests import FolderShelf
from roost.compute.drivers.fake.script import FakeNode, Gpu, Script
from roost.errors import BadSettings, BuildAborted, BuildFailed, DriverNotReady, NotFound, Unavailable
from roost.model.devices.numa import NumaCell
from roost.model.devices.topology import InstanceCell, PlacedCell
from roost.model.work.agent_terms import PciDevice
from tests.support.agents.driver_doubles import fake_driver, spec_of, tree_of
from tests.support.fleets.devices import pci_request
from tests.support.fleets.worlds import uuid_named
from tests.support.servers.clusters import guests_on

GUEST = uuid_named("guest")


def start_driver(folder, host):
    driver = load("fake", {"state": str(folder)})
    driver.start(host)
    return driver


def test_guests_in_a_shared_folder_survive_restarts_and_migrate(tmp_path):
    source, target = start_driver(tmp_path, "host-a"), start_driver(tmp_path, "host-b")
    source.spawn(spec_of(), "op-1")
    source = start_driver(tmp_path, "host-a")
    assert [(found.uuid, found.state) for found in source.guests()] == [(GUEST, "running")]
    transfer = target.prepare(spec_of(node="host-b"), "op-2")
    target = start_driver(tmp_path, "host-b")
    source.live_migrate(GUEST, transfer)
    assert [(found.operation, found.state) for found in target.guests()] == [("op-2", "running")]
    assert (source.guests(), start_driver(tmp_path, "host-a").guests()) == ([], [])
    target.power(GUEST, is_on=False)
    image = start_driver(tmp_path, "host-b").save(GUEST)
    source.spawn(spec_of("second", image=image), "op-3")
    assert source.console(uuid_named("second")).splitlines() == [
        "image cirros",
        "built on host-a",
        "left host-a",
        "arrived on host-b",
        "stopped on host-b",
        "built on host-a",
    ]


def test_live_migrated_guest_is_listed_on_one_host_only(tmp_path):
    source, target = start_driver(tmp_path, "host-a"), start_driver(tmp_path, "host-b")
    source.spawn(spec_of(), "op-1")
    transfer = target.prepare(spec_of(node="host-b"), "op-2")
    assert guests_on(tmp_path) == {GUEST: [("host-a", "running")]}
    source.live_migrate(GUEST, transfer)
    assert guests_on(tmp_path) == {GUEST: [("host-b", "running")]}
    assert len(target.guests()) == 1
    assert guests_on(tmp_path) == {GUEST: [("host-b", "running")]}
    target.discard(GUEST, "op-2")
    assert guests_on(tmp_path) == {}


def test_hosts_of_one_process_can_migrate_without_a_folder():
    drivers = [load("fake", {}), load("fake", {})]
    for driver, host in zip(drivers, ("together-1", "together-2"), strict=True):
        driver.start(host)
    drivers[0].spawn(spec_of(node="together-1"), "op-1")
    drivers[0].live_migrate(GUEST, drivers[1].prepare(spec_of(node="together-2"), "op-2"))
    assert [len(driver.guests()) for driver in drivers] == [0, 1]
    drivers[1].destroy(GUEST, "op-3")


def test_live_migrated_guest_can_be_prepared_for_another_move(tmp_path):
    source, target = start_driver(tmp_path, "host-a"), start_driver(tmp_path, "host-b")
    source.spawn(spec_of(), "op-1")
    source.live_migrate(GUEST, target.prepare(spec_of(node="host-b"), "op-2"))
    transfer = target.prepare(spec_of(node="host-b"), "op-3")
    target.power(GUEST, is_on=False)
    target.send_disk(GUEST, transfer)
    target.finish(spec_of(node="host-b"), "op-3")
    assert [(found.operation, found.state) for found in target.guests()] == [("op-3", "running")]


def test_live_migration_leaves_nothing_on_the_source(tmp_path):
    source, target = start_driver(tmp_path, "host-a"), start_driver(tmp_path, "host-b")
    source.spawn(spec_of(), "op-1")
    source.prepare(spec_of(), "op-2")
    source.live_migrate(GUEST, target.prepare(spec_of(node="host-b"), "op-3"))
    assert (source.guests(), len(target.guests())) == ([], 1)


def test_host_names_need_not_be_valid_file_names(tmp_path):
    for host in ("../a", "a/b", "ä b"):
        start_driver(tmp_path / "state", host).spawn(spec_of(node=host), "op-1")
        assert len(start_driver(tmp_path / "state", host).guests()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["state"]


def test_unwritable_or_corrupt_state_is_named_in_the_error(tmp_path):
    (tmp_path / "file").write_text("")
    driver = start_driver(tmp_path / "none", "host-a")
    with pytest.raises(Unavailable, match=r"cannot (read|write) .*file"):
        start_driver(tmp_path / "file", "host-a")
    driver.spawn(spec_of(), "op-1")
    for damaged in (b"{", b"", b'{"guests": {"\xff": 1}}'):
        (tmp_path / "none" / "hosts" / "host-a.json").write_bytes(damaged)
        with pytest.raises(DriverNotReady, match=r"^the fake driver's state of host host-a is malformed"):
            start_driver(tmp_path / "none", "host-a")
    FolderShelf(tmp_path / "none").save_image("saved-x", b"{}")
    with pytest.raises(BuildAborted, match=r"^image saved-x of the fake driver is malformed"):
        driver.spawn(spec_of(image="saved-x"), "op-2")


def migrate_away(driver, other):
    """Live-migrate a guest; if that fails, discard it at the target."""
    transfer = other.prepare(spec_of(node="host-b"), "op-4")
    try:
        driver.live_migrate(GUEST, transfer)
    except DriverNotReady:
        other.discard(GUEST, "op-4")
        raise


ACTS = {
    "spawn": lambda driver, _: driver.spawn(spec_of("second"), "op-4"),
    "destroy": lambda driver, _: driver.destroy(GUEST, "op-4"),
    "power": lambda driver, _: driver.power(GUEST, is_on=False),
    "rebuild": lambda driver, _: driver.rebuild(spec_of(is_on=False), "op-4"),
    "prepare": lambda driver, _: driver.prepare(spec_of("second"), "op-4"),
    "discard": lambda driver, _: driver.discard(GUEST, "op-1"),
    "live_migrate": migrate_away,
}


@pytest.mark.parametrize("act", ACTS)
def test_call_with_a_failed_write_changes_nothing_and_can_be_repeated(act, tmp_path):
    driver, other = start_driver(tmp_path, "host-a"), start_driver(tmp_path, "host-b")
    driver.spawn(spec_of(), "op-1")
    before = (driver.guests(), driver.console(GUEST), other.guests())
    blocker = tmp_path / "hosts" / f"host-a.{os.getpid()}.new"
    blocker.mkdir()
    for _ in range(2):
        with pytest.raises(DriverNotReady, match="cannot write"):
            ACTS[act](driver, other)
        for each in (driver, start_driver(tmp_path, "host-a")):
            assert (each.guests(), each.console(GUEST), other.guests()) == before
    blocker.rmdir()
    ACTS[act](driver, other)
    assert driver.guests() == start_driver(tmp_path, "host-a").guests()
    assert (driver.guests(), other.guests()) != (before[0], before[2])


def test_dropping_a_saved_image_removes_its_partial_files(tmp_path):
    assert start_driver(tmp_path / "none", "host-a").saved_images() == []
    one, other = start_driver(tmp_path, "host-a"), start_driver(tmp_path, "host-b")
    for name in ("guest", "other"):
        one.spawn(spec_of(name, is_on=False), "op-1")
        one.save(uuid_named(name))
    images, partial = tmp_path / "images", uuid_named("begun")
    (images / f"saved-{GUEST}.77.new").write_text("[")
    (images / f"saved-{partial}.77.new").write_text("[")
    (images / "saved-debian.json").write_text("[]")
    (images / "debian.json").write_text("[]")
    assert other.saved_images() == sorted([GUEST, partial, uuid_named("other")])
    for uuid in (GUEST, partial, GUEST):
        other.drop_saved_image(uuid)
    assert one.saved_images() == [uuid_named("other")]
    remaining = ["debian.json", "saved-debian.json", f"saved-{uuid_named('other')}.json"]
    assert sorted(path.name for path in images.iterdir()) == sorted(remaining)


def test_missing_saved_image_aborts_the_build():
    with pytest.raises(BuildAborted, match="there is no image saved-nothing"):
        fake_driver().spawn(spec_of(image="saved-nothing"), "op-1")


def test_guest_is_not_built_without_enough_free_vgpus():
    driver = fake_driver(Script(node=(FakeNode(gpu=(Gpu(name="gpu0", vgpus=1),)),)))
    driver.spawn(spec_of("first", held={"VCPU": 1, "VGPU": 1}), "op-1")
    with pytest.raises(BuildFailed, match=r"^node host-a has no 1 VGPU left for guest"):
        driver.spawn(spec_of("second", held={"VGPU": 1}), "op-2")
    assert len(driver.guests()) == 1
    driver.destroy(uuid_named("first"), "op-3")
    driver.spawn(spec_of("second", held={"VGPU": 1}), "op-2")


def test_guest_gets_the_given_devices_or_else_free_ones(tmp_path):
    cards = tuple(PciDevice(address=f"0000:0{n}:00.0", vendor_id="8086", product_id="a") for n in (1, 2))
    driver = fake_driver(Script(node=(FakeNode(pci=cards),)), shelf=FolderShelf(tmp_path))
    first, second = cards[0].address, cards[1].address
    driver.spawn(spec_of("told", devices=(second,)), "op-1")
    driver.spawn(spec_of("asks", pci=(pci_request(),)), "op-1")
    assert driver.resources("host-a").pci_in_use == {uuid_named("told"): (second,), uuid_named("asks"): (first,)}
    with pytest.raises(BuildFailed, match=f"another guest has device {first}"):
        driver.prepare(spec_of("more", devices=(first,)), "op-1")
    with pytest.raises(BuildFailed, match="the host has no device card for guests"):
        driver.spawn(spec_of("more", devices=("card",)), "op-1")
    driver.rebuild(spec_of("asks", pci=(pci_request(),)), "op-2")
    driver.rebuild(spec_of("told", devices=(second,)), "op-2")
    assert driver.resources("host-a").pci_in_use == {uuid_named("told"): (second,), uuid_named("asks"): (first,)}
    driver.spawn(spec_of("late", pci=(pci_request(),)), "op-1")
    assert uuid_named("late") not in driver.resources("host-a").pci_in_use
    driver.destroy(uuid_named("asks"), "op-3")
    driver.prepare(spec_of("asks", devices=(first,)), "op-4")
    driver.discard(uuid_named("asks"), "op-4")
    assert driver.resources("host-a").pci_in_use == {uuid_named("told"): (second,)}


def test_devices_of_a_guest_are_those_of_its_node():
    card = PciDevice(address="0000:01:00.0", vendor_id="8086", product_id="a")
    nodes = tuple(FakeNode(name=f"{{host}}-{n}", pci=(card,)) for n in (1, 2))
    driver = fake_driver(Script(node=nodes))
    for name, node in (("one", "host-a-1"), ("two", "host-a-2")):
        driver.spawn(spec_of(name, node, devices=(card.address,)), "op-1")
        assert driver.resources(node).pci_in_use == {uuid_named(name): (card.address,)}


@pytest.mark.parametrize("devices", [("0000:02:00.0",), ()])
def test_finish_uses_the_given_devices_or_else_the_prepared_ones(tmp_path, devices):
    cards = tuple(PciDevice(address=f"0000:0{n}:00.0", vendor_id="8086", product_id="a") for n in (1, 2))
    source, target = (
        fake_driver(Script(node=(FakeNode(pci=cards),)), host, shelf=FolderShelf(tmp_path))
        for host in ("host-a", "host-b")
    )
    source.spawn(spec_of(), "op-1")
    source.power(GUEST, is_on=False)
    source.send_disk(GUEST, target.prepare(spec_of(node="host-b", devices=(cards[0].address,)), "op-2"))
    target.finish(spec_of(node="host-b", devices=devices), "op-2")
    assert target.resources("host-b").pci_in_use == {GUEST: devices or (cards[0].address,)}


def test_a_guest_is_built_on_a_node_of_its_host():
    driver = fake_driver(Script(node=(FakeNode(name="{host}-1"), FakeNode(name="{host}-2"))))
    assert driver.nodes() == ["host-a-1", "host-a-2"]
    driver.spawn(spec_of(node="host-a-2"), "op-1")
    assert [driver.resources(node).vcpus_used for node in driver.nodes()] == [0, 1]
    with pytest.raises(BuildFailed, match="host host-a has no node host-b-1"):
        driver.spawn(spec_of("other", "host-b-1"), "op-1")
    with pytest.raises(NotFound, match="host host-a has no node host-b-1"):
        driver.resources("host-b-1")


def test_duplicate_node_names_are_refused():
    with pytest.raises(BadSettings, match="two nodes of host host-a have the same name; nodes: host-a"):
        fake_driver(Script(node=(FakeNode(), FakeNode(name="host-a"))))


def test_reshape_follows_the_cells_chosen_for_a_guest():
    cells = (NumaCell(id=0, memory_mb=4096, cpus=(0, 1)), NumaCell(id=3, memory_mb=1024, cpus=(2, 3)))
    node = FakeNode(cell=cells)
    tree, held = tree_of("host-a"), {"VCPU": 1, "MEMORY_MB": 512}
    flat = fake_driver(Script(node=(node,)))
    flat.update_provider_tree(tree, "host-a")
    placed = PlacedCell(cell=InstanceCell(id=0, cpus=frozenset({0}), memory_mb=512), host_cell=3)
    flat.spawn(spec_of(held=held, cells=(placed,)), "op-1")
    allocations = {GUEST: {"allocations": {uuid_named("host-a"): {"resources": {**held}}}}}
    numa = fake_driver(Script(layout="numa", node=(node,)), shelf=flat._shelf)
    numa.update_provider_tree(tree, "host-a", allocations)
    assert allocations[GUEST]["allocations"] == {tree.data("host-a_numa3").uuid: {"resources": held}}


def test_threads_build_and_destroy_guests_concurrently():
    driver = fake_driver(Script(node=(FakeNode(gpu=(Gpu(name="gpu0", vgpus=8),)),)))
    failures = []

    def work(number):
        for turn in range(20):
            spec = spec_of(f"guest{number}", held={"VGPU": 1})
            try:
                driver.spawn(spec, f"op-{turn}")
            except BuildFailed as error:
                failures.append(error)
            driver.destroy(spec.uuid, f"gone-{turn}")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (failures, driver.guests()) == ([], [])


def test_guest_can_migrate_back_and_away_again_without_a_scan(tmp_path):
    one, two = start_driver(tmp_path, "host-a"), start_driver(tmp_path, "host-b")
    one.spawn(spec_of(), "op-1")
    one.live_migrate(GUEST, two.prepare(spec_of(node="host-b"), "op-2"))
    two.live_migrate(GUEST, one.prepare(spec_of(), "op-3"))
    one.live_migrate(GUEST, two.prepare(spec_of(node="host-b"), "op-4"))
    assert (one.guests(), [each.operation for each in two.guests()]) == ([], ["op-4"])
