"""The contract of every driver. A rig connects a driver to the tests: hosts that can reach each other."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from roost.compute.driver import load, read_resources
from roost.errors import BuildAborted, BuildFailed, Conflict, NotFound
from roost.model.work.agent_terms import Capabilities, NodeResources
from tests.support.agents.driver_doubles import FakeRig, tree_of
from tests.support.agents.libvirt_hosts import LibvirtRig
from tests.support.fleets.worlds import uuid_named

RIGS = {rig.name: rig for rig in (FakeRig, LibvirtRig)}
GUEST = uuid_named("guest")


@pytest.fixture(params=[*RIGS])
def rig(request):
    """Return the rig of each driver."""
    return RIGS[request.param]()


def states(driver):
    """Return uuid, operation and state of each guest."""
    return [(each.uuid, each.operation, each.state) for each in driver.guests()]


# --- nodes ---


def test_driver_is_loaded_by_its_name(rig):
    assert isinstance(rig.driver(), type(load(rig.name, {})))
    capabilities = rig.driver().capabilities
    assert isinstance(capabilities, Capabilities)
    assert (capabilities.can_live_migrate, capabilities.can_save) == (rig.can_live_migrate, True)


def test_nodes_have_resources_and_are_not_gone(rig):
    driver = rig.driver()
    assert driver.nodes()
    for node in driver.nodes():
        resources = driver.resources(node)
        assert isinstance(resources, NodeResources)
        assert read_resources(node, resources) is resources
        assert (resources.vcpus > 0, resources.memory_mb > 0, resources.local_gb > 0) == (True, True, True)
        assert (resources.vcpus_used, resources.memory_mb_used, resources.local_gb_used) == (0, 0, 0)
        assert not driver.is_node_gone(node)
        assert all(isinstance(value, float) for value in driver.metrics(node).values())
    assert driver.is_node_gone("nobody")


def test_unknown_node_is_not_found(rig):
    driver = rig.driver()
    for act in (driver.resources, driver.metrics, lambda node: driver.update_provider_tree(tree_of(node), node)):
        with pytest.raises(NotFound, match="nobody"):
            act("nobody")


def test_new_node_has_vcpu_memory_and_disk_and_no_empty_class(rig):
    driver = rig.driver()
    for node in driver.nodes():
        tree = tree_of(node)
        driver.update_provider_tree(tree, node)
        inventories = [tree.data(uuid).inventory for uuid in tree.get_provider_uuids()]
        assert {"VCPU", "MEMORY_MB", "DISK_GB"} <= {name for each in inventories for name in each}
        assert all(record["total"] > 0 for each in inventories for record in each.values())
        assert all(0 <= record["reserved"] <= record["total"] for each in inventories for record in each.values())


@pytest.mark.shows("S116")
def test_second_tree_update_changes_nothing(rig):
    driver = rig.driver()
    (node, *_) = driver.nodes()
    tree = tree_of(node)
    for _ in range(2):
        driver.update_provider_tree(tree, node)
        before = [tree.data(uuid) for uuid in tree.get_provider_uuids()]
    assert [tree.data(uuid) for uuid in tree.get_provider_uuids()] == before
    allocations = {}
    driver.update_provider_tree(tree, node, allocations)
    assert ([tree.data(uuid) for uuid in tree.get_provider_uuids()], allocations) == (before, {})


def test_foreign_providers_and_traits_in_the_tree_are_not_changed(rig):
    driver = rig.driver()
    (node, *_) = driver.nodes()
    tree = tree_of(node)
    tree.new_child("somebody's", node, uuid_named("somebody's"))
    tree.new_root("pool", uuid_named("pool"))
    tree.update_inventory("pool", {"DISK_GB": {"total": 9}})
    tree.update_inventory("somebody's", {"CUSTOM_A": {"total": 9}})
    tree.add_traits(node, "CUSTOM_MINE")
    before = [tree.data("somebody's"), tree.data("pool")]
    driver.update_provider_tree(tree, node)
    assert [tree.data("somebody's"), tree.data("pool")] == before
    assert tree.has_traits(node, ["CUSTOM_MINE"])


# --- guests that stay ---


def test_spawned_guest_runs_and_is_listed(rig):
    driver, spec = rig.driver(), rig.spec()
    assert (driver.inspect(GUEST), driver.guests()) == (None, [])
    driver.spawn(spec, "op-1")
    assert states(driver) == [(GUEST, "op-1", "running")]
    assert driver.inspect(GUEST) == driver.guests()[0]
    assert driver.inspect(GUEST).node == spec.node


def test_guest_with_power_off_is_spawned_stopped(rig):
    driver = rig.driver()
    driver.spawn(rig.spec(is_on=False), "op-1")
    assert states(driver) == [(GUEST, "op-1", "stopped")]


def test_second_spawn_by_the_same_operation_changes_nothing(rig):
    driver = rig.driver()
    driver.spawn(rig.spec(), "op-1")
    driver.power(GUEST, is_on=False)
    driver.spawn(rig.spec(), "op-1")
    assert states(driver) == [(GUEST, "op-1", "stopped")]


def test_spawn_by_another_operation_replaces_the_guest(rig):
    driver = rig.driver()
    driver.spawn(rig.spec(), "op-1")
    driver.spawn(rig.spec(), "op-2")
    assert states(driver) == [(GUEST, "op-2", "running")]


def test_guests_are_listed_by_uuid_with_their_used_resources(rig):
    driver = rig.driver()
    specs = [rig.spec(name) for name in "cab"]
    for spec in specs:
        driver.spawn(spec, "op-1")
    assert [each.uuid for each in driver.guests()] == sorted(spec.uuid for spec in specs)
    resources = driver.resources(specs[0].node)
    assert (resources.vcpus_used, resources.memory_mb_used, resources.local_gb_used) == (3, 1536, 3)


def test_destroyed_guest_is_gone_and_can_be_destroyed_again(rig):
    driver = rig.driver()
    driver.destroy(GUEST, "op-0")
    driver.spawn(rig.spec(), "op-1")
    for operation in ("op-2", "op-2", "op-3"):
        driver.destroy(GUEST, operation)
        assert (driver.inspect(GUEST), driver.guests()) == (None, [])


def test_stop_and_start_can_be_repeated(rig):
    driver = rig.driver()
    driver.spawn(rig.spec(), "op-1")
    for is_on, state in ((False, "stopped"), (False, "stopped"), (True, "running"), (True, "running")):
        driver.power(GUEST, is_on=is_on)
        assert states(driver) == [(GUEST, "op-1", state)]


def test_guest_is_rebuilt_once_per_operation(rig):
    driver = rig.driver()
    driver.spawn(rig.spec(), "op-1")
    driver.rebuild(rig.spec(is_on=False), "op-2")
    assert states(driver) == [(GUEST, "op-2", "stopped")]
    driver.power(GUEST, is_on=True)
    driver.rebuild(rig.spec(is_on=False), "op-2")
    assert states(driver) == [(GUEST, "op-2", "running")]


def test_acts_on_an_unknown_guest_raise_not_found(rig):
    driver, spec = rig.driver(), rig.spec()
    to = rig.driver("host-b").prepare(rig.spec(host="host-b"), "op-1")
    for act in (
        lambda: driver.power(GUEST, is_on=True),
        lambda: driver.rebuild(spec, "op-1"),
        lambda: driver.send_disk(GUEST, to),
        lambda: driver.live_migrate(GUEST, to),
        lambda: driver.save(GUEST),
        lambda: driver.console(GUEST),
    ):
        with pytest.raises(NotFound, match=GUEST):
            act()
    driver.abort_migration(GUEST)
    driver.discard(GUEST, "op-1")
    assert driver.guests() == []


def test_guests_are_found_after_a_restart(rig):
    rig.driver().spawn(rig.spec(), "op-1")
    rig.driver().spawn(rig.spec("other", is_on=False), "op-2")
    before = rig.driver().guests()
    assert len(before) == 2
    assert rig.restarted().guests() == before
    rig.driver().spawn(rig.spec(), "op-1")
    assert rig.driver().guests() == before


def test_saved_guest_is_spawned_from_its_image_on_another_host(rig):
    driver, other = rig.driver(), rig.driver("host-b")
    driver.spawn(rig.spec(), "op-1")
    with pytest.raises(Conflict, match="stop it first"):
        driver.save(GUEST)
    driver.power(GUEST, is_on=False)
    image = driver.save(GUEST)
    assert driver.save(GUEST) == image
    driver.destroy(GUEST, "op-2")
    other.spawn(rig.spec(host="host-b", image=image), "op-3")
    assert states(other) == [(GUEST, "op-3", "running")]


def test_saved_images_are_visible_on_all_hosts_until_dropped(rig):
    driver, other = rig.driver(), rig.driver("host-b")
    assert driver.saved_images() == []
    images = {}
    for name in "cab":
        driver.spawn(rig.spec(name, is_on=False), "op-1")
        images[name] = driver.save(uuid_named(name))
        driver.destroy(uuid_named(name), "op-2")
    assert driver.saved_images() == other.saved_images() == sorted(map(uuid_named, "abc"))
    for each in (driver, other, driver, rig.restarted()):
        each.drop_saved_image(uuid_named("a"))
        assert driver.saved_images() == other.saved_images() == sorted(map(uuid_named, "bc"))
    with pytest.raises(BuildAborted, match=images["a"]):
        other.spawn(rig.spec("a", host="host-b", image=images["a"]), "op-3")
    other.spawn(rig.spec("b", host="host-b", image=images["b"]), "op-3")
    assert states(other) == [(uuid_named("b"), "op-3", "running")]


def test_dropping_a_saved_image_does_not_touch_the_guest(rig):
    driver = rig.driver()
    driver.spawn(rig.spec(is_on=False), "op-1")
    driver.save(GUEST)
    driver.drop_saved_image(GUEST)
    assert (driver.saved_images(), states(driver)) == ([], [(GUEST, "op-1", "stopped")])
    driver.save(GUEST)
    assert driver.saved_images() == [GUEST]


def test_hosts_can_drop_saved_images_concurrently(rig):
    hosts = ["host-a", "host-b", "host-c", "host-d"]
    drivers = [rig.driver(host) for host in hosts]
    names = [f"guest {number}" for number in range(20)]
    for name in names:
        drivers[0].spawn(rig.spec(name, is_on=False), "op-1")
        drivers[0].save(uuid_named(name))

    def drop_all(driver):
        for uuid in driver.saved_images():
            driver.drop_saved_image(uuid)
        return driver.saved_images()

    with ThreadPoolExecutor(len(drivers)) as pool:
        assert [*pool.map(drop_all, drivers)] == [[]] * len(drivers)


def test_console_contains_guest_output(rig):
    driver = rig.driver()
    if not driver.capabilities.has_console:
        pytest.skip("it has no console")
    driver.spawn(rig.spec(), "op-1")
    assert driver.console(GUEST)


# --- guests that move ---


def test_stopped_guest_moves_to_another_host(rig):
    source, target = rig.driver(), rig.driver("host-b")
    source.spawn(rig.spec(), "op-1")
    arriving = rig.spec(host="host-b")
    to = target.prepare(arriving, "op-2")
    assert target.prepare(arriving, "op-2") == to
    assert (to.uuid, to.node) == (GUEST, arriving.node)
    assert states(target) == [(GUEST, "op-2", "prepared")]
    with pytest.raises(Conflict, match="stop it first"):
        source.send_disk(GUEST, to)
    source.power(GUEST, is_on=False)
    for _ in range(2):
        source.send_disk(GUEST, to)
    for _ in range(2):
        target.finish(arriving, "op-2")
    assert states(source) == [(GUEST, "op-1", "stopped")]
    assert states(target) == [(GUEST, "op-2", "running")]
    assert target.prepare(arriving, "op-2") == to
    assert states(target) == [(GUEST, "op-2", "running")]
    source.destroy(GUEST, "op-2")
    assert (source.guests(), states(target)) == ([], [(GUEST, "op-2", "running")])


def test_move_can_be_undone_at_any_point(rig):
    source, target = rig.driver(), rig.driver("host-b")
    source.spawn(rig.spec(), "op-1")
    arriving = rig.spec(host="host-b")
    for acts in range(4):
        operation = f"move-{acts}"
        to = target.prepare(arriving, operation)
        for act in [
            lambda: source.power(GUEST, is_on=False),
            lambda to=to: source.send_disk(GUEST, to),
            lambda operation=operation: target.finish(arriving, operation),
        ][:acts]:
            act()
        for _ in range(2):
            target.discard(GUEST, operation)
        source.power(GUEST, is_on=True)
        assert (target.guests(), states(source)) == ([], [(GUEST, "op-1", "running")])


def test_finish_needs_a_prepared_and_arrived_guest(rig):
    target, arriving = rig.driver("host-b"), rig.spec(host="host-b")
    with pytest.raises(BuildFailed, match="prepared"):
        target.finish(arriving, "op-2")
    target.prepare(arriving, "op-2")
    with pytest.raises(BuildFailed, match="arrived"):
        target.finish(arriving, "op-2")
    with pytest.raises(BuildFailed, match="prepared"):
        target.finish(arriving, "op-3")
    assert states(target) == [(GUEST, "op-2", "prepared")]


def test_disk_sent_for_an_earlier_operation_is_not_used_by_a_later_one(rig):
    source, target, arriving = rig.driver(), rig.driver("host-b"), rig.spec(host="host-b")
    source.spawn(rig.spec(is_on=False), "op-1")
    source.send_disk(GUEST, target.prepare(arriving, "op-2"))
    target.prepare(arriving, "op-3")
    with pytest.raises(BuildFailed, match="arrived"):
        target.finish(arriving, "op-3")


def test_guest_stays_on_the_source_when_the_target_no_longer_awaits_it(rig):
    source, target, arriving = rig.driver(), rig.driver("host-b"), rig.spec(host="host-b")
    source.spawn(rig.spec(), "op-1")
    to = target.prepare(arriving, "op-2")
    target.discard(GUEST, "op-2")
    with pytest.raises((BuildFailed, BuildAborted)):
        source.live_migrate(GUEST, to)
    source.power(GUEST, is_on=False)
    with pytest.raises(BuildFailed):
        source.send_disk(GUEST, to)
    assert (states(source), target.guests()) == ([(GUEST, "op-1", "stopped")], [])


def test_discard_does_not_touch_another_operation(rig):
    target, arriving = rig.driver("host-b"), rig.spec(host="host-b")
    target.prepare(arriving, "op-2")
    target.discard(GUEST, "op-1")
    assert states(target) == [(GUEST, "op-2", "prepared")]
    target.spawn(arriving, "op-3")
    target.discard(GUEST, "op-2")
    assert states(target) == [(GUEST, "op-3", "running")]


def test_guest_moves_to_its_own_host_and_back(rig):
    driver, spec = rig.driver(), rig.spec()
    driver.spawn(spec, "op-1")
    to = driver.prepare(spec, "op-2")
    assert states(driver) == [(GUEST, "op-1", "running")]
    driver.power(GUEST, is_on=False)
    driver.send_disk(GUEST, to)
    driver.finish(spec, "op-2")
    assert states(driver) == [(GUEST, "op-2", "running")]
    driver.discard(GUEST, "op-2")
    assert states(driver) == [(GUEST, "op-1", "stopped")]


def test_settled_move_to_the_same_host_leaves_nothing_behind(rig):
    driver, spec = rig.driver(), rig.spec()
    driver.spawn(spec, "op-1")
    for number in (2, 3):
        to = driver.prepare(spec, f"op-{number}")
        driver.power(GUEST, is_on=False)
        driver.send_disk(GUEST, to)
        driver.finish(spec, f"op-{number}")
        driver.settle(GUEST, "op-1")
        driver.settle(GUEST, f"op-{number}")
        assert states(driver) == [(GUEST, f"op-{number}", "running")]
    driver.settle(GUEST, "op-3")
    driver.power(GUEST, is_on=False)
    driver.discard(GUEST, "op-3")
    assert driver.guests() == []


def test_running_guest_moves_to_another_host(rig):
    if not rig.can_live_migrate:
        pytest.skip("its guests cannot move while they run")
    source, target = rig.driver(), rig.driver("host-b")
    source.spawn(rig.spec(), "op-1")
    arriving = rig.spec(host="host-b")
    to = target.prepare(arriving, "op-2")
    for _ in range(2):
        source.live_migrate(GUEST, to)
        assert (source.inspect(GUEST), states(target)) == (None, [(GUEST, "op-2", "running")])
    target.finish(arriving, "op-2")
    assert states(target) == [(GUEST, "op-2", "running")]
    back = source.prepare(rig.spec(), "op-3")
    target.live_migrate(GUEST, back)
    source.finish(rig.spec(), "op-3")
    assert (states(source), target.guests()) == ([(GUEST, "op-3", "running")], [])


def test_live_migration_of_a_stopped_guest_is_refused(rig):
    source, target = rig.driver(), rig.driver("host-b")
    source.spawn(rig.spec(is_on=False), "op-1")
    with pytest.raises((Conflict, BuildAborted)):
        source.live_migrate(GUEST, target.prepare(rig.spec(host="host-b"), "op-2"))
    assert states(source) == [(GUEST, "op-1", "stopped")]


def test_move_continues_after_both_hosts_restart(rig):
    rig.driver().spawn(rig.spec(is_on=False), "op-1")
    arriving = rig.spec(host="host-b")
    to = rig.driver("host-b").prepare(arriving, "op-2")
    assert rig.restarted("host-b").prepare(arriving, "op-2") == to
    rig.restarted().send_disk(GUEST, to)
    rig.restarted("host-b").finish(arriving, "op-2")
    assert states(rig.driver("host-b")) == [(GUEST, "op-2", "running")]


# --- failures ---


@pytest.mark.parametrize(("kind", "error"), [("failed", BuildFailed), ("aborted", BuildAborted)])
def test_failed_spawn_leaves_nothing_behind(rig, kind, error):
    driver = rig.failing("spawn", kind)
    with pytest.raises(error):
        driver.spawn(rig.spec(), "op-1")
    assert (driver.guests(), driver.resources(rig.spec().node).vcpus_used) == ([], 0)
    driver.spawn(rig.spec(), "op-1")
    assert states(driver) == [(GUEST, "op-1", "running")]


def test_interrupted_spawn_is_listed_as_building_and_can_be_repeated(rig):
    driver = rig.failing("spawn", "crash")
    with pytest.raises(Exception, match="spawn"):
        driver.spawn(rig.spec(), "op-1")
    assert states(driver) == [(GUEST, "op-1", "building")]
    driver.spawn(rig.spec(), "op-1")
    assert states(driver) == [(GUEST, "op-1", "running")]


def test_interrupted_spawn_can_be_destroyed(rig):
    driver = rig.failing("spawn", "crash")
    with pytest.raises(Exception, match="spawn"):
        driver.spawn(rig.spec(), "op-1")
    driver.destroy(GUEST, "op-2")
    assert driver.guests() == []


@pytest.mark.parametrize("action", ["prepare", "finish"])
def test_move_that_failed_on_its_target_can_be_repeated(rig, action):
    rig.driver().spawn(rig.spec(is_on=False), "op-1")
    arriving, target = rig.spec(host="host-b"), rig.failing(action, "failed", "host-b")

    def act():
        rig.driver().send_disk(GUEST, target.prepare(arriving, "op-2"))
        target.finish(arriving, "op-2")

    with pytest.raises(BuildFailed):
        act()
    act()
    assert states(target) == [(GUEST, "op-2", "running")]


def test_guest_keeps_running_on_the_source_when_its_migration_fails(rig):
    if not rig.can_live_migrate:
        pytest.skip("its guests cannot move while they run")
    source, target = rig.failing("live_migrate", "failed"), rig.driver("host-b")
    source.spawn(rig.spec(), "op-1")
    to = target.prepare(rig.spec(host="host-b"), "op-2")
    with pytest.raises(BuildFailed):
        source.live_migrate(GUEST, to)
    assert states(source) == [(GUEST, "op-1", "running")]
    assert states(target) == [(GUEST, "op-2", "prepared")]
