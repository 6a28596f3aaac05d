import pytest

from roost.compat.filters import BaseFilter, BaseFilterHandler
from roost.compat.objects import InstanceGroup, RequestSpec
from roost.compat.scheduler import filters
from roost.compat.scheduler.filters import core_filter, disk_filter, num_instances_filter, ram_filter
from roost.compat.scheduler.host_state import HostAggregate, HostState
from roost.model.flavor import Flavor
from roost.model.settings.roost_settings import Settings
from roost.scheduler import registry
from roost.scheduler.filters.core import Core
from roost.scheduler.filters.metrics import Metrics, MetricsOptions
from roost.scheduler.filters.retry import Retry
from roost.scheduler.rule_support.overcommit import RamOptions

FLAVOR = Flavor(name="f", vcpus=4, memory_mb=1024, root_gb=10, ephemeral_gb=5, swap=512)


def state(name="h", **known):
    return HostState(name, name, **known)


def asked(flavor=FLAVOR, **known):
    return RequestSpec(flavor=flavor, **known)


class Short(BaseFilter):
    """Keeps short names."""

    def _filter_one(self, obj, spec_obj):
        return len(obj) < spec_obj


class Once(Short):
    """The same, for the first instance only."""

    run_filter_once_per_request = True


class Stop(BaseFilter):
    """Stops everything."""

    def filter_all(self, filter_obj_list, spec_obj):
        """Give nothing at all."""


@pytest.mark.shows("S002", "S189", "S192", "S211")
def test_a_handler_runs_filters_in_turn_and_takes_classes_too():
    handler = BaseFilterHandler()
    assert handler.get_filtered_objects([Short(), Once], ["a", "bbb"], 2) == ["a"]
    assert handler.get_filted_objects([Short], iter(["bbb"]), 2) == []


@pytest.mark.shows("S188", "S189")
def test_some_filters_only_run_for_the_first_instance():
    handler = BaseFilterHandler()
    assert handler.get_filtered_objects([Once()], ["a", "bbb"], 2, index=1) == ["a", "bbb"]
    assert (Once().run_filter_for_index(0), Once().run_filter_for_index(1)) == (True, False)
    assert Short().run_filter_for_index(1)


@pytest.mark.shows("S189")
def test_a_filter_that_gives_nothing_at_all_stops_the_filtering():
    assert BaseFilterHandler().get_filtered_objects([Stop, Short], ["a"], 2) is None


class Picky(filters.BaseHostFilter):
    """Refuses every host."""

    def host_passes(self, host_state, spec_obj):
        """Say no."""
        return False


@pytest.mark.shows("S046", "S187")
def test_a_check_for_a_rebuild_is_only_seen_by_filters_that_ask_for_it():
    check = asked(scheduler_hints={"_nova_check_type": ["rebuild"]})
    assert Picky()._filter_one(state(), check)
    assert not Picky()._filter_one(state(), asked())
    seeing = type("Seeing", (Picky,), {"RUN_ON_REBUILD": True})
    assert not seeing()._filter_one(state(), check)


@pytest.mark.shows("S047")
def test_the_base_has_no_verdict_of_its_own():
    with pytest.raises(NotImplementedError):
        filters.BaseHostFilter().host_passes(state(), asked())


def test_our_filters_judge_host_states():
    hosts = [state("a"), state("b", service={"disabled": True}), state("c", service={"forced_down": True})]
    handler = filters.HostFilterHandler()
    assert [host.host for host in handler.get_filtered_objects([filters.ComputeFilter], hosts, asked())] == ["a"]
    capable = asked(Flavor(name="f", extra_specs={"free_ram_mb": ">= 2048", "capabilities:cpu_info:arch": "x"}))
    judged = filters.ComputeCapabilitiesFilter()
    assert judged.host_passes(state(free_ram_mb=2048, cpu_info='{"arch": "x"}'), capable)
    assert not judged.host_passes(state(free_ram_mb=2047, cpu_info='{"arch": "x"}'), capable)
    assert not judged.host_passes(state(free_ram_mb=2048, cpu_info="no JSON"), capable)


