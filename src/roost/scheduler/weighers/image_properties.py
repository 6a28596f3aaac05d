"""image_properties: instances with similar images."""

from typing import Annotated

import msgspec
import numpy as np

from roost.engine.columns.types import Scores
from roost.errors import BadSettings
from roost.model.image import present_properties
from roost.scheduler.framework.base_rule import BaseWeigher
from roost.scheduler.framework.host_view import HostView
from roost.scheduler.framework.image_text import normalize_property
from roost.scheduler.framework.spec import Spec
from roost.scheduler.rule_support.ratios import parse_ratios


class ImagePropertiesWeights(msgspec.Struct, frozen=True, kw_only=True):
    """Options of ``image_properties``."""

    image_props_weight_multiplier: Annotated[
        float,
        msgspec.Meta(description="Weight of instances with similar images; negative spreads, 0 is off."),
    ] = 0.0
    image_props_weight_setting: Annotated[
        tuple[str, ...],
        msgspec.Meta(description="Image properties and their weights, each name=weight; empty: all, with weight 1."),
    ] = ()


class ImageProperties(BaseWeigher[ImagePropertiesWeights]):
    """Weigh hosts by their instances whose images share properties with the requested image.

    Source:
        nova/scheduler/weights/image_props.py.
    """

    nova_name = "ImagePropertiesWeigher"
    options = ImagePropertiesWeights
    multiplier_option = "image_props_weight_multiplier"

    def __init__(self, options: ImagePropertiesWeights) -> None:
        super().__init__(options)
        self._weights, self._bad_pairs = _parse_weights(options)

    def concerns(self, spec: Spec) -> bool:
        """Return whether any property has a weight and the configured multiplier is not 0; aggregates do not matter."""
        return self.multiplier != 0.0 and any(weight for _, _, weight in self._property_weights(spec))

    def raw(self, hosts: HostView, spec: Spec) -> Scores:
        """Return the sum over all properties: weight times number of instances with the same value in their image."""
        sums: Scores = np.zeros(len(hosts))
        for name, text, weight in self._property_weights(spec):
            sums += hosts.image_counts(name, text) * weight
        return sums

    def warnings(self, hosts: HostView, spec: Spec) -> list[str]:
        """Warn about elements of the setting that are ignored."""
        return [*map(str, self._bad_pairs)]

    @staticmethod
    def bad_options(options: ImagePropertiesWeights) -> list[BadSettings]:
        """Return the elements of the setting that are ignored."""
        return _parse_weights(options)[1]

    def _property_weights(self, spec: Spec) -> list[tuple[str, str, float]]:
        """Return name, value and weight of each property of the requested image, ordered by name."""
        if spec.image is None:
            return []
        properties = sorted(present_properties(spec.image.properties).items())
        weights = self._weights
        return [
            (name, normalize_property(name, text), weights.get(name, 0.0) if weights else 1.0)
            for name, text in properties
        ]


def _parse_weights(options: ImagePropertiesWeights) -> tuple[dict[str, float], list[BadSettings]]:
    return parse_ratios(options.image_props_weight_setting, setting="filter_scheduler.image_props_weight_setting")
