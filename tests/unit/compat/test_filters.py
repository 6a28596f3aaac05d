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


def state(name="h", **fields):
    return HostState(name, name, **fields)


def spec(flavor=FLAVOR, **fields):
    return RequestSpec(flavor=flavor, **fields)


class Short(BaseFilter):
    """Keeps short names."""

    def _filter_one(self, obj, spec_obj):
        return len(obj) < spec_obj


class Once(Short):
    """Keeps short names, for the first instance only."""

    run_filter_once_per_request = True


class Stop(BaseFilter):
    """Returns no list, which stops the handler."""

    def filter_all(self, filter_obj_list, spec_obj):
        """Return None."""


@pytest.mark.shows("S002", "S189", "S192", "S211")
def test_handler_runs_filter_instances_and_classes_in_order():
    handler = BaseFilterHandler()
    assert handler.get_filtered_objects([Short(), Once], ["a", "bbb"], 2) == ["a"]
    assert handler.get_filted_objects([Short], iter(["bbb"]), 2) == []


@pytest.mark.shows("S188", "S189")
def test_once_per_request_filter_runs_for_the_first_instance_only():
    handler = BaseFilterHandler()
    assert handler.get_filtered_objects([Once()], ["a", "bbb"], 2, index=1) == ["a", "bbb"]
    assert (Once().run_filter_for_index(0), Once().run_filter_for_index(1)) == (True, False)
    assert Short().run_filter_for_index(1)


@pytest.mark.shows("S189")
def test_filter_that_returns_none_stops_the_handler():
    assert BaseFilterHandler().get_filtered_objects([Stop, Short], ["a"], 2) is None


class Picky(filters.BaseHostFilter):
    """Refuses every host."""

    def host_passes(self, host_state, spec_obj):
        """Return False."""
        return False


@pytest.mark.shows("S046", "S187")
def test_rebuild_check_runs_only_filters_that_support_it():
    check = spec(scheduler_hints={"_nova_check_type": ["rebuild"]})
    assert Picky()._filter_one(state(), check)
    assert not Picky()._filter_one(state(), spec())
    rebuild_filter = type("Seeing", (Picky,), {"RUN_ON_REBUILD": True})
    assert not rebuild_filter()._filter_one(state(), check)


@pytest.mark.shows("S047")
def test_base_filter_has_no_verdict():
    with pytest.raises(NotImplementedError):
        filters.BaseHostFilter().host_passes(state(), spec())


def test_built_in_filters_run_on_host_states():
    hosts = [state("a"), state("b", service={"disabled": True}), state("c", service={"forced_down": True})]
    handler = filters.HostFilterHandler()
    assert [host.host for host in handler.get_filtered_objects([filters.ComputeFilter], hosts, spec())] == ["a"]
    capable = spec(Flavor(name="f", extra_specs={"free_ram_mb": ">= 2048", "capabilities:cpu_info:arch": "x"}))
    rule = filters.ComputeCapabilitiesFilter()
    assert rule.host_passes(state(free_ram_mb=2048, cpu_info='{"arch": "x"}'), capable)
    assert not rule.host_passes(state(free_ram_mb=2047, cpu_info='{"arch": "x"}'), capable)
    assert not rule.host_passes(state(free_ram_mb=2048, cpu_info="no JSON"), capable)


def test_group_filters_count_the_instances_on_host_states():
    apart = spec(instance_group=InstanceGroup(policy="anti-affinity", members=["i1", "i2"]), instance_uuid="i3")
    anti = filters.ServerGroupAntiAffinityFilter()
    assert not anti.host_passes(state(instances={"i1": None}), apart)
    assert anti.host_passes(state(instances={"other": None}), apart)
    assert anti.host_passes(state(instances={"i1": None, "i3": None}), apart)
    together = spec(instance_group=InstanceGroup(policy="affinity", hosts=["a"]))
    hosts = [state("a"), state("b")]
    affine = filters.ServerGroupAffinityFilter()
    assert [host.host for host in affine.filter_all(hosts, together)] == ["a"]
    assert list(affine.filter_all(hosts[1:], together)) == []
    assert list(affine.filter_all(hosts, spec(instance_group=InstanceGroup(policy="affinity")))) == hosts


def test_all_filters_have_their_nova_names():
    names = {each.__name__ for each in filters.all_filters()}
    assert {"AllHostsFilter", "ComputeFilter", "RamFilter", "AggregateCoreFilter", "NumInstancesFilter"} <= names
    assert not {name for name in names if name.startswith("Base")}
    assert all(issubclass(each, filters.BaseHostFilter) for each in filters.all_filters())


@pytest.mark.shows("S203", "S216", "S217")
def test_memory_may_be_overcommitted_but_not_by_one_instance():
    host = state(total_usable_ram_mb=1024, free_ram_mb=512)
    assert ram_filter.RamFilter().host_passes(host, {"instance_type": {"name": "f", "memory_mb": 1024}})
    assert host.limits == {"memory_mb": 1536.0}
    assert not ram_filter.RamFilter().host_passes(state(total_usable_ram_mb=1024, free_ram_mb=511), spec())
    assert not ram_filter.RamFilter().host_passes(state(total_usable_ram_mb=1023, free_ram_mb=1023), spec())
    with pytest.raises(NotImplementedError):
        ram_filter.BaseRamFilter()._get_ram_allocation_ratio(host, spec())


