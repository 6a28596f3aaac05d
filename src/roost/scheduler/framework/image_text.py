"""Image properties as normalized text, for comparison with aggregate metadata.

Source:
    nova/objects/image_meta.py, ImageMetaProps: the properties and their types.
"""

from collections.abc import Callable

from roost.model.image import Image
from roost.model.switches import is_true
from roost.scheduler.framework.image_properties import architecture, hypervisor, image_property, vm_mode

_SWITCHES = frozenset(
    {
        "hw_boot_menu",
        "hw_ephemeral_encryption",
        "hw_firmware_stateless",
        "hw_ipxe_boot",
        "hw_locked_memory",
        "hw_mem_encryption",
        "hw_pmu",
        "hw_qemu_guest_agent",
        "hw_time_hpet",
        "hw_vif_multiqueue_enabled",
        "hw_virtio_packed_ring",
        "img_bdm_v2",
        "img_bittorrent",
        "img_cache_in_nova",
        "img_hide_hypervisor_id",
        "img_linked_clone",
        "img_use_agent",
        "os_require_quiesce",
        "os_skip_agent_inject_files_at_boot",
        "os_skip_agent_inject_ssh",
    }
)
_NUMBERS = frozenset(
    {
        "hw_cpu_cores",
        "hw_cpu_max_cores",
        "hw_cpu_max_sockets",
        "hw_cpu_max_threads",
        "hw_cpu_sockets",
        "hw_cpu_threads",
        "hw_device_id",
        "hw_maxphysaddr_bits",
        "hw_numa_nodes",
        "hw_redirected_usb_ports",
        "hw_serial_port_count",
        "hw_video_ram",
        "img_compression_level",
        "img_version",
    }
)
_TEXTS = frozenset(
    {
        "hw_auto_disk_config",
        "hw_cdrom_bus",
        "hw_cpu_policy",
        "hw_cpu_realtime_mask",
        "hw_cpu_thread_policy",
        "hw_disk_bus",
        "hw_disk_type",
        "hw_ephemeral_encryption_format",
        "hw_ephemeral_encryption_secret_uuid",
        "hw_firmware_type",
        "hw_floppy_bus",
        "hw_input_bus",
        "hw_machine_type",
        "hw_maxphysaddr_mode",
        "hw_mem_encryption_model",
        "hw_mem_page_size",
        "hw_pci_numa_affinity_policy",
        "hw_pointer_model",
        "hw_rescue_bus",
        "hw_rescue_device",
        "hw_rng_model",
        "hw_scsi_model",
        "hw_sound_model",
        "hw_tpm_model",
        "hw_tpm_version",
        "hw_usb_model",
        "hw_video_model",
        "hw_vif_model",
        "hw_viommu_model",
        "hw_watchdog_action",
        "img_config_drive",
        "img_hv_requested_version",
        "img_owner_id",
        "img_root_device_name",
        "img_signature",
        "img_signature_certificate_uuid",
        "img_signature_hash_method",
        "img_signature_key_type",
        "os_admin_user",
        "os_command_line",
        "os_distro",
        "os_secure_boot",
    }
)
_NORMALIZERS: dict[str, Callable[[str], str | None]] = {
    "hw_architecture": architecture,
    "hw_emulation_architecture": architecture,
    "hw_vm_mode": vm_mode,
    "img_hv_type": hypervisor,
    "os_type": str.lower,
}
_PROPERTIES = _SWITCHES | _NUMBERS | _TEXTS | _NORMALIZERS.keys()
_OFF = dict.fromkeys(_SWITCHES, "False") | dict.fromkeys(_NUMBERS, "0")


def is_image_property(name: str) -> bool:
    """Return whether Nova defines an image property of this name."""
    return name in _PROPERTIES


def image_text(image: Image | None, name: str) -> str | None:
    """Return an image's property in the form used by aggregate metadata.

    Returns:
        None if the image does not set the property, if the value is off or 0, or if the property is unknown.

    >>> image_text(Image(properties={"hw_boot_menu": "yes"}), "hw_boot_menu")
    'True'
    >>> image_text(Image(properties={"color": "red"}), "color") is None
    True
    """
    value = image_property(image, name)
    if not value or not is_image_property(name):
        return None
    text = normalize_property(name, value)
    return None if text == _OFF.get(name) else text


def value_kind(name: str) -> type:
    """Return the type of a property in Nova: number, switch or text.

    >>> value_kind("hw_boot_menu"), value_kind("hw_cpu_sockets"), value_kind("color")
    (<class 'bool'>, <class 'int'>, <class 'str'>)
    """
    return bool if name in _SWITCHES else int if name in _NUMBERS else str


def normalize_property(name: str, value: str) -> str:
    """Return the normalized value of a property; an unknown property keeps its value.

    >>> normalize_property("hw_boot_menu", "yes"), normalize_property("hw_cpu_sockets", "02")
    ('True', '2')
    >>> normalize_property("color", "Red")
    'Red'
    """
    if name in _SWITCHES:
        return "True" if is_true(value) else "False"
    if name in _NUMBERS:
        try:
            return str(int(value))
        except ValueError:
            return value
    normalize = _NORMALIZERS.get(name)
    return value if normalize is None else normalize(value) or value
