"""The filters of virtual CPUs, memory and disk, and the limits that they set for chosen hosts."""

import numpy as np
import pytest

from roost.model.flavor import Flavor
from roost.model.host import HostFacts
from roost.model.request import Request
from roost.scheduler.filters.aggregate_core import AggregateCore
from roost.scheduler.filters.aggregate_disk import AggregateDisk
from roost.scheduler.filters.aggregate_ram import AggregateRam
from roost.scheduler.filters.core import Core
from roost.scheduler.filters.disk import Disk
from roost.scheduler.filters.ram import Ram
from roost.scheduler.framework.spec import Spec
from roost.scheduler.rule_support.overcommit import CoreOptions, DiskOptions, RamOptions
from roost.settings import read_settings
from tests.support.fleets.fleets import fleet, host_view, hosts
from tests.support.fleets.worlds import aggregate, chosen_hosts, host, roost_with, settings_of

FLAVOR = Flavor(name="f", vcpus=4, memory_mb=1024, root_gb=10, ephemeral_gb=5, swap=512)
REQUEST = Spec(Request(flavor=FLAVOR), now_s=0.0)


def test_virtual_cpus_may_be_overcommitted_but_not_by_one_instance():
    view = hosts(vcpus_total=[4, 4, 3, 0], vcpus_used=[60, 61, 0, 99])
    rule = Core(CoreOptions())
    assert rule.keep(view, REQUEST).tolist() == [True, False, False, True]
    assert rule.limits(view, REQUEST) == [{"vcpu": 64.0}, {"vcpu": 64.0}, {"vcpu": 48.0}, {}]
    assert rule.warnings(view, REQUEST) == ["hosts with an unknown number of virtual CPUs are accepted"]
    assert rule.host_reasons(view, REQUEST)[1:3] == [
        "has 61 of 64 virtual CPUs in use, 4 required",
        "has 3 virtual CPUs in total, 4 required",
    ]
    assert rule.reason(REQUEST) == "lack 4 virtual CPUs or more"


def test_zero_cpu_ratio_accepts_only_requests_without_cpus():
    no_cpus = Spec(Request(flavor=Flavor(name="f", vcpus=0)), now_s=0.0)
    view = hosts(vcpus_total=[4], vcpus_used=[0])
    rule = Core(CoreOptions(cpu_allocation_ratio=0))
    assert rule.keep(view, no_cpus).tolist() == [True]
    assert rule.keep(view, REQUEST).tolist() == [False]
    assert rule.limits(view, REQUEST) == [{}]


def test_memory_may_be_overcommitted_but_not_by_one_instance():
    view = hosts(total_usable_ram_mb=[1024, 1024, 1023], free_ram_mb=[512, 511, 1023])
    rule = Ram(RamOptions())
    assert rule.keep(view, REQUEST).tolist() == [True, False, False]
    assert rule.limits(view, REQUEST)[0] == {"memory_mb": 1536.0}


def test_disk_counts_root_ephemeral_and_swap():
    view = hosts(total_usable_disk_gb=[20, 20, 15], free_disk_mb=[15 * 1024 + 512, 15 * 1024 + 511, 99999])
    rule = Disk(DiskOptions())
    assert rule.keep(view, REQUEST).tolist() == [True, False, False]
    assert rule.limits(view, REQUEST)[0] == {"disk_gb": 20.0}