@pytest.mark.parametrize(
    ("values", "passes"), [(["1.0"], False), (["2.0"], True), (["2.0", "1.0"], False), (["x"], True)]
)
def test_aggregate_may_set_the_overcommit_of_memory(values, passes):
    aggregates = [HostAggregate(metadata={"ram_allocation_ratio": value}) for value in values]
    host = state(total_usable_ram_mb=1024, free_ram_mb=512, aggregates=aggregates)
    assert ram_filter.AggregateRamFilter().host_passes(host, spec()) is passes


@pytest.mark.shows("S204")
def test_virtual_processors_may_be_overcommitted_but_not_by_one_instance():
    rule = core_filter.CoreFilter()
    host = state(vcpus_total=4, vcpus_used=60)
    assert rule.host_passes(host, spec())
    assert host.limits == {"vcpu": 64.0}
    assert not rule.host_passes(state(vcpus_total=4, vcpus_used=61), spec())
    assert not rule.host_passes(state(vcpus_total=3), spec())
    assert rule.host_passes(state(vcpus_total=0), spec())
    aggregates = [HostAggregate(metadata={"cpu_allocation_ratio": "1"})]
    assert not core_filter.AggregateCoreFilter().host_passes(
        state(vcpus_total=4, vcpus_used=1, aggregates=aggregates), spec()
    )


@pytest.mark.shows("S204")
def test_disk_counts_root_ephemeral_and_swap():
    rule = disk_filter.DiskFilter()
    host = state(total_usable_disk_gb=20, free_disk_mb=15 * 1024 + 512)
    assert rule.host_passes(host, spec())
    assert host.limits == {"disk_gb": 20.0}
    assert not rule.host_passes(state(total_usable_disk_gb=20, free_disk_mb=15 * 1024 + 511), spec())
    assert not rule.host_passes(state(total_usable_disk_gb=15, free_disk_mb=99999), spec())
    aggregates = [HostAggregate(metadata={"disk_allocation_ratio": "2"})]
    full = state(total_usable_disk_gb=20, free_disk_mb=0, aggregates=aggregates)
    assert disk_filter.AggregateDiskFilter().host_passes(full, spec())


@pytest.mark.shows("S028", "S048", "S086")
def test_instance_limit_comes_from_the_settings_or_the_aggregate():
    assert num_instances_filter.NumInstancesFilter().host_passes(state(num_instances=49), spec())
    assert not num_instances_filter.NumInstancesFilter().host_passes(state(num_instances=50), spec())
    aggregates = [HostAggregate(metadata={"max_instances_per_host": "9"})]
    host = state(num_instances=9, aggregates=aggregates)
    assert not num_instances_filter.AggregateNumInstancesFilter().host_passes(host, spec())


def test_candidates_of_a_host_can_be_narrowed():
    host = state(allocation_candidates=[1, 2, 3])
    assert filters.CandidateFilterMixin().filter_candidates(host, lambda each: each > 1) == [2, 3]
    assert host.allocation_candidates == [2, 3]


def test_every_filter_exists_once():
    names = [each.__name__ for each in filters.all_filters()]
    assert len(names) == len(set(names))
    assert filters.filter_for(Core) is core_filter.CoreFilter


@pytest.mark.shows("S216")
def test_allocation_ratio_method_may_be_overridden():
    class Generous(ram_filter.RamFilter):
        def _get_ram_allocation_ratio(self, host_state, filter_properties):
            return 4.0 if host_state.host == "b" else super()._get_ram_allocation_ratio(host_state, filter_properties)

    states = [state(name, total_usable_ram_mb=1024, free_ram_mb=-512) for name in "ab"]
    assert [host.host for host in Generous().filter_all(states, spec())] == ["b"]
    assert [host.limits for host in states] == [{}, {"memory_mb": 4096.0}]
    assert ram_filter.RamFilter(RamOptions(ram_allocation_ratio=3.0)).ram_allocation_ratio == 3.0


def test_host_passes_of_a_built_in_filter_may_be_overridden():
    class Picky(ram_filter.RamFilter):
        def host_passes(self, host_state, spec_obj):
            return host_state.host == "a" and super().host_passes(host_state, spec_obj)

    states = [state(name, total_usable_ram_mb=1024, free_ram_mb=1024) for name in "ab"]
    assert [host.host for host in Picky().filter_all(states, spec())] == ["a"]


@pytest.mark.shows("S013")
def test_retry_and_metrics_are_read_in_the_format_of_nova():
    retry_spec = spec(retry={"num_attempts": 1, "hosts": [["a", "a"]]})
    retry = filters.filter_for(Retry)()
    assert [host.host for host in retry.filter_all([state("a"), state("b")], retry_spec)] == ["b"]
    metrics = filters.filter_for(Metrics)(MetricsOptions(weight_setting=("cpu=1", "odd")))
    assert metrics.host_passes(state(metrics={"cpu": 1.0}), spec())
    assert not metrics.host_passes(state(metrics={"cpu": None}), spec())


@pytest.mark.shows("S045")
def test_every_public_filter_is_available_by_default():
    (path,) = Settings().filter_scheduler.available_filters
    assert path == "nova.scheduler.filters.all_filters"
    rules = registry.catalogue(Settings().filter_scheduler).filters
    assert {filters.filter_for(rule) for rule in rules} == set(filters.all_filters())
    assert not [each for each in filters.all_filters() if each.__name__.startswith("_")]
