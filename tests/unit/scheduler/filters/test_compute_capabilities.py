import pytest

from roost.compat.scheduler.host_list import HostList
from roost.compat.scheduler.host_state import HostState
from roost.model.host import HostFacts
from roost.scheduler.filters.compute_capabilities import ComputeCapabilities
from roost.scheduler.framework.plugin import NoOptions
from tests.support.fleets.fleets import fleet, host_view, hosts, spec

RULE = ComputeCapabilities(NoOptions())
QEMU = HostFacts(
    hypervisor_type="QEMU",
    hypervisor_version=6002000,
    cpu_info={"arch": "x86_64", "features": ["aes", "avx"], "topology": {"cores": 8}, "maxphysaddr": {"bits": 46}},
    stats={"rank": "3", "nested": '{"colour": "red"}'},
)
XEN = HostFacts(hypervisor_type="xen", hypervisor_version=4001000, cpu_info={"arch": "ppc64"}, stats={"rank": "x"})
UNKNOWN = HostFacts()


def verdicts_of(**extra_specs):
    specs = {key.replace("__", ":"): value for key, value in extra_specs.items()}
    return RULE.keep(host_view(fleet(QEMU, XEN, UNKNOWN)), spec(specs)).tolist()


@pytest.mark.shows("S020", "S077")
@pytest.mark.parametrize(
    ("key", "requirement", "verdicts"),
    [
        ("hypervisor_type", "s== QEMU", [True, False, False]),
        ("capabilities:hypervisor_version", ">= 6000000", [True, False, False]),
        ("capabilities:cpu_info:features", "<all-in> aes avx", [True, False, False]),
        ("capabilities:cpu_info:topology:cores", "= 8", [True, False, False]),
        ("capabilities:cpu_info:arch", "<or> ppc64 <or> x86_64", [True, True, False]),
        ("capabilities:cpu_info", '<in> "ppc64"', [False, True, False]),
        ("hw:maxphysaddr_bits", "46", [True, False, False]),
        ("capabilities:host", "<in> 2", [False, True, False]),
        ("capabilities:nested:colour", "red", [True, False, False]),
        ("capabilities:stats:rank", "3", [True, False, False]),
        ("capabilities:nobody_knows", "1", [False, False, False]),
    ],
)
def test_extra_spec_is_compared_with_the_host_capability(key, requirement, verdicts):
    assert verdicts_of(**{key: requirement}) == verdicts


@pytest.mark.shows("S020")
def test_unscoped_extra_spec_binds_only_hosts_with_that_capability():
    assert verdicts_of(rank="3") == [True, False, True]
    assert verdicts_of(nobody_knows="1") == [True, True, True]


@pytest.mark.shows("S078")
def test_extra_specs_of_other_scopes_are_ignored():
    assert not RULE.concerns(spec({"hw:cpu_policy": "dedicated", "trait:HW_CPU_X86_AVX": "required"}))
    assert RULE.concerns(spec({"hypervisor_type": "QEMU"}))


def test_non_numeric_capability_refuses_only_its_host():
    assert verdicts_of(capabilities__rank=">= 3") == [True, False, False]


def test_free_memory_requirement_is_checked_at_each_claim():
    request = spec({"free_ram_mb": ">= 2048"})
    assert RULE.reads(request) == "use"
    assert RULE.reads(spec({"hypervisor_type": "QEMU"})) == "facts"
    assert RULE.keep(hosts(free_ram_mb=[1024, 2048, 4096]), request).tolist() == [False, True, True]


def test_text_operators_compare_numbers_as_text():
    assert RULE.keep(hosts(num_instances=[0, 7, 10]), spec({"num_instances": "7"})).tolist() == [False, True, False]
    assert RULE.keep(hosts(vcpus_total=[1, 7, 10]), spec({"vcpus_total": "<in> 1"})).tolist() == [True, False, True]
    ratio = spec({"cpu_allocation_ratio": "s== 16.0"})
    assert RULE.keep(hosts(cpu_allocation_ratio=[16.0, 1.5]), ratio).tolist() == [True, False]


@pytest.mark.shows("S051", "S062")
@pytest.mark.parametrize(
    ("key", "requirement", "values", "verdicts"),
    [
        ("free_ram_mb", ">= 4096", [4095, 4096, 8192], [False, True, True]),
        ("free_disk_mb", ">= 10240", [10239, 10240, 20480], [False, True, True]),
        ("hypervisor_version", ">= 1005003", [1005002, 1005003, 2000000], [False, True, True]),
        ("hypervisor_version", "== 2000000", [1005002, 1005003, 2000000], [False, False, True]),
        ("num_instances", "<= 10", [10, 11, 0], [True, False, True]),
        ("num_io_ops", "<= 10", [10, 11, 0], [True, False, True]),
        ("vcpus_total", "= 48", [47, 48, 96], [False, True, True]),
        ("vcpus_used", "= 0", [0, 1, 48], [True, True, True]),
    ],
)
def test_host_numbers_are_capabilities_with_and_without_scope(key, requirement, values, verdicts):
    if key == "hypervisor_version":
        view = host_view(fleet(*[HostFacts(hypervisor_version=value) for value in values]))
    else:
        view = hosts(**{key: values})
    for name in (key, f"capabilities:{key}"):
        assert RULE.keep(view, spec({name: requirement})).tolist() == verdicts


@pytest.mark.shows("S051", "S062")
@pytest.mark.parametrize(
    ("key", "requirement", "verdicts"),
    [
        ("host", "<in> compute", [True, True, False]),
        ("host", "s== compute_01", [True, False, False]),
        ("hypervisor_type", "s== QEMU", [True, False, True]),
    ],
)
def test_host_names_are_capabilities_with_and_without_scope(key, requirement, verdicts):
    view = HostList(
        [
            HostState("compute_01", "a", hypervisor_type="QEMU"),
            HostState("compute_02", "b", hypervisor_type="xen"),
            HostState("storage_01", "c", hypervisor_type="QEMU"),
        ]
    )
    for name in (key, f"capabilities:{key}"):
        assert RULE.keep(view, spec({name: requirement})).tolist() == verdicts


def test_operator_without_a_space_after_it_is_a_warning():
    specs = {"capabilities:vcpus_total": ">=24", "capabilities:hypervisor_type": "QEMU", "other:key": ">=1"}
    assert RULE.warnings(host_view(fleet(QEMU)), spec(specs)) == [
        "extra spec capabilities:vcpus_total='>=24' is compared as text: >= needs a blank after it"
    ]
