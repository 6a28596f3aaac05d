"""aggregate_image_properties_isolation: hosts whose aggregates accept the image's properties."""

from collections.abc import Hashable
from typing import Annotated

import msgspec
import numpy as np

from roost.engine.columns.types import Mask
from roost.scheduler.framework.base_rule import BaseFilter
from roost.scheduler.framework.host_view import HostView
from roost.scheduler.framework.image_text import image_text, is_image_property
from roost.scheduler.framework.plugin import Reads
from roost.scheduler.framework.spec import Spec
from roost.scheduler.rule_support.aggregate_metadata import match_aggregates


class AggregateImagePropertiesIsolationOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of ``aggregate_image_properties_isolation``."""

    aggregate_image_properties_isolation_namespace: Annotated[
        str, msgspec.Meta(description="Prefix of the metadata keys to read, without the separator; empty: all keys.")
    ] = ""
    aggregate_image_properties_isolation_separator: Annotated[
        str, msgspec.Meta(description="Separator between the namespace and the rest of a key.")
    ] = "."


class AggregateImagePropertiesIsolation(BaseFilter[AggregateImagePropertiesIsolationOptions]):
    """Keep hosts whose aggregates accept every property of the image.

    A metadata key named like an image property lists the accepted values. An image without this property fits
    everywhere.

    Source:
        nova/scheduler/filters/aggregate_image_properties_isolation.py.
    """

    nova_name = "AggregateImagePropertiesIsolation"
    options = AggregateImagePropertiesIsolationOptions
    run_filter_once_per_request = True
    run_on_rebuild = True

    def reads(self, spec: Spec) -> Reads:
        """Return which changes invalidate a verdict."""
        return "facts"

    def concerns(self, spec: Spec) -> bool:
        """Return whether the image has properties."""
        return spec.image is not None and bool(spec.image.properties)

    def verdict_key(self, spec: Spec) -> Hashable:
        """Return the verdict key: the image's properties."""
        return None if spec.image is None else tuple(sorted(spec.image.properties.items()))

    def keep(self, hosts: HostView, spec: Spec) -> Mask:
        """Keep hosts if, for each property in their aggregates, the image has one of the values."""
        verdicts: Mask = np.ones(len(hosts), dtype=np.bool_)
        for key in {key for metadata, _ in hosts.aggregate_members() for key in metadata if self._is_read(key)}:
            value = image_text(spec.image, key)
            if value:
                has_key, has_value = match_aggregates(hosts, key, value.__eq__)
                verdicts &= has_value | ~has_key
        return verdicts

    def warnings(self, hosts: HostView, spec: Spec) -> list[str]:
        """Warn about metadata keys in the namespace without an image property of this name."""
        if not self._options.aggregate_image_properties_isolation_namespace:
            return []  # Without a namespace, every unrelated metadata key would cause a warning.
        keys = {key for _, metadata in hosts.aggregate_metadata() for key in metadata if self._is_read(key)}
        return [
            f"aggregate metadata {key} is ignored, because no image property has this name"
            for key in sorted(keys)
            if not is_image_property(key)
        ]

    def reason(self, spec: Spec) -> str:
        """Describe the rejected hosts."""
        return "are in aggregates for images with other properties"

    def _is_read(self, key: str) -> bool:
        options = self._options
        namespace = options.aggregate_image_properties_isolation_namespace
        separator = options.aggregate_image_properties_isolation_separator
        return not namespace or key.startswith(f"{namespace}{separator}")
