"""metrics: metrics reported by hosts."""

from typing import Annotated, ClassVar, Literal

import msgspec
import numpy as np

from roost.engine.columns.types import Mask, Scores
from roost.errors import BadSettings, ComputeHostMetricNotFound
from roost.scheduler.framework.base_rule import BaseWeigher
from roost.scheduler.framework.host_view import HostView
from roost.scheduler.framework.spec import Spec
from roost.scheduler.rule_support.aggregate_metadata import lowest_value
from roost.scheduler.rule_support.host_metrics import WeightSetting, metric, parse_setting, unknown_metrics
from roost.scheduler.rule_support.ratios import parse_finite


class MetricsOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of ``metrics``."""

    weight_multiplier: Annotated[float, msgspec.Meta(description="Weight of the sum of metrics.")] = 1.0
    weight_setting: WeightSetting = ()
    required: Annotated[
        bool,
        msgspec.Meta(
            description="Whether a host that lacks a metric is an error; if not, weight_of_unavailable applies."
        ),
    ] = True
    weight_of_unavailable: Annotated[
        float, msgspec.Meta(description="Raw weight of a host without one of the metrics, if they are not required.")
    ] = -10000.0


class Metrics(BaseWeigher[MetricsOptions]):
    """Weigh hosts by the sum of their metrics, each multiplied by its ratio.

    Source:
        nova/scheduler/weights/metrics.py. The aggregates' key differs from the option's name.
    """

    nova_name = "MetricsWeigher"
    section = "metrics"
    options = MetricsOptions
    multiplier_option = "weight_multiplier"
    aggregate_key = "metrics_weight_multiplier"
    reads_facts_only: ClassVar[Literal[True]] = True

    def __init__(self, options: MetricsOptions) -> None:
        super().__init__(options)
        self._ratios, self._bad_pairs = parse_setting(options.weight_setting)

    def concerns(self, spec: Spec) -> bool:
        """Return whether the setting names a metric."""
        return bool(self._ratios)

    def raw(self, hosts: HostView, spec: Spec) -> Scores:
        """Return the sums: NaN if a required metric is missing."""
        return hosts.memoize(("metrics", hosts.epoch, self._options), self._sums)

    def unweighable(self, hosts: HostView, spec: Spec) -> ComputeHostMetricNotFound:
        """Return the error for the first of the hosts: its first missing metric."""
        missing = next(name for name in self._ratios if bool(np.isnan(metric(hosts, name)[0])))
        return ComputeHostMetricNotFound(host=hosts.name(0), node=hosts.nodes()[0], name=missing)

    def warnings(self, hosts: HostView, spec: Spec) -> list[str]:
        """Warn about ignored elements of the setting, and about unknown metrics."""
        return [*map(str, self._bad_pairs), *unknown_metrics(hosts, self._ratios)]

    @staticmethod
    def bad_options(options: MetricsOptions) -> list[BadSettings]:
        """Return the elements of the setting that are ignored."""
        return parse_setting(options.weight_setting)[1]

    def _sums(self, hosts: HostView) -> Scores:
        options = self._options
        totals: Scores = np.zeros(len(hosts))
        is_unavailable: Mask = np.zeros(len(hosts), dtype=np.bool_)
        multipliers = lowest_value(hosts, self.aggregate_key, default=options.weight_multiplier, cast=parse_finite)
        for name, ratio in self._ratios.items():
            values = metric(hosts, name)
            if options.required:
                totals += values * ratio
            else:
                is_missing = np.isnan(values)
                # A missing metric without weight does no harm.
                is_unavailable |= is_missing & (multipliers * ratio != 0.0)
                totals += np.where(is_missing, 0.0, values) * ratio
        totals[is_unavailable] = options.weight_of_unavailable
        return totals