def test_group_rules_count_the_instances_on_the_host_states():
    apart = asked(instance_group=InstanceGroup(policy="anti-affinity", members=["i1", "i2"]), instance_uuid="i3")
    anti = filters.ServerGroupAntiAffinityFilter()
    assert not anti.host_passes(state(instances={"i1": None}), apart)
    assert anti.host_passes(state(instances={"other": None}), apart)
    assert anti.host_passes(state(instances={"i1": None, "i3": None}), apart)
    together = asked(instance_group=InstanceGroup(policy="affinity", hosts=["a"]))
    hosts = [state("a"), state("b")]
    affine = filters.ServerGroupAffinityFilter()
    assert [host.host for host in affine.filter_all(hosts, together)] == ["a"]
    assert list(affine.filter_all(hosts[1:], together)) == []
    assert list(affine.filter_all(hosts, asked(instance_group=InstanceGroup(policy="affinity")))) == hosts


def test_all_filters_are_there_under_their_names():
    names = {each.__name__ for each in filters.all_filters()}
    assert {"AllHostsFilter", "ComputeFilter", "RamFilter", "AggregateCoreFilter", "NumInstancesFilter"} <= names
    assert not {name for name in names if name.startswith("Base")}
    assert all(issubclass(each, filters.BaseHostFilter) for each in filters.all_filters())


@pytest.mark.shows("S203", "S216", "S217")
def test_memory_may_be_overcommitted_but_not_by_one_instance():
    host = state(total_usable_ram_mb=1024, free_ram_mb=512)
    assert ram_filter.RamFilter().host_passes(host, {"instance_type": {"name": "f", "memory_mb": 1024}})
    assert host.limits == {"memory_mb": 1536.0}
    assert not ram_filter.RamFilter().host_passes(state(total_usable_ram_mb=1024, free_ram_mb=511), asked())
    assert not ram_filter.RamFilter().host_passes(state(total_usable_ram_mb=1023, free_ram_mb=1023), asked())
    with pytest.raises(NotImplementedError):
        ram_filter.BaseRamFilter()._get_ram_allocation_ratio(host, asked())


@pytest.mark.parametrize(
    ("values", "passes"), [(["1.0"], False), (["2.0"], True), (["2.0", "1.0"], False), (["x"], True)]
)
def test_an_aggregate_may_set_the_overcommit_of_memory(values, passes):
    joined = [HostAggregate(metadata={"ram_allocation_ratio": value}) for value in values]
    host = state(total_usable_ram_mb=1024, free_ram_mb=512, aggregates=joined)
    assert ram_filter.AggregateRamFilter().host_passes(host, asked()) is passes


@pytest.mark.shows("S204")
def test_virtual_processors_may_be_overcommitted_but_not_by_one_instance():
    judged = core_filter.CoreFilter()
    host = state(vcpus_total=4, vcpus_used=60)
    assert judged.host_passes(host, asked())
    assert host.limits == {"vcpu": 64.0}
    assert not judged.host_passes(state(vcpus_total=4, vcpus_used=61), asked())
    assert not judged.host_passes(state(vcpus_total=3), asked())
    assert judged.host_passes(state(vcpus_total=0), asked())
    joined = [HostAggregate(metadata={"cpu_allocation_ratio": "1"})]
    assert not core_filter.AggregateCoreFilter().host_passes(
        state(vcpus_total=4, vcpus_used=1, aggregates=joined), asked()
    )


