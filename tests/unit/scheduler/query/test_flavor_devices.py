"""Device requirements in the query. The expected values are those of Nova for the same flavors and images."""

import pytest

from roost.errors import BadRequest
from roost.model.flavor import Flavor
from roost.model.host import HostFacts
from roost.model.image import Image
from roost.model.request import Request
from roost.model.settings.roost_settings import Scheduler as SchedulerSettings
from roost.scheduler.query.build import build_query
from tests.support.fleets.fleets import fleet

STATE = fleet(HostFacts())
UEFI = {"hw_firmware_type": "uefi"}
ENCRYPTED = {"hw:mem_encryption": "true"}
TPM = "COMPUTE_SECURITY_TPM_"


def build(extra_specs, image=None):
    flavor = Flavor(name="f", vcpus=4, extra_specs=extra_specs)
    return build_query(Request(flavor=flavor, image=Image(properties=image or {})), STATE, settings=SchedulerSettings())


@pytest.mark.parametrize(
    ("extra_specs", "image", "traits"),
    [
        (ENCRYPTED, UEFI, {"HW_CPU_X86_AMD_SEV"}),
        ({}, UEFI | {"hw_mem_encryption": "True", "hw_machine_type": "q35"}, {"HW_CPU_X86_AMD_SEV"}),
        (ENCRYPTED | {"hw:mem_encryption_model": "amd-sev-es"}, UEFI, {"HW_CPU_X86_AMD_SEV_ES"}),
        (
            ENCRYPTED | {"hw:mem_encryption_model": "amd-sev-snp"},
            UEFI | {"hw_firmware_stateless": "true"},
            {"HW_CPU_X86_AMD_SEV_SNP", "COMPUTE_SECURITY_STATELESS_FIRMWARE"},
        ),
        ({"hw:mem_encryption": "maybe"}, {}, set()),
        ({"hw:tpm_version": "2.0"}, {}, {f"{TPM}2_0", f"{TPM}TIS"}),
        ({"hw:tpm_version": "1.2"}, {}, {f"{TPM}1_2", f"{TPM}TIS"}),
        ({"hw:tpm_version": "2.0", "hw:tpm_model": "tpm-crb"}, {}, {f"{TPM}2_0", f"{TPM}CRB"}),
        ({}, {"hw_tpm_version": "2.0", "hw_tpm_model": "tpm-tis"}, {f"{TPM}2_0", f"{TPM}TIS"}),
        ({"hw:tpm_model": "tpm-tis"}, {}, set()),
        ({"os:secure_boot": "required"}, {}, {"COMPUTE_SECURITY_UEFI_SECURE_BOOT"}),
        ({}, {"os_secure_boot": "required"}, {"COMPUTE_SECURITY_UEFI_SECURE_BOOT"}),
        ({"os:secure_boot": "optional"}, {}, set()),
        ({"hw:maxphysaddr_mode": "passthrough"}, {}, {"COMPUTE_ADDRESS_SPACE_PASSTHROUGH"}),
        ({}, {"hw_maxphysaddr_mode": "emulate"}, {"COMPUTE_ADDRESS_SPACE_EMULATED"}),
        ({"hw:maxphysaddr_bits": "42"}, {}, set()),
        ({}, UEFI | {"hw_firmware_stateless": "true"}, {"COMPUTE_SECURITY_STATELESS_FIRMWARE"}),
        ({"hw:firmware_stateless": "true"}, {}, set()),
        ({"hw:pci_numa_affinity_policy": "socket"}, {}, {"COMPUTE_SOCKET_PCI_NUMA_AFFINITY"}),
        ({}, {"hw_pci_numa_affinity_policy": "socket"}, {"COMPUTE_SOCKET_PCI_NUMA_AFFINITY"}),
        ({"hw:pci_numa_affinity_policy": "required"}, {}, set()),
    ],
)
def test_device_settings_of_flavor_and_image_become_traits(extra_specs, image, traits):
    group = build(extra_specs, image).query.groups[0]
    assert {trait for names in group.required for trait in names} == traits
    is_encrypted = any(trait.startswith("HW_CPU") for trait in traits)
    assert group.resources.get("MEM_ENCRYPTION_CONTEXT", 0) == is_encrypted


@pytest.mark.parametrize(
    ("extra_specs", "image", "problem"),
    [
        (ENCRYPTED, {}, "hw_firmware_type=uefi"),
        (ENCRYPTED, UEFI | {"hw_machine_type": "pc"}, "q35, not pc"),
        (ENCRYPTED, UEFI | {"hw_mem_encryption": "false"}, "contradicts"),
        (ENCRYPTED | {"hw:mem_encryption_model": "bogus"}, UEFI, "'bogus'"),
        (ENCRYPTED | {"hw:mem_encryption_model": "intel-tdx"}, UEFI, "hw_firmware_stateless=true"),
        ({"hw:tpm_version": "3"}, {}, "'3'"),
        ({"hw:tpm_version": "2.0"}, {"hw_tpm_version": "1.2"}, "contradicts"),
        ({"hw:tpm_version": "1.2", "hw:tpm_model": "tpm-crb"}, {}, "tpm-crb has version 2.0"),
        ({"hw:tpm_version": "2.0", "hw:tpm_model": "x"}, {}, "'x'"),
        ({"os:secure_boot": "bogus"}, {}, "'bogus'"),
        ({"hw:maxphysaddr_mode": "emulate"}, {"hw_maxphysaddr_mode": "passthrough"}, "contradicts"),
        ({"hw:pci_numa_affinity_policy": "required"}, {"hw_pci_numa_affinity_policy": "socket"}, "contradicts"),
    ],
)
def test_invalid_or_contradictory_device_settings_are_refused(extra_specs, image, problem):
    with pytest.raises(BadRequest, match=problem):
        build(extra_specs, image)


def test_stateless_firmware_without_uefi_is_ignored_with_a_warning():
    result = build({}, {"hw_firmware_stateless": "true"})
    assert result.query.groups[0].required == ()
    assert "hw_firmware_stateless" in result.warnings[0]


def test_persistent_memory_labels_become_resource_amounts():
    resources = build({"hw:pmem": "a, B,a,x.y,"}).query.groups[0].resources
    prefix = "CUSTOM_PMEM_NAMESPACE_"
    assert {name: amount for name, amount in resources.items() if name != "VCPU"} == {
        f"{prefix}A": 2,
        f"{prefix}B": 1,
        f"{prefix}X_Y": 1,
    }
