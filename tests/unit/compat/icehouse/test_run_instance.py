"""Messages of the Icehouse scheduler to run instances, and their effects."""

import logging
import random

import pytest

from roost.compat.exception import NoValidHost
from roost.compat.icehouse.caching_scheduler import CachingScheduler
from roost.compat.icehouse.chance import ChanceScheduler
from roost.compat.icehouse.deployment import Deployment
from roost.compat.icehouse.driver import Scheduler, handle_schedule_error
from roost.compat.icehouse.filter_scheduler import FilterScheduler
from roost.compat.icehouse.scheduler_manager import SchedulerManager
from roost.compat.objects import InstanceGroup
from roost.compat.scheduler.filters import BaseHostFilter
from roost.compat.scheduler.host_manager import HostManager, HostState
from roost.errors import BadRequest, Unavailable
from tests.support.conductors.deployments import TYPE, World, deployment_of, event_types, scheduler_over

START, END, FAILED = "scheduler.run_instance.start", "scheduler.run_instance.end", "scheduler.run_instance"


def run(driver, count=1, **properties):
    """Run instances; return the request spec and the filter properties afterwards."""
    request_spec = {
        "instance_uuids": [f"i{number}" for number in range(count)],
        "instance_properties": {"project_id": "p"},
        "instance_type": TYPE,
    }
    filter_properties = {"instance_type": TYPE, **properties}
    SchedulerManager(driver).run_instance(
        "context", request_spec, "password", ["file"], ["network"], True, filter_properties
    )
    return request_spec, filter_properties


def placements(world):
    return [(uuid, host) for uuid, host, *_ in world.sent]


class EmptyHostFilter(BaseHostFilter):
    """Accepts only empty hosts."""

    def host_passes(self, host_state, _spec_obj):
        """Return whether the host is empty."""
        return host_state.num_instances == 0


@pytest.mark.shows("S193")
def test_run_instance_calls_driver_host_manager_records_and_hosts():
    steps = []

    class Tracing(HostManager):
        def get_all_host_states(self, *args):
            steps.append("get_all_host_states")
            return super().get_all_host_states(*args)

        def get_filtered_hosts(self, *args, **kwargs):
            steps.append("get_filtered_hosts")
            return super().get_filtered_hosts(*args, **kwargs)

        def get_weighed_hosts(self, *args):
            steps.append("get_weighed_hosts")
            return super().get_weighed_hosts(*args)

    class Traced(FilterScheduler):
        def schedule_run_instance(self, *args):
            steps.append("schedule_run_instance")
            super().schedule_run_instance(*args)

        def _schedule(self, *args):
            steps.append("_schedule")
            return super()._schedule(*args)

        def _provision_resource(self, *args):
            steps.append("_provision_resource")
            super()._provision_resource(*args)

    class RecordingWorld(World):
        def set_scheduled(self, *args):
            steps.append("record")
            return super().set_scheduled(*args)

        def run_instance(self, *args, **message):
            steps.append("message")
            super().run_instance(*args, **message)

    world = RecordingWorld()
    states = [HostState("a", "a", free_ram_mb=900)]
    run(Traced(Tracing(lambda: states), deployment=deployment_of(world)), count=2)
    assert steps == [
        "schedule_run_instance",
        "_schedule",
        "get_all_host_states",
        *["get_filtered_hosts", "get_weighed_hosts"] * 2,
        *["_provision_resource", "record", "message"] * 2,
    ]


@pytest.mark.shows("S182", "S193")
def test_run_instance_message_reaches_the_host_chosen_for_each():
    world = World()
    run(scheduler_over(world, a=250, b=300), count=2)
    assert placements(world) == [("i0", "b"), ("i1", "a")]
    assert world.scheduled == ["i0", "i1"]
    messages = [message for *_, message in world.sent]
    assert [message["node"] for message in messages] == ["b-node", "a-node"]
    for message in messages:
        arguments = {name: message[name] for name in ("admin_password", "injected_files", "requested_networks")}
        assert arguments == {
            "admin_password": "password",
            "injected_files": ["file"],
            "requested_networks": ["network"],
        }
        assert (message["is_first_time"], message["legacy_bdm_in_spec"]) == (True, True)
    assert world.states == {}


@pytest.mark.shows("S198")
def test_start_and_end_notifications_have_the_request_and_no_password():
    world = World()
    run(scheduler_over(world, a=900), count=2)
    assert event_types(world) == [START, END]
    for _, payload in world.told:
        assert payload["request_spec"]["instance_uuids"] == ["i0", "i1"]
        assert "password" not in str(payload)


