"""Weigh hosts by metrics of one's own choice."""

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from roost.compat.exception import ComputeHostMetricNotFound
from roost.compat.scheduler.aggregates import number_from
from roost.compat.scheduler.weights import BaseHostWeigher

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsOptions:
    """Section ``[metrics]``, as the weigher reads it."""

    weight_multiplier: float = 1.0
    weight_setting: tuple[str, ...] = ()  # each name=ratio
    required: bool = True
    weight_of_unavailable: float = -10000.0


class MetricsWeigher(BaseHostWeigher):
    """Add up metrics, each times its ratio.

    Source:
        nova/scheduler/weights/metrics.py. The key of aggregates is ``metrics_weight_multiplier``, unlike the
        option's name.
    """

    def __init__(self, options: MetricsOptions | None = None) -> None:
        self._options = options or MetricsOptions()
        self.setting: list[tuple[str, float]] = []
        self._parse_setting()

    def _parse_setting(self) -> None:
        """Read the pairs of name and ratio once; those that cannot be read are dropped."""
        self.setting = list(_pairs(self._options.weight_setting))

    def weight_multiplier(self, host_state: Any = None) -> float:
        """Return the multiplier: what the host's aggregates set, else the setting."""
        multiplier = self._options.weight_multiplier
        if host_state is None:
            return multiplier
        return number_from(host_state, "metrics_weight_multiplier", default=multiplier, cast_to=float)

    def _weigh_object(self, host_state: Any, weight_properties: Any) -> float:
        value = 0.0
        for name, ratio in self.setting:
            metric = host_state.metrics.get(name)
            if metric is not None:
                value += float(getattr(metric, "value", metric)) * ratio
            elif self._options.required:
                raise ComputeHostMetricNotFound(host=host_state.host, node=host_state.nodename, name=name)
            elif ratio * self.weight_multiplier(host_state) != 0:
                # A host that hides a number that counts goes to the end.
                return self._options.weight_of_unavailable
        return value


def _pairs(texts: Iterable[str]) -> Iterable[tuple[str, float]]:
    for text in texts:
        name, _, ratio = text.partition("=")
        try:
            yield name.strip(), float(ratio)
        except ValueError:
            _log.warning("a metric's setting is dropped, it is not name=ratio: %s", text)
