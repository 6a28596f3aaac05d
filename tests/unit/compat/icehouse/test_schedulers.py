import inspect
import random

import pytest

from roost.compat.exception import NoValidHost, SchedulerHostFilterNotFound
from roost.compat.icehouse.caching_scheduler import CachingScheduler
from roost.compat.icehouse.chance import ChanceScheduler
from roost.compat.icehouse.driver import Scheduler
from roost.compat.icehouse.filter_scheduler import FilterScheduler
from roost.compat.icehouse.scheduler_manager import SchedulerManager
from roost.compat.objects import InstanceGroup, RequestSpec
from roost.compat.scheduler.filters import BaseHostFilter, HostFilterHandler
from roost.compat.scheduler.host_list import HostList
from roost.compat.scheduler.host_manager import HostManager, HostState, host_states_of
from roost.compat.scheduler.weights import HostWeightHandler, RAMWeigher
from roost.errors import BadSettings
from roost.model.flavor import Flavor
from roost.model.host import HostFacts, PciPool
from roost.model.request import Destination
from roost.model.settings.roost_settings import FilterScheduler as Section
from roost.model.settings.roost_settings import Settings
from tests.support.fleets.fleets import add_instance, fleet, uuid_text

TYPE = {"name": "f", "vcpus": 1, "memory_mb": 100, "root_gb": 1}


def hosts(**free_ram_mb):
    return [HostState(name, f"{name}-node", uuid=name, free_ram_mb=free) for name, free in free_ram_mb.items()]


def manager_of(states):
    return HostManager(lambda: states)


def chosen_hosts(scheduler, count=1, **properties):
    request_spec = {"instance_uuids": [f"i{number}" for number in range(count)]}
    destinations = scheduler.select_destinations(None, request_spec, {"instance_type": TYPE, **properties})
    return [each["host"] for each in destinations]


class Services:
    """The state of each service, by host."""

    def __init__(self, **is_up):
        self._is_up = is_up

    def get_all_by_topic(self, _context, topic):
        """Return all compute services."""
        return [{"host": host, "topic": topic} for host in self._is_up]

    def service_is_up(self, service):
        """Return whether a service is up."""
        return self._is_up[service["host"]]


@pytest.mark.shows("S194", "S214")
def test_base_scheduler_only_lists_hosts_that_are_up():
    base = Scheduler(manager_of([]), Services(a=True, b=False))
    assert base.hosts_up(None, "compute") == ["a"]
    base.run_periodic_tasks(None)
    with pytest.raises(NotImplementedError, match="Driver must implement select_destinations"):
        base.select_destinations(None, {}, {})
    with pytest.raises(NotImplementedError, match="Driver must implement schedule_run_instance"):
        base.schedule_run_instance(None, {}, None, None, None, True, {}, False)


@pytest.mark.shows("S195")
def test_chance_scheduler_takes_any_host_that_is_up_and_not_ignored():
    scheduler = ChanceScheduler(manager_of([]), Services(a=True, b=False, c=True), chance=random.Random(1))
    assert set(chosen_hosts(scheduler, count=20)) == {"a", "c"}
    assert set(chosen_hosts(scheduler, count=5, ignore_hosts=["a"])) == {"c"}
    with pytest.raises(NoValidHost, match="Could not find another compute"):
        chosen_hosts(scheduler, ignore_hosts=["a", "c"])
    with pytest.raises(NoValidHost, match=r"Is the appropriate service running\?"):
        chosen_hosts(ChanceScheduler(manager_of([]), Services(a=False)))


@pytest.mark.shows("S005", "S196")
def test_best_host_is_taken_and_its_use_counts_for_the_next_instance():
    scheduler = FilterScheduler(manager_of(hosts(a=250, b=300)))
    assert chosen_hosts(scheduler, count=3) == ["b", "a", "b"]


@pytest.mark.shows("S201")
def test_host_is_drawn_from_the_best_subset():
    first_hosts = {
        chosen_hosts(FilterScheduler(manager_of(hosts(a=3, b=2, c=1)), host_subset_size=2, chance=random.Random(seed)))[
            0
        ]
        for seed in range(20)
    }
    assert first_hosts == {"a", "b"}
    assert chosen_hosts(FilterScheduler(manager_of(hosts(a=3, b=2)), host_subset_size=0)) == ["a"]
    assert chosen_hosts(FilterScheduler(manager_of(hosts(a=3)), host_subset_size=9)) == ["a"]


@pytest.mark.shows("S181", "S215")
def test_request_places_all_instances_or_none():
    group = InstanceGroup(policy="anti-affinity")
    assert sorted(chosen_hosts(FilterScheduler(manager_of(hosts(a=9, b=8))), count=2, instance_group=group)) == [
        "a",
        "b",
    ]
    assert (sorted(group.hosts), group.members) == (["a", "b"], ["i0", "i1"])
    with pytest.raises(NoValidHost, match="No valid host was found"):
        chosen_hosts(
            FilterScheduler(manager_of(hosts(a=9))), count=2, instance_group=InstanceGroup(policy="anti-affinity")
        )