@pytest.mark.shows("S204")
def test_disk_counts_root_ephemeral_and_swap():
    judged = disk_filter.DiskFilter()
    host = state(total_usable_disk_gb=20, free_disk_mb=15 * 1024 + 512)
    assert judged.host_passes(host, asked())
    assert host.limits == {"disk_gb": 20.0}
    assert not judged.host_passes(state(total_usable_disk_gb=20, free_disk_mb=15 * 1024 + 511), asked())
    assert not judged.host_passes(state(total_usable_disk_gb=15, free_disk_mb=99999), asked())
    joined = [HostAggregate(metadata={"disk_allocation_ratio": "2"})]
    full = state(total_usable_disk_gb=20, free_disk_mb=0, aggregates=joined)
    assert disk_filter.AggregateDiskFilter().host_passes(full, asked())


@pytest.mark.shows("S028", "S048", "S086")
def test_the_limit_of_instances_is_a_hook():
    assert num_instances_filter.NumInstancesFilter().host_passes(state(num_instances=49), asked())
    assert not num_instances_filter.NumInstancesFilter().host_passes(state(num_instances=50), asked())
    joined = [HostAggregate(metadata={"max_instances_per_host": "9"})]
    host = state(num_instances=9, aggregates=joined)
    assert not num_instances_filter.AggregateNumInstancesFilter().host_passes(host, asked())


def test_candidates_of_a_host_can_be_narrowed():
    host = state(allocation_candidates=[1, 2, 3])
    assert filters.CandidateFilterMixin().filter_candidates(host, lambda each: each > 1) == [2, 3]
    assert host.allocation_candidates == [2, 3]


def test_every_filter_is_there_once():
    names = [each.__name__ for each in filters.all_filters()]
    assert len(names) == len(set(names))
    assert filters.filter_for(Core) is core_filter.CoreFilter


@pytest.mark.shows("S216")
def test_a_filter_of_amounts_takes_its_number_from_a_method_that_may_be_overridden():
    class Generous(ram_filter.RamFilter):
        def _get_ram_allocation_ratio(self, host_state, filter_properties):
            return 4.0 if host_state.host == "b" else super()._get_ram_allocation_ratio(host_state, filter_properties)

    states = [state(name, total_usable_ram_mb=1024, free_ram_mb=-512) for name in "ab"]
    assert [host.host for host in Generous().filter_all(states, asked())] == ["b"]
    assert [host.limits for host in states] == [{}, {"memory_mb": 4096.0}]
    assert ram_filter.RamFilter(RamOptions(ram_allocation_ratio=3.0)).ram_allocation_ratio == 3.0


def test_a_filter_of_ours_may_be_asked_of_each_host_by_a_method_that_is_overridden():
    class Picky(ram_filter.RamFilter):
        def host_passes(self, host_state, spec_obj):
            return host_state.host == "a" and super().host_passes(host_state, spec_obj)

    states = [state(name, total_usable_ram_mb=1024, free_ram_mb=1024) for name in "ab"]
    assert [host.host for host in Picky().filter_all(states, asked())] == ["a"]


@pytest.mark.shows("S013")
def test_what_was_tried_before_and_metrics_are_read_from_nova_s_forms():
    tried = asked(retry={"num_attempts": 1, "hosts": [["a", "a"]]})
    retry = filters.filter_for(Retry)()
    assert [host.host for host in retry.filter_all([state("a"), state("b")], tried)] == ["b"]
    metrics = filters.filter_for(Metrics)(MetricsOptions(weight_setting=("cpu=1", "odd")))
    assert metrics.host_passes(state(metrics={"cpu": 1.0}), asked())
    assert not metrics.host_passes(state(metrics={"cpu": None}), asked())


@pytest.mark.shows("S045")
def test_what_is_available_by_default_is_every_public_filter():
    (path,) = Settings().filter_scheduler.available_filters
    assert path == "nova.scheduler.filters.all_filters"
    found = registry.catalogue(Settings().filter_scheduler).filters
    assert {filters.filter_for(rule) for rule in found} == set(filters.all_filters())
    assert not [each for each in filters.all_filters() if each.__name__.startswith("_")]
