"""Device settings of flavor and image: encryption, TPM, firmware, persistent memory."""

from roost.errors import BadRequest
from roost.model.names import is_resource_class
from roost.model.request import Request
from roost.model.switches import is_true
from roost.scheduler.framework.hw_settings import is_enabled, read_values, resolve_value
from roost.scheduler.query.draft import Draft, DraftGroup
from roost.scheduler.query.pci_requests import numa_policy

_ENCRYPTION = {
    "amd-sev": "HW_CPU_X86_AMD_SEV",
    "amd-sev-es": "HW_CPU_X86_AMD_SEV_ES",
    "amd-sev-snp": "HW_CPU_X86_AMD_SEV_SNP",
    "intel-tdx": "HW_CPU_X86_INTEL_TDX",
}
_STATELESS = frozenset({"amd-sev-snp", "intel-tdx"})  # models that need stateless firmware
_TPM_VERSIONS = {"1.2": "COMPUTE_SECURITY_TPM_1_2", "2.0": "COMPUTE_SECURITY_TPM_2_0"}
_TPM_MODELS = {"tpm-tis": "COMPUTE_SECURITY_TPM_TIS", "tpm-crb": "COMPUTE_SECURITY_TPM_CRB"}
_ADDRESSES = {"passthrough": "COMPUTE_ADDRESS_SPACE_PASSTHROUGH", "emulate": "COMPUTE_ADDRESS_SPACE_EMULATED"}
_SECURE_BOOT = ("required", "disabled", "optional")


def add_devices(draft: Draft, request: Request) -> None:
    """Add traits and amounts for the device settings of flavor and image.

    Raises:
        BadRequest: a value is invalid, or flavor and image contradict each other.
    """
    main = draft.main
    _add_encryption(main, request)
    _add_persistent_memory(draft, request)
    version = tpm_version(request)
    if version is not None:
        model = resolve_value(request, "tpm_model", allowed=_TPM_MODELS) or "tpm-tis"
        if model == "tpm-crb" and version != "2.0":
            raise BadRequest(f"a TPM of model tpm-crb has version 2.0, not {version}")
        main.require(_TPM_VERSIONS[version])
        main.require(_TPM_MODELS[model])
    if numa_policy(request) == "socket":
        main.require("COMPUTE_SOCKET_PCI_NUMA_AFFINITY")
    if resolve_value(request, "secure_boot", scope="os", allowed=_SECURE_BOOT) == "required":
        main.require("COMPUTE_SECURITY_UEFI_SECURE_BOOT")
    addresses = resolve_value(request, "maxphysaddr_mode", allowed=_ADDRESSES)
    if addresses is not None:
        main.require(_ADDRESSES[addresses])
    if is_true(read_values(request, "firmware_stateless")[1]):
        if _has_uefi(request):
            main.require("COMPUTE_SECURITY_STATELESS_FIRMWARE")
        else:
            draft.warnings.append("image property hw_firmware_stateless is ignored: it requires hw_firmware_type=uefi")


def tpm_version(request: Request) -> str | None:
    """Return the TPM version that flavor or image requires, if any.

    Raises:
        BadRequest: flavor and image contradict each other, or the version does not exist.
    """
    return resolve_value(request, "tpm_version", allowed=_TPM_VERSIONS)


def _add_encryption(main: DraftGroup, request: Request) -> None:
    if not is_enabled(request, "mem_encryption"):
        return
    if not _has_uefi(request):
        raise BadRequest("memory encryption needs an image with the property hw_firmware_type=uefi")
    machine = read_values(request, "machine_type")[1]
    if machine is not None and "q35" not in machine:
        raise BadRequest(f"memory encryption needs a machine of type q35, not {machine}")
    model = resolve_value(request, "mem_encryption_model", allowed=_ENCRYPTION) or "amd-sev"
    if model in _STATELESS and not is_true(read_values(request, "firmware_stateless")[1]):
        raise BadRequest(f"memory encryption {model} needs an image with the property hw_firmware_stateless=true")
    main.resources["MEM_ENCRYPTION_CONTEXT"] = 1
    main.require(_ENCRYPTION[model])


def _add_persistent_memory(draft: Draft, request: Request) -> None:
    """Add the number of persistent memory namespaces per label."""
    resources = draft.main.resources
    counts: dict[str, int] = {}
    for label in request.flavor.extra_specs.get("hw:pmem", "").split(","):
        if label.strip():
            name = "CUSTOM_PMEM_NAMESPACE_" + "".join(
                letter if letter.isascii() and letter.isalnum() else "_" for letter in label.strip().upper()
            )
            counts[name] = counts.get(name, 0) + 1
    for name, count in counts.items():
        if is_resource_class(name):
            resources[name] = count
        else:
            draft.warnings.append(f"extra spec hw:pmem: {name[:70]!r} is not a resource class and is ignored")


def _has_uefi(request: Request) -> bool:
    return read_values(request, "firmware_type")[1] == "uefi"