@pytest.mark.shows("S198")
def test_each_message_has_its_launch_index_and_no_context():
    world = World()
    request_spec, properties = run(scheduler_over(world, a=900), count=3)
    specs = [message["request_spec"] for *_, message in world.sent]
    assert [spec["instance_properties"] for spec in specs] == [
        {"project_id": "p", "launch_index": number} for number in range(3)
    ]
    for *_, message in world.sent:
        assert "instance_uuids" not in message["request_spec"]
        assert "context" not in message["filter_properties"]
        assert message["filter_properties"]["request_spec"] is message["request_spec"]
    assert "instance_uuids" not in request_spec
    assert "context" not in properties


@pytest.mark.shows("S198")
def test_retry_has_the_own_host_and_earlier_hosts_only_in_the_first_message():
    world = World()
    retry = {"num_attempts": 1, "hosts": [["z", "z-node"]]}
    _, properties = run(scheduler_over(world, a=250, b=300), count=2, retry=retry)
    assert [message["filter_properties"]["retry"] for *_, message in world.sent] == [
        {"num_attempts": 2, "hosts": [["z", "z-node"], ["b", "b-node"]]},
        {"num_attempts": 2, "hosts": [["a", "a-node"]]},
    ]
    assert properties["retry"] == {"num_attempts": 2, "hosts": []}


def test_forced_host_is_not_in_retry_and_has_no_limits():
    world = World()
    run(scheduler_over(world, a=250), force_hosts=["a"])
    assert {"retry", "limits"} & {*world.sent[0][-1]["filter_properties"]} == set()
    world = World()
    run(scheduler_over(world, a=250), force_nodes=["a-node"], retry={"num_attempts": 1, "hosts": []})
    properties = world.sent[0][-1]["filter_properties"]
    assert (properties["retry"]["hosts"], properties["limits"]) == ([], {})


@pytest.mark.shows("S198", "S213")
def test_instance_without_a_host_is_in_error_and_the_others_run():
    world = World()
    run(scheduler_over(world, filters=[EmptyHostFilter], a=250, b=300), count=3)
    assert placements(world) == [("i0", "b"), ("i1", "a")]
    assert world.states == {"i2": ("error", None)}
    assert world.faults == {"i2": "No valid host was found."}
    assert event_types(world) == [START, FAILED, END]


@pytest.mark.shows("S213")
def test_error_of_one_instance_is_notified_and_the_others_run():
    world = World(broken="b")
    run(scheduler_over(world, filters=[EmptyHostFilter], a=250, b=300), count=2)
    assert placements(world) == [("i1", "a")]
    assert world.states == {"i0": ("error", None)}
    assert world.faults == {"i0": "b does not answer"}
    assert event_types(world) == [START, FAILED, END]
    _, payload = world.told[1]
    request_spec = payload.pop("request_spec")
    assert payload == {
        "instance_properties": {"project_id": "p", "launch_index": 0},
        "instance_id": "i0",
        "state": "error",
        "method": "run_instance",
        "reason": "b does not answer",
    }
    assert request_spec["instance_type"] == TYPE


@pytest.mark.shows("S213")
def test_error_is_recorded_without_a_notifier():
    world = World()
    deployment = Deployment(world, world)
    handle_schedule_error("context", NoValidHost("none"), "i0", {}, deployment=deployment)
    assert (world.states, world.faults) == ({"i0": ("error", None)}, {"i0": "No valid host was found. none"})
    assert world.told == []


@pytest.mark.shows("S199")
def test_host_use_counts_the_instance_once_before_the_message():
    world = World()
    run(scheduler_over(world, a=250), count=2)
    assert world.watched == [[("a", 2, 50)], [("a", 2, 50)]]
    assert [state.num_instances for state in world.seen] == [2]


@pytest.mark.shows("S199")
def test_message_has_the_limits_that_filters_set():
    class Limiting(BaseHostFilter):
        def host_passes(self, host_state, _spec_obj):
            host_state.limits["memory_mb"] = 512
            return True

    world = World()
    run(scheduler_over(world, filters=[Limiting], a=250))
    assert world.sent[0][-1]["filter_properties"]["limits"] == {"memory_mb": 512}


def test_deleted_instance_is_not_built_and_the_others_run(caplog):
    world = World(gone=["i0"])
    with caplog.at_level(logging.INFO):
        run(scheduler_over(world, a=900), count=2)
        handle_schedule_error("context", NoValidHost(""), "i0", {}, deployment=deployment_of(world))
    assert placements(world) == [("i1", "a")]
    assert world.states == world.faults == {}
    assert "Instance i0 disappeared while it was scheduled." in caplog.text
    assert "Instance i0 is gone, so its failure is not recorded." in caplog.text


