"""A slow builder of the Placement query from plain dictionaries, after Nova's documented behaviour."""

import math

THREADS = "HW_CPU_HYPERTHREADING"
SECURITY = "COMPUTE_SECURITY_"


class Contradiction(Exception):
    """Flavor and image contradict each other."""


def build_query(flavor, image, *, is_bfv=False):
    """Return amounts, required traits and forbidden traits, each by group suffix.

    Args:
        flavor: has vcpus, memory_mb, root_gb, ephemeral_gb, swap and extra_specs.
        image: the image properties.
    """
    specs = flavor["extra_specs"]
    amounts, required, forbidden = {"": {}}, {}, {}
    for key, value in specs.items():
        kind, _, name = key.partition(":")
        if kind.startswith("resources"):
            if value.isdigit():
                amounts.setdefault(kind.removeprefix("resources"), {})[name] = int(value)
        elif kind.startswith("trait") and value == "required":
            required.setdefault(kind.removeprefix("trait"), set()).add(name)
        elif kind.startswith("trait") and value == "forbidden":
            forbidden.setdefault(kind.removeprefix("trait"), set()).add(name)
    more = required.setdefault("", set())
    more |= set(filter(None, image.get("traits_required", "").split(",")))
    processors(flavor, image, amounts[""])
    threads = specs.get("hw:cpu_thread_policy") or image.get("hw_cpu_thread_policy")
    if threads == "require":
        more.add(THREADS)
    elif threads == "isolate":
        forbidden.setdefault("", set()).add(THREADS)
    more |= devices(specs, image)
    if specs.get("hw:mem_encryption") == "true":
        amounts[""]["MEM_ENCRYPTION_CONTEXT"] = 1
    for label in filter(None, specs.get("hw:pmem", "").split(",")):
        name = f"CUSTOM_PMEM_NAMESPACE_{label.upper()}"
        amounts[""][name] = amounts[""].get(name, 0) + 1
    defaults(flavor, amounts, is_bfv=is_bfv)
    return tidy(amounts), tidy(required), tidy(forbidden)


def processors(flavor, image, amounts):
    """Add the dedicated and shared processors if a CPU policy is set."""
    specs, vcpus = flavor["extra_specs"], flavor["vcpus"]
    flavor_policy, image_policy = specs.get("hw:cpu_policy"), image.get("hw_cpu_policy")
    if flavor_policy in ("shared", "mixed") and image_policy == "dedicated":
        raise Contradiction
    policy = flavor_policy or image_policy
    extra = specs.get("hw:emulator_threads_policy") == "isolate"
    if policy == "dedicated":
        amounts["PCPU"] = vcpus + extra
    elif policy == "mixed" and "hw:cpu_dedicated_mask" not in specs:
        amounts["PCPU"], amounts["VCPU"] = int(extra), vcpus
    elif policy == "mixed":
        mask = specs["hw:cpu_dedicated_mask"]
        named = {int(each) for each in mask.removeprefix("^").split(",")}
        own = set(range(vcpus)) - named if mask.startswith("^") else named
        if not own or not own < set(range(vcpus)):
            raise Contradiction
        amounts["PCPU"], amounts["VCPU"] = len(own) + extra, vcpus - len(own)


def devices(specs, image):
    """Return the traits that devices and firmware require."""
    found = set()
    if specs.get("hw:mem_encryption") == "true":
        if image.get("hw_firmware_type") != "uefi":
            raise Contradiction
        found.add("HW_CPU_X86_AMD_SEV")
    versions = {specs.get("hw:tpm_version"), image.get("hw_tpm_version")} - {None}
    if len(versions) > 1:
        raise Contradiction
    for version in versions:
        found |= {f"{SECURITY}TPM_{version.replace('.', '_')}", f"{SECURITY}TPM_TIS"}
    if "required" in (specs.get("os:secure_boot"), image.get("os_secure_boot")):
        found.add(f"{SECURITY}UEFI_SECURE_BOOT")
    if image.get("hw_firmware_stateless") == "true" and image.get("hw_firmware_type") == "uefi":
        found.add(f"{SECURITY}STATELESS_FIRMWARE")
    if specs.get("hw:pci_numa_affinity_policy") == "socket":
        found.add("COMPUTE_SOCKET_PCI_NUMA_AFFINITY")
    return found


def defaults(flavor, amounts, *, is_bfv):
    """Add the flavor's amounts of all classes that no group names."""
    named = {name for group in amounts.values() for name in group}
    disk = flavor["ephemeral_gb"] + math.ceil(flavor["swap"] / 1024) + (0 if is_bfv else flavor["root_gb"])
    for name, amount, others in (
        ("VCPU", flavor["vcpus"], {"VCPU", "PCPU"}),
        ("MEMORY_MB", flavor["memory_mb"], {"MEMORY_MB"}),
        ("DISK_GB", disk, {"DISK_GB"}),
    ):
        if not named & others:
            amounts[""][name] = amount


def tidy(groups):
    """Remove zero amounts and empty groups."""
    kept = {
        suffix: {name: amount for name, amount in group.items() if amount} if isinstance(group, dict) else group
        for suffix, group in groups.items()
    }
    return {suffix: group for suffix, group in kept.items() if group}