def test_attempts_are_counted_and_bounded():
    scheduler = FilterScheduler(manager_of(hosts(a=9)), max_attempts=2)
    retry = {"num_attempts": 1, "hosts": []}
    chosen_hosts(scheduler, retry=retry)
    assert retry["num_attempts"] == 2
    with pytest.raises(NoValidHost, match="Exceeded max scheduling attempts 2"):
        chosen_hosts(scheduler, retry=retry)
    assert chosen_hosts(scheduler, retry=retry, force_hosts=["a"]) == ["a"]
    with pytest.raises(BadSettings, match="max_attempts"):
        chosen_hosts(FilterScheduler(manager_of(hosts(a=9)), max_attempts=0))


@pytest.mark.shows("S197")
def test_cached_hosts_are_unchanged_until_the_next_refresh():
    known = hosts(a=9)
    scheduler = CachingScheduler(HostManager(lambda: known))
    assert chosen_hosts(scheduler) == ["a"]
    known = hosts(b=9)
    assert chosen_hosts(scheduler) == ["a"]
    SchedulerManager(scheduler)._run_periodic_tasks(None)
    assert chosen_hosts(scheduler) == ["b"]
    assert SchedulerManager(scheduler).select_hosts(None, {"num_instances": 1}, {"instance_type": TYPE}) == ["b"]


def allowed_hosts(**request):
    spec = RequestSpec(flavor=Flavor(name="f"), **request)
    return [host.host for host in manager_of(hosts(a=1, b=2, C=3)).get_filtered_hosts(hosts(a=1, b=2, C=3), spec)]


@pytest.mark.shows("S202")
def test_hosts_are_ignored_and_forced_by_name():
    assert allowed_hosts(ignore_hosts=["A"]) == ["b", "C"]
    assert allowed_hosts(force_hosts=["c"]) == ["C"]
    assert allowed_hosts(force_nodes=["C-NODE"]) == []
    assert allowed_hosts(force_nodes=["C-node"]) == ["C"]
    assert allowed_hosts(ignore_hosts=["a", "b", "c"]) == []
    assert allowed_hosts(requested_destination=Destination(host="b", node="b-node")) == ["b"]


@pytest.mark.shows("S202")
def test_forced_hosts_skip_the_filters():
    down = [HostState("a", "a", service={"disabled": True})]
    handler = manager_of(down)
    assert handler.get_filtered_hosts(down, RequestSpec(flavor=Flavor(name="f"))) == []
    assert handler.get_filters_hosts(down, RequestSpec(flavor=Flavor(name="f"), force_hosts=["a"])) == down


def test_settings_choose_filters_and_weighers():
    section = Section(enabled_filters=("all_hosts",), weight_classes=("ram",))
    manager = HostManager(list, settings=Settings(filter_scheduler=section))
    assert [type(each).__name__ for each in (*manager.enabled_filters, *manager.weighers)] == [
        "AllHostsFilter",
        "RAMWeigher",
    ]
    assert "could not be found" in str(SchedulerHostFilterNotFound(filter_name="A, B"))


@pytest.mark.shows("S183", "S184")
def test_hosts_of_the_fleet_become_host_states():
    facts = HostFacts(memory_mb=1024, vcpus_total=8, cpu_allocation_ratio=2.0, hypervisor_type="QEMU", is_disabled=True)
    manager = HostManager(lambda: host_states_of(fleet(facts, aggregates=[({"ssd": "yes"}, [0])])))
    (host,) = manager.get_all_host_states()
    assert (host.host, host.nodename, host.uuid) == ("host-1", "node-1", uuid_text(1))
    assert (host.free_ram_mb, host.vcpus_total, host.hypervisor_type) == (1024, 8, "QEMU")
    assert host.service["disabled"]
    assert [each.metadata for each in host.aggregates] == [{"ssd": "yes"}]
    assert list(manager.get_host_states_by_uuids(None, ["nobody"])) == []


def test_host_states_have_the_devices_and_images_of_the_fleet():
    pool = PciPool(
        vendor_id="8086",
        product_id="154c",
        dev_type="type-VF",
        numa_node=1,
        count=3,
        rp_uuids=("p",),
        tags={"physical_network": None, "own": ("x", "y")},
    )
    state = fleet(HostFacts(pci_pools=(pool,), metrics={"cpu.percent": 1.0}), HostFacts())
    add_instance(state, 0, {"os_distro": "debian"})
    states = HostList(host_states_of(state))
    assert [facts.pci_pools for facts in states.all_facts()] == [(pool,), ()]
    assert [facts.metrics for facts in states.all_facts()] == [{"cpu.percent": 1.0}, {}]
    assert states.image_counts("os_distro", "debian").tolist() == [1, 0]