def test_failing_notifier_and_records_do_not_stop_the_others(caplog):
    class Failing(World):
        def info(self, *_):
            raise RuntimeError("no broker")

        error = info

        def set_state(self, *_, **_states):
            raise Unavailable("no database")

    world = Failing(broken="b")
    run(scheduler_over(world, filters=[EmptyHostFilter], a=250, b=300), count=2)
    assert placements(world) == [("i1", "a")]
    assert "The notification scheduler.run_instance.start failed." in caplog.text
    assert "The failure of instance i0 could not be recorded." in caplog.text


@pytest.mark.shows("S182")
def test_failure_of_the_whole_request_puts_all_instances_in_error():
    world = World()
    driver = scheduler_over(world, a=900)
    run(driver, count=2, retry={"num_attempts": 3, "hosts": []})
    assert world.states == {"i0": ("error", None), "i1": ("error", None)}
    assert event_types(world) == [START, FAILED, FAILED]
    assert "Exceeded max scheduling attempts 3" in world.faults["i1"]

    class Broken(FilterScheduler):
        def _get_all_host_states(self, _context):
            raise RuntimeError("no database")

    world = World()
    with pytest.raises(RuntimeError, match="no database"):
        run(scheduler_over(world, Broken), count=2)
    assert world.faults == {"i0": "no database", "i1": "no database"}


@pytest.mark.parametrize("kind", [FilterScheduler, ChanceScheduler])
def test_request_without_instances_is_refused_and_changes_nothing(kind):
    world = World()
    for request_spec in ({}, {"instance_uuids": []}):
        with pytest.raises(BadRequest, match="request_spec has no instances"):
            SchedulerManager(scheduler_over(world, kind, a=900)).run_instance(
                None, request_spec, None, [], [], True, {}
            )
    assert (world.told, world.sent, world.states) == ([], [], {})


def test_scheduler_without_a_deployment_cannot_send():
    with pytest.raises(AssertionError, match="needs a deployment"):
        Scheduler(HostManager(list)).deployment  # noqa: B018  # reading it is the test


@pytest.mark.shows("S195", "S198", "S213")
def test_chance_scheduler_runs_instances_on_any_host_that_is_up():
    world = World(up="abc", broken="b")
    driver = ChanceScheduler(HostManager(list), world, chance=random.Random(3), deployment=deployment_of(world))
    run(driver, count=20, ignore_hosts=["c"])
    assert {host for _, host in placements(world)} == {"a"}
    assert all(fault == "b does not answer" for fault in world.faults.values())
    assert sorted([*world.faults, *(uuid for uuid, _ in placements(world))]) == sorted(
        f"i{number}" for number in range(20)
    )
    assert len(world.faults) in range(1, 20)
    _, _, message = world.sent[0]
    assert message["node"] is None
    assert "instance_uuids" not in message["request_spec"]
    assert message["filter_properties"]["request_spec"] is message["request_spec"]
    assert event_types(world)[0] == START
    assert event_types(world)[-1] == END


def test_chance_scheduler_without_hosts_puts_instances_in_error():
    world = World(up="")
    driver = ChanceScheduler(HostManager(list), world, deployment=deployment_of(world))
    run(driver, count=2)
    assert {*world.faults.values()} == {"No valid host was found. Is the appropriate service running?"}
    assert [*world.faults] == ["i0", "i1"]


@pytest.mark.shows("S197")
def test_running_instances_count_in_the_cache_until_the_next_refresh():
    world = World()
    driver = scheduler_over(world, CachingScheduler, a=250, b=300)
    for _ in range(2):
        run(driver)
        world.seen = [HostState(host, host, free_ram_mb=free) for host, free in (("a", 250), ("b", 300))]
    assert placements(world) == [("i0", "b"), ("i0", "a")]
    driver.run_periodic_tasks(None)
    run(driver)
    assert placements(world)[-1] == ("i0", "b")


def test_members_of_an_anti_affinity_group_run_on_different_hosts():
    world = World()
    group = InstanceGroup(policy="anti-affinity")
    driver = FilterScheduler(
        HostManager(lambda: [HostState("a", "a", free_ram_mb=900), HostState("b", "b", free_ram_mb=100)]),
        deployment=deployment_of(world),
    )
    run(driver, count=3, instance_group=group)
    assert placements(world) == [("i0", "a"), ("i1", "b")]
    assert [*world.states] == ["i2"]
