"""Placement's names for PCI devices: resource classes and traits."""

import re
from collections.abc import Iterable

from roost.model.names import standard_resource_classes, standard_traits


def class_of_device(name: str, *, vendor_id: str, product_id: str) -> str:
    """Return the resource class of devices in Placement; the caller must check it, because a name may be too long.

    Args:
        name: name from an alias or a device specification; empty: derive it from vendor and product.

    >>> class_of_device("", vendor_id="10de", product_id="1db4")
    'CUSTOM_PCI_10DE_1DB4'
    >>> class_of_device("fast gpu", vendor_id="10de", product_id="1db4")
    'CUSTOM_FAST_GPU'
    """
    return _normal(name or f"PCI_{vendor_id}_{product_id}", standard_resource_classes())


def traits_of_device(text: str) -> list[str]:
    """Return the traits in a comma-separated text, in the spelling of Placement.

    >>> traits_of_device("hw_gpu_api_vulkan, big one")
    ['CUSTOM_BIG_ONE', 'HW_GPU_API_VULKAN']
    """
    names = (word.strip() for word in text.split(","))
    return sorted({_normal(name, standard_traits()) for name in names if name})


def _normal(name: str, standard: Iterable[str]) -> str:
    """Return a name in the spelling of Placement, with the prefix ``CUSTOM_`` unless it is a standard name.

    >>> _normal("my gpu--x", ()), _normal("CUSTOM_A", ()), _normal("vgpu", ("VGPU",))
    ('CUSTOM_MY_GPU_X', 'CUSTOM_A', 'VGPU')
    """
    upper = name.upper()
    if upper in standard:
        return upper
    words = re.sub(r"[^A-Z0-9_]+", "_", upper)
    return words if words.startswith("CUSTOM_") else f"CUSTOM_{words}"
