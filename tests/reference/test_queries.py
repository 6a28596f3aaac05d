"""The Placement query of a flavor and image equals that of a slow builder."""

from hypothesis import given
from hypothesis import strategies as st

from roost.errors import BadRequest
from roost.model.flavor import Flavor
from roost.model.host import HostFacts
from roost.model.image import Image
from roost.model.request import Request
from roost.model.settings.roost_settings import Scheduler as SchedulerSettings
from roost.scheduler.query.build import build_query
from tests.reference import queries as slow
from tests.support.fleets.fleets import fleet

STATE = fleet(HostFacts())


def optional_keys(**values):
    """Return a strategy for dictionaries with any of these keys; a double underscore is a colon."""
    optional = {key.replace("__", ":"): st.sampled_from(choices) for key, choices in values.items()}
    return st.fixed_dictionaries({}, optional=optional)


amounts = ["0", "1", "7", "many"]
specs = optional_keys(
    resources__VCPU=amounts,
    resources__PCPU=amounts,
    resources__MEMORY_MB=amounts,
    resources__CUSTOM_GOLD=amounts,
    resources1__VCPU=amounts,
    resources_x__CUSTOM_GOLD=amounts,
    trait__CUSTOM_A=["required", "forbidden", "maybe"],
    trait1__CUSTOM_A=["required", "forbidden"],
    hw__cpu_policy=["shared", "dedicated", "mixed"],
    hw__cpu_dedicated_mask=["0", "1,3", "^0", "^0,1", "0,1,2,3"],
    hw__cpu_thread_policy=["require", "isolate"],
    hw__emulator_threads_policy=["share", "isolate"],
    hw__mem_encryption=["true", "false"],
    hw__pmem=["a", "a,b,a", ""],
    hw__tpm_version=["1.2", "2.0"],
    os__secure_boot=["required", "optional"],
    hw__pci_numa_affinity_policy=["socket", "legacy"],
)
properties = optional_keys(
    traits_required=["CUSTOM_B", "CUSTOM_B,CUSTOM_C"],
    hw_cpu_policy=["shared", "dedicated"],
    hw_firmware_type=["uefi"],
    hw_tpm_version=["2.0"],
    hw_firmware_stateless=["true", "false"],
)
flavors = st.fixed_dictionaries(
    {
        "vcpus": st.integers(0, 4),
        "memory_mb": st.integers(0, 2),
        "root_gb": st.integers(0, 2),
        "ephemeral_gb": st.integers(0, 2),
        "swap": st.sampled_from([0, 1, 1024, 1025]),
        "extra_specs": specs,
    }
)


@given(flavors, properties, st.booleans())
def test_query_equals_that_of_the_slow_builder(flavor, image, is_bfv):
    request = Request(flavor=Flavor(name="f", **flavor), image=Image(properties=image), is_bfv=is_bfv)
    try:
        wanted = slow.build_query(flavor, image, is_bfv=is_bfv)
    except slow.Contradiction:
        wanted = None
    asked, required, forbidden = wanted or ({}, {}, {})
    both = {suffix for suffix, traits in required.items() if traits & forbidden.get(suffix, set())}
    if wanted is None or not asked or both:
        try:
            build_query(request, STATE, settings=SchedulerSettings())
        except BadRequest:
            return
        raise AssertionError("what cannot be meant was asked")
    groups = build_query(request, STATE, settings=SchedulerSettings()).query.groups
    assert {group.suffix: group.resources for group in groups if group.resources} == asked
    found = {group.suffix: {trait for traits in group.required for trait in traits} for group in groups}
    assert {suffix: traits for suffix, traits in found.items() if traits} == required
    assert {group.suffix: set(group.forbidden) for group in groups if group.forbidden} == forbidden
