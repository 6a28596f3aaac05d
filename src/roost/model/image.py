"""Images: the disks that instances boot from."""

from collections.abc import Mapping

import msgspec

# Current property names -> their old names, still in use on images of old clouds.
OLD_NAMES = {
    "hw_architecture": "architecture",
    "img_hv_type": "hypervisor_type",
    "hw_vm_mode": "vm_mode",
    "img_hv_requested_version": "hypervisor_version_requires",
}
_PRESENT_NAMES = {old: present for present, old in OLD_NAMES.items()}


class Image(msgspec.Struct, frozen=True, kw_only=True):
    """An image as the scheduler sees it."""

    id: str | None = None
    disk_format: str | None = None
    properties: dict[str, str] = {}


def present_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties of an image by their current names; the current name wins over the old one.

    >>> present_properties({"architecture": "x86_64", "os_distro": "debian"})
    {'hw_architecture': 'x86_64', 'os_distro': 'debian'}
    """
    renamed = {_PRESENT_NAMES[name]: text for name, text in properties.items() if name in _PRESENT_NAMES}
    return renamed | {name: text for name, text in properties.items() if name not in _PRESENT_NAMES}