@pytest.mark.shows("S049", "S183")
def test_host_state_applies_the_report_of_its_node():
    host = HostState("a", "a")
    report = {
        "free_disk_gb": 20,
        "disk_available_least": 10,
        "local_gb": 100,
        "local_gb_used": 80,
        "free_ram_mb": -5,
        "memory_mb": 1024,
        "vcpus": 8,
        "vcpus_used": 3,
        "updated_at": 5,
        "stats": {"num_instances": "2", "io_workload": "1", "failed_builds": "4"},
    }
    host.update(report, {"disabled": False}, [], {"i": None})
    assert (host.free_disk_mb, host.disk_mb_used, host.free_ram_mb) == (10240, 81920, -5)
    assert (host.num_instances, host.num_io_ops, host.failed_builds) == (2, 1, 4)
    host.update(report | {"free_ram_mb": 7, "updated_at": 4})
    host.update({"free_disk_gb": None, "free_ram_mb": 8})
    assert host.free_ram_mb == -5


@pytest.mark.shows("S185", "S186", "S209")
def test_host_manager_uses_its_own_filters_and_weighers():
    states = [*hosts(a=1, b=3, c=2), HostState("down", "down", free_ram_mb=9, service={"disabled": True})]
    manager = HostManager(lambda: states, weighers=[RAMWeigher])
    assert (type(manager.filter_handler), type(manager.weight_handler)) == (HostFilterHandler, HostWeightHandler)
    request = RequestSpec(flavor=Flavor(name="f"))
    left = manager.get_filtered_hosts(manager.get_all_host_states(None), request, index=0)
    assert [host.host for host in left] == ["a", "b", "c"]
    assert manager.filter_handler.get_filtered_objects(manager.enabled_filters, states, request, 0) == left
    weighed = manager.get_weighed_hosts(left, request)
    assert [(each.obj.host, each.weight) for each in weighed] == [("b", 1.0), ("c", 2 / 3), ("a", 1 / 3)]
    assert [each.obj.host for each in manager.get_weighted_hosts(left, request)] == ["b", "c", "a"]
    by_handler = manager.weight_handler.get_weighed_objects(manager.weighers, left, request)
    assert [each.to_dict() for each in by_handler] == [each.to_dict() for each in weighed]


@pytest.mark.shows("S200")
def test_schedule_reads_hosts_once_and_filters_for_each_instance():
    seen, lists = [], []

    class RecordingFilter(BaseHostFilter):
        def host_passes(self, host_state, spec_obj):
            seen.append((spec_obj.instance_uuid, host_state.host, spec_obj.retry["num_attempts"]))
            return True

    def known():
        lists.append(hosts(a=250, b=300))
        return lists[-1]

    class Optional(FilterScheduler):
        def _get_configuration_options(self):
            return {"option": 1}

    group = InstanceGroup(policy="affinity")
    properties = {"instance_type": TYPE, "instance_group": group}
    request_spec = {"instance_uuids": ["i0", "i1", "i2"]}
    scheduler = Optional(HostManager(known, filters=[RecordingFilter], weighers=[RAMWeigher]))
    selected = scheduler._schedule("context", request_spec, properties)
    assert [each.obj.host for each in selected] == ["b", "a", "b"]
    additions = {name: properties[name] for name in ("context", "request_spec", "config_options", "instance_type")}
    assert additions == {
        "context": "context",
        "request_spec": request_spec,
        "config_options": {"option": 1},
        "instance_type": TYPE,
    }
    assert properties["retry"] == {"num_attempts": 1, "hosts": []}
    assert len(lists) == 1
    assert seen == [(f"i{number}", host, 1) for number in range(3) for host in "ab"]
    assert (group.hosts, group.members) == (["b", "a", "b"], ["i0", "i1", "i2"])
    assert properties["group_hosts"] == {"a", "b"}
    assert [(state.host, state.num_instances, state.free_ram_mb) for state in lists[0]] == [
        ("a", 1, 150),
        ("b", 2, 100),
    ]


@pytest.mark.shows("S200")
def test_schedule_fills_in_the_instance_type_of_the_request():
    properties = {}
    request_spec = {"instance_type": TYPE, "instance_uuids": ["i0"]}
    FilterScheduler(manager_of(hosts(a=9)))._schedule(None, request_spec, properties)
    assert properties["instance_type"] == TYPE
    assert "group_hosts" not in properties


@pytest.mark.shows("S212")
def test_custom_driver_receives_all_arguments_of_a_build():
    seen = {}

    class Own(Scheduler):
        def schedule_run_instance(self, context, request_spec, *args, **kwargs):
            seen.update(context=context, request_spec=request_spec, **kwargs)

    request = {
        "context": "c",
        "request_spec": {},
        "admin_password": "p",
        "injected_files": [],
        "requested_networks": [],
        "is_first_time": True,
        "filter_properties": {},
        "legacy_bdm_in_spec": False,
    }
    Own(manager_of([])).schedule_run_instance(**request)
    assert seen == request
    assert [*inspect.signature(Scheduler(manager_of([])).schedule_run_instance).parameters] == [*request]