@pytest.mark.shows("S008", "S023", "S026", "S027")
@pytest.mark.parametrize(
    ("rule", "key", "columns", "limit"),
    [
        (AggregateCore(CoreOptions()), "cpu_allocation_ratio", {"vcpus_total": 8.0, "vcpus_used": 8.0}, {"vcpu": 16.0}),
        (
            AggregateRam(RamOptions(ram_allocation_ratio=1)),
            "ram_allocation_ratio",
            {"total_usable_ram_mb": 1024.0, "free_ram_mb": 0.0},
            {"memory_mb": 2048.0},
        ),
        (
            AggregateDisk(DiskOptions()),
            "disk_allocation_ratio",
            {"total_usable_disk_gb": 20.0, "free_disk_mb": 0.0},
            {"disk_gb": 40.0},
        ),
    ],
)
def test_lowest_aggregate_ratio_applies_or_else_the_setting(rule, key, columns, limit):
    state = fleet(
        *[HostFacts()] * 3,
        aggregates=[({key: "2"}, [0, 1]), ({key: "1.0"}, [1]), ({key: "2"}, [2]), ({key: "much"}, [2])],
    )
    for name, value in columns.items():
        state.hosts.columns[name].data[:3] = value
    view = host_view(state)
    is_accepted_by_default = rule.default > 1
    assert rule.keep(view, REQUEST).tolist() == [True, False, is_accepted_by_default]
    assert rule.limits(view, REQUEST)[0] == limit
    assert rule.warnings(view, REQUEST) == [
        f"aggregate metadata {key}='much' of aggregate-4 is not a valid number; the default holds for its hosts"
    ]
    one = host_view(state, [1])
    assert rule.keep(one, REQUEST).tolist() == [False]


def test_ratio_can_differ_per_host():
    view = hosts(total_usable_ram_mb=[1024, 1024], free_ram_mb=[0, 0])
    rule = Ram.of_hosts(np.array([1.0, 2.0]))
    assert rule.keep(view, REQUEST).tolist() == [False, True]


@pytest.mark.shows("S009")
def test_picks_alternates_and_evidence_carry_the_limits():
    settings = settings_of(enabled_filters=["CoreFilter", "RamFilter"])
    roost = roost_with(host("a", VCPU=8, MEMORY_MB=2048), host("b", VCPU=4, MEMORY_MB=1024), settings=settings)
    request = Request(flavor=Flavor(name="small", vcpus=1, memory_mb=1))
    decision = roost.decide(request)
    assert chosen_hosts(decision) == ["a"]
    assert decision.picks[0].limits == {"vcpu": 128.0, "memory_mb": 3072.0}
    assert [pick.limits for pick in decision.alternates[""]] == [{"vcpu": 64.0, "memory_mb": 1536.0}]
    stored_decision = roost.decision(decision.uuid)
    assert (stored_decision.picks, stored_decision.alternates) == (decision.picks, decision.alternates)


def test_forced_host_has_no_limits():
    roost = roost_with(host("a"), settings=settings_of(enabled_filters=["CoreFilter"]))
    request = Request(flavor=Flavor(name="small", vcpus=1, memory_mb=1), force_hosts=("a",))
    assert roost.decide(request).picks[0].limits == {}


@pytest.mark.shows("S088")
def test_ratio_of_the_settings_applies_without_aggregate_metadata():
    assert (CoreOptions().cpu_allocation_ratio, RamOptions().ram_allocation_ratio) == (16.0, 1.5)
    assert DiskOptions().disk_allocation_ratio == 1.0
    text = "[DEFAULT]\ncpu_allocation_ratio = 2\nram_allocation_ratio = 3\ndisk_allocation_ratio = 4\n"
    metadata = {"cpu_allocation_ratio": "1", "ram_allocation_ratio": "1", "disk_allocation_ratio": "1"}
    fleets = [
        host("plain", VCPU=8, MEMORY_MB=8, DISK_GB=8),
        aggregate("strict", **metadata),
        host("joined", VCPU=8, MEMORY_MB=8, DISK_GB=8, aggregates=["strict"]),
    ]
    filters = """[filter_scheduler]
enabled_filters = ["AggregateCoreFilter", "AggregateRamFilter", "AggregateDiskFilter"]"""
    roost = roost_with(*fleets, settings=read_settings(text + filters))
    decision = roost.decide(Request(flavor=Flavor(name="small", vcpus=1, memory_mb=1, root_gb=1)))
    limits = {pick.host: pick.limits for pick in [*decision.picks, *decision.alternates[""]]}
    assert limits == {
        "plain": {"vcpu": 16.0, "memory_mb": 24.0, "disk_gb": 32.0},
        "joined": {"vcpu": 8.0, "memory_mb": 8.0, "disk_gb": 8.0},
    }
