"""Messages of the Icehouse scheduler about existing instances."""

import pytest

from roost.compat.exception import (
    ComputeServiceUnavailable,
    MigrationPreCheckError,
    NoValidHost,
    UnableToMigrateToSelf,
)
from roost.compat.icehouse.filter_scheduler import FilterScheduler
from roost.compat.icehouse.scheduler_manager import SchedulerManager
from roost.errors import BadRequest
from tests.support.conductors.deployments import TYPE, World, event_types, scheduler_over


def resize(driver, instance=None, **properties):
    SchedulerManager(driver).prep_resize(
        "context",
        {"id": "image"},
        {"instance_uuids": ["i0"], "instance_properties": {}},
        properties,
        instance or {"uuid": "i0", "vm_state": "stopped"},
        TYPE,
        ["reserved"],
    )


@pytest.mark.shows("S182")
def test_resize_is_sent_to_the_host_chosen_for_the_new_size():
    world = World()
    resize(scheduler_over(world, a=250, b=300))
    ((uuid, host, image, name, reservations, message),) = world.sent
    assert (uuid, host, image, name, reservations) == ("i0", "b", {"id": "image"}, "small", ["reserved"])
    assert message["node"] == "b-node"
    assert message["filter_properties"]["retry"] == {"num_attempts": 1, "hosts": [["b", "b-node"]]}
    assert world.seen[1].free_ram_mb == 200
    assert world.states == {}
    assert world.given_back == []


def test_resize_to_a_forced_host_has_no_retry():
    world = World()
    resize(scheduler_over(world, a=250), force_hosts=["a"])
    assert "retry" not in world.sent[0][-1]["filter_properties"]


@pytest.mark.shows("S182")
def test_resize_without_a_host_keeps_the_status_and_returns_the_quota():
    world = World()
    resize(scheduler_over(world))
    assert world.states == {"i0": ("stopped", None)}
    assert world.faults == {"i0": "No valid host was found."}
    assert event_types(world) == ["scheduler.prep_resize"]
    assert world.given_back == [["reserved"]]


def test_failed_resize_puts_the_instance_in_error():
    world = World(broken="a")
    with pytest.raises(RuntimeError, match="broken"):
        resize(scheduler_over(world, a=250))
    assert world.states == {"i0": ("error", None)}
    assert world.given_back == [["reserved"]]


RUNNING = {"uuid": "i0", "host": "a", "vm_state": "active", "instance_type": TYPE}


def migrate(driver, dest=None, instance=RUNNING):
    SchedulerManager(driver).live_migration("context", instance, dest, True, False)


@pytest.mark.shows("S182")
def test_live_migration_is_sent_to_the_source_with_the_destination_check():
    world = World()
    migrate(scheduler_over(world, a=900, b=300), "b")
    assert world.sent == [("i0", "a", "b", {"checked": "b", "block": True, "over_commit": False})]
    assert world.states == {}


@pytest.mark.shows("S182")
def test_live_migration_without_a_destination_tries_hosts_in_turn():
    world = World(up="abcd", cannot="bc")
    migrate(scheduler_over(world, a=900, b=800, c=700, d=600))
    assert [message[:3] for message in world.sent] == [("i0", "a", "d")]
    world = World(up="abcd", cannot="bcd")
    with pytest.raises(NoValidHost):
        migrate(scheduler_over(world, a=900, b=800, c=700, d=600))
    assert world.sent == []
    assert world.states == {"i0": ("active", None)}


@pytest.mark.parametrize(
    ("dest", "up", "error", "text"),
    [
        ("a", "ab", UnableToMigrateToSelf, r"Unable to migrate instance \(i0\) to current host \(a\)"),
        ("b", "a", ComputeServiceUnavailable, "Compute service of b is unavailable"),
        ("b", "b", ComputeServiceUnavailable, "Compute service of a is unavailable"),
        ("c", "abc", MigrationPreCheckError, "c has 99 MiB of memory free, and instance i0 needs 100 MiB"),
        ("d", "abd", MigrationPreCheckError, "d cannot"),
        ("e", "abe", MigrationPreCheckError, "the memory of e is unknown"),
    ],
)
def test_impossible_live_migration_leaves_the_instance_running(dest, up, error, text):
    world = World(up=up, cannot="d")
    with pytest.raises(error, match=text):
        migrate(scheduler_over(world, a=900, b=300, c=99, d=300), dest)
    assert world.sent == []
    assert world.states == {"i0": ("active", None)}
    assert event_types(world) == ["scheduler.live_migration"]


def test_broken_live_migration_puts_the_instance_in_error():
    world = World(broken="a")
    with pytest.raises(RuntimeError, match="broken"):
        migrate(scheduler_over(world, a=900, b=300), "b")
    assert world.states == {"i0": ("error", None)}


def test_live_migration_needs_host_and_type_of_the_instance():
    for missing in ("host", "instance_type"):
        with pytest.raises(BadRequest, match=f"the record of instance i0 has no {missing}"):
            migrate(scheduler_over(World(), a=900), "b", {name: RUNNING[name] for name in RUNNING if name != missing})


def test_live_migration_ends_if_the_driver_repeats_an_ignored_host():
    class Stubborn(FilterScheduler):
        def select_destinations(self, *_):
            return [{"host": "b", "nodename": "b", "limits": {}}]

    with pytest.raises(NoValidHost, match="The scheduler chose b, which must be ignored"):
        migrate(scheduler_over(World(cannot="b"), Stubborn, a=900))
