"""Extra specs of the virtual hardware of an instance."""

from roost.compat.api.validation.extra_specs.extra_spec import ExtraSpecValidator

_PROCESSORS = r"\^?\d+(?:-\d+)?(?:,\^?\d+(?:-\d+)?)*"  # a set of numbers: 0-3,^1
_NODE = ({"name": "node", "pattern": r"\d+"},)

_CHOICES = {
    "cpu_policy": ("Whether processors are shared.", "dedicated mixed shared"),
    "cpu_thread_policy": ("How threads of one core are used.", "isolate prefer require"),
    "emulator_threads_policy": ("The processors for the emulator's threads.", "isolate share"),
    "ephemeral_encryption_format": ("How ephemeral disks are encrypted.", "luks"),
    "maxphysaddr_mode": ("The source of the width of physical addresses.", "emulate passthrough"),
    "mem_encryption_model": ("How memory is encrypted.", "amd-sev amd-sev-es amd-sev-snp intel-tdx"),
    "pci_numa_affinity_policy": ("How near devices must be.", "legacy preferred required socket"),
    "sound_model": ("The sound device.", "ac97 es1370 ich6 ich9 pcspk sb16 usb virtio"),
    "tpm_model": ("The model of the virtual TPM.", "tpm-crb tpm-tis"),
    "tpm_secret_security": ("The owner of the virtual TPM's secret.", "deployment host user"),
    "tpm_version": ("The version of the virtual TPM.", "1.2 2.0"),
    "usb_model": ("The USB controller.", "nec-xhci none qemu-xhci"),
    "viommu_model": ("The virtual IOMMU.", "auto intel smmuv3 virtio"),
    "watchdog_action": ("The action when the watchdog expires.", "disabled none pause poweroff reset"),
}
_SWITCHES = {
    "boot_menu": "Whether a menu is shown at boot.",
    "cpu_realtime": "Whether processors are for realtime work.",
    "ephemeral_encryption": "Whether ephemeral disks are encrypted.",
    "hide_hypervisor_id": "Whether the hypervisor is hidden from the instance.",
    "locked_memory": "Whether memory is never swapped out.",
    "mem_encryption": "Whether memory is encrypted.",
    "vif_multiqueue_enabled": "Whether network interfaces have several queues.",
    "virtio_packed_ring": "Whether network interfaces use packed rings.",
}
_COUNTS = {
    "cpu_cores": ("Cores per socket.", 1),
    "cpu_max_cores": ("Maximum cores per socket.", 1),
    "cpu_max_sockets": ("Maximum sockets.", 1),
    "cpu_max_threads": ("Maximum threads per core.", 1),
    "cpu_sockets": ("Sockets.", 1),
    "cpu_threads": ("Threads per core.", 1),
    "maxphysaddr_bits": ("Bits of a physical address.", 1),
    "numa_nodes": ("NUMA nodes.", 1),
    "serial_port_count": ("Serial ports.", 0),
}
_TEXTS = {
    "cpu_dedicated_mask": ("The dedicated processors, if the others are shared.", _PROCESSORS),
    "cpu_realtime_mask": ("The processors for realtime work.", _PROCESSORS),
    "mem_page_size": ("The size of memory pages.", r"(?:large|small|any|\d+(?:[kKMGT]i?)?(?:b|bit|B)?)"),
    "pmem": ("Labels of persistent memory, separated by commas.", r"[A-Za-z0-9_]+(?:,[A-Za-z0-9_]+)*,?"),
}


def register() -> list[ExtraSpecValidator]:
    """Return the validators of the namespace ``hw``."""
    return [*_choices(), *_switches(), *_counts(), *_texts(), *_nodes(), _usb_ports()]


def _choices() -> list[ExtraSpecValidator]:
    return [
        ExtraSpecValidator(name=f"hw:{name}", description=text, value={"type": str, "enum": values.split()})
        for name, (text, values) in _CHOICES.items()
    ]


def _switches() -> list[ExtraSpecValidator]:
    return [
        ExtraSpecValidator(name=f"hw:{name}", description=text, value={"type": bool})
        for name, text in _SWITCHES.items()
    ]


def _counts() -> list[ExtraSpecValidator]:
    return [
        ExtraSpecValidator(name=f"hw:{name}", description=text, value={"type": int, "min": minimum})
        for name, (text, minimum) in _COUNTS.items()
    ]


def _texts() -> list[ExtraSpecValidator]:
    return [
        ExtraSpecValidator(name=f"hw:{name}", description=text, value={"type": str, "pattern": pattern})
        for name, (text, pattern) in _TEXTS.items()
    ]


def _nodes() -> list[ExtraSpecValidator]:
    return [
        ExtraSpecValidator(
            name="hw:numa_cpus.{node}",
            description="Processors of the instance on one of its NUMA nodes.",
            value={"type": str, "pattern": _PROCESSORS},
            parameters=_NODE,
        ),
        ExtraSpecValidator(
            name="hw:numa_mem.{node}",
            description="Memory of the instance on one of its NUMA nodes, MiB.",
            value={"type": int, "min": 1},
            parameters=_NODE,
        ),
    ]


def _usb_ports() -> ExtraSpecValidator:
    return ExtraSpecValidator(
        name="hw:redirected_usb_ports",
        description="USB ports for devices of the client.",
        value={"type": int, "min": 0, "max": 15},
    )
