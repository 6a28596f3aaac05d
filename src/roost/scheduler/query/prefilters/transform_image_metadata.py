"""Require hosts with the image's devices and architecture."""

from roost.scheduler.framework.image_properties import architecture
from roost.scheduler.query.prefilter import NOTHING, Effect, PrefilterContext, require_root_traits, trait_words

_TRAITS = {
    "hw_cdrom_bus": "COMPUTE_STORAGE_BUS",
    "hw_disk_bus": "COMPUTE_STORAGE_BUS",
    "hw_video_model": "COMPUTE_GRAPHICS_MODEL",
    "hw_vif_model": "COMPUTE_NET_VIF_MODEL",
    "hw_architecture": "HW_ARCH",
    "hw_emulation_architecture": "COMPUTE_ARCH",
    "hw_viommu_model": "COMPUTE_VIOMMU",
}
# Models named differently by VMware images and by traits.
_MODELS = {
    "virtuale1000": "e1000",
    "virtuale1000e": "e1000e",
    "virtualpcnet32": "pcnet",
    "virtualsriovethernetcard": "sriov",
    "virtualvmxnet": "vmxnet",
    "virtualvmxnet3": "vmxnet3",
}


def transform_image_metadata(context: PrefilterContext) -> Effect:
    """Require the trait of each device property of the image; if one is not a standard trait, require none.

    Source:
        nova/scheduler/request_filter.py, transform_image_metadata.
    """
    image = context.request.image
    if not context.settings.image_metadata_prefilter or image is None:
        return NOTHING
    traits = [
        f"{prefix}_{trait_words(_normalize(name, image.properties[name]))}"
        for name, prefix in _TRAITS.items()
        if image.properties.get(name)
    ]
    return require_root_traits(*traits) if traits else NOTHING


def _normalize(name: str, value: str) -> str:
    if name.endswith("_architecture"):
        return architecture(value) or value
    return _MODELS.get(value.lower(), value) if name == "hw_vif_model" else value
