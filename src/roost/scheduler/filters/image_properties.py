"""image_properties: hosts that support the image's platform."""

from collections.abc import Hashable
from typing import Annotated, NamedTuple

import msgspec
import numpy as np

from roost.engine.columns.types import Mask
from roost.errors import quote_value
from roost.model.host import HostFacts
from roost.scheduler.framework.base_rule import BaseFilter
from roost.scheduler.framework.host_view import HostView
from roost.scheduler.framework.image_properties import (
    architecture,
    hypervisor,
    image_property,
    is_architecture,
    matches_version,
    vm_mode,
)
from roost.scheduler.framework.plugin import Reads
from roost.scheduler.framework.spec import Spec


class ImagePropertiesOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of ``image_properties``."""

    image_properties_default_architecture: Annotated[
        str, msgspec.Meta(description="Architecture for images that name none; empty: any.")
    ] = ""

    def __post_init__(self) -> None:
        name = self.image_properties_default_architecture
        if name and not is_architecture(name):
            raise ValueError("image_properties_default_architecture is not an architecture, such as x86_64 or aarch64")


class _Requirements(msgspec.Struct, frozen=True):
    """An image's requirements on its host."""

    instance: tuple[str, ...]  # architecture, hypervisor type and VM mode, without those that are unset
    version: str | None
    address_bits: int | None


class _Platform(NamedTuple):
    """The platform that a host supports."""

    instances: tuple[tuple[str, str, str], ...]  # architecture, hypervisor type and VM mode of each
    version: int  # of the hypervisor; 0: unknown
    address_bits: int | None  # None: unknown


class ImageProperties(BaseFilter[ImagePropertiesOptions]):
    """Keep hosts that support the image's architecture, hypervisor type, hypervisor version and VM mode.

    An image without architecture, type and mode fits everywhere, even if it requires a version.

    Source:
        nova/scheduler/filters/image_props_filter.py.
    """

    nova_name = "ImagePropertiesFilter"
    options = ImagePropertiesOptions
    run_filter_once_per_request = True
    run_on_rebuild = True

    def __init__(self, options: ImagePropertiesOptions) -> None:
        super().__init__(options)
        self._default_architecture = options.image_properties_default_architecture

    def reads(self, spec: Spec) -> Reads:
        """Return which changes invalidate a verdict."""
        return "facts"

    def concerns(self, spec: Spec) -> bool:
        """Return whether the image has an architecture, hypervisor type or VM mode."""
        return bool(self._requirements(spec).instance)

    def verdict_key(self, spec: Spec) -> Hashable:
        """Return the verdict key: the image's properties."""
        return None if spec.image is None else tuple(sorted(spec.image.properties.items()))

    def keep(self, hosts: HostView, spec: Spec) -> Mask:
        """Keep hosts that support the image's requirements."""
        required = self._requirements(spec)
        platforms, codes = hosts.distinct_values(ImageProperties.name, _platform)
        verdicts = [_supports(platform, required) for platform in platforms]
        mask: Mask = np.array(verdicts, dtype=np.bool_)[codes]
        return mask

    def reason(self, spec: Spec) -> str:
        """Describe the rejected hosts."""
        required = self._requirements(spec)
        text = f"cannot run {', '.join(required.instance) or 'any'} images"
        if required.version is not None:
            text += f" that require hypervisor version {required.version}"
        return text if required.address_bits is None else f"{text} with {required.address_bits} physical address bits"

    def warnings(self, hosts: HostView, spec: Spec) -> list[str]:
        """Warn about an unknown architecture in the image."""
        name = image_property(spec.image, "hw_architecture")
        if name is None or is_architecture(name):
            return []
        return [
            f"image property hw_architecture={quote_value(name)} is not an architecture; for ARM use armv7l or aarch64"
        ]

    def _requirements(self, spec: Spec) -> _Requirements:
        image = spec.image
        names = (
            architecture(image_property(image, "hw_architecture") or self._default_architecture),
            hypervisor(image_property(image, "img_hv_type")),
            vm_mode(image_property(image, "hw_vm_mode")),
        )
        bits = image_property(image, "hw_maxphysaddr_bits")
        return _Requirements(
            tuple(name for name in names if name),
            image_property(image, "img_hv_requested_version"),
            int(bits) if bits is not None and bits.isdecimal() else None,
        )


def _platform(facts: HostFacts) -> _Platform:
    entry = facts.cpu_info.get("maxphysaddr")
    bits = entry.get("bits") if isinstance(entry, dict) else None
    return _Platform(facts.supported_instances, facts.hypervisor_version, bits if isinstance(bits, int) else None)


def _supports(platform: _Platform, required: _Requirements) -> bool:
    number, bits = platform.version, platform.address_bits
    if required.version is not None and number:
        version = (number // 1_000_000, number // 1_000 % 1_000, number % 1_000)
        if not matches_version(version, required.version):
            return False
    if required.address_bits is not None and bits is not None and bits < required.address_bits:
        return False
    return any(all(name in supported for name in required.instance) for supported in platform.instances)
