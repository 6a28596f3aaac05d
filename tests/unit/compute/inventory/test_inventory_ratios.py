import pytest

from roost.compute.inventory.inventory_ratios import allocation_ratio, reserve_of, settings_ratios
from roost.model.work.agent_terms import HostTerms

PLACEMENT = {"VCPU": {"total": 8, "allocation_ratio": 7.0}, "DISK_GB": {"total": 8}}


@pytest.mark.parametrize(
    ("terms", "resource_class", "present", "ratio"),
    [
        ({}, "VCPU", [], 4.0),
        ({}, "MEMORY_MB", [], 1.0),
        ({}, "DISK_GB", [], 1.0),
        ({"initial_ram_allocation_ratio": 1.5}, "MEMORY_MB", [{}], 1.5),
        ({"initial_cpu_allocation_ratio": 1.5}, "VCPU", [PLACEMENT], 7.0),
        ({"cpu_allocation_ratio": 2.0}, "VCPU", [PLACEMENT], 2.0),
        ({"cpu_allocation_ratio": 0.0}, "VCPU", [PLACEMENT], 7.0),
        ({"cpu_allocation_ratio": 0.0}, "VCPU", [], 4.0),
        ({"disk_allocation_ratio": 2.0}, "VCPU", [], 4.0),
        ({}, "VCPU", [{"VCPU": {"total": 1, "allocation_ratio": 3.0}}, PLACEMENT], 3.0),
        ({}, "VCPU", [{}, PLACEMENT], 7.0),
        ({"initial_disk_allocation_ratio": 2.0}, "DISK_GB", [PLACEMENT], 2.0),
        ({"cpu_allocation_ratio": 2.0}, "PCPU", [{"PCPU": {"allocation_ratio": 9.0}}], 1.0),
        ({}, "CUSTOM_A", [], 1.0),
    ],
)
def test_ratio_comes_from_settings_then_placement_then_initial_value(terms, resource_class, present, ratio):
    assert allocation_ratio(HostTerms(**terms), resource_class, present) == ratio


def test_reserve_follows_the_settings_with_disk_in_whole_gib():
    terms = HostTerms(reserved_host_cpus=2, reserved_host_memory_mb=100, reserved_host_disk_mb=1025)
    assert [reserve_of(terms, name) for name in ("VCPU", "MEMORY_MB", "DISK_GB", "PCPU")] == [2, 100, 2, 0]
    assert [reserve_of(HostTerms(), name) for name in ("VCPU", "MEMORY_MB", "DISK_GB")] == [0, 512, 0]


def test_only_ratios_of_the_settings_are_fixed():
    assert settings_ratios(HostTerms()) == {}
    terms = HostTerms(cpu_allocation_ratio=0.0, ram_allocation_ratio=1.5, initial_cpu_allocation_ratio=9.0)
    assert settings_ratios(terms) == {"MEMORY_MB": 1.5}
