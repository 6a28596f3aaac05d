"""metrics: hosts that report the metrics of the metrics weigher."""

from collections.abc import Hashable

import msgspec
import numpy as np

from roost.engine.columns.types import Mask
from roost.errors import BadSettings
from roost.scheduler.framework.base_rule import BaseFilter
from roost.scheduler.framework.host_view import HostView
from roost.scheduler.framework.plugin import Reads
from roost.scheduler.framework.spec import Spec
from roost.scheduler.rule_support.host_metrics import WeightSetting, parse_setting


class MetricsOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of ``metrics``."""

    weight_setting: WeightSetting = ()


class Metrics(BaseFilter[MetricsOptions]):
    """Keep hosts that report every metric of the weigher's setting.

    Source:
        nova/scheduler/filters/metrics_filter.py.
    """

    nova_name = "MetricsFilter"
    section = "metrics"
    options = MetricsOptions

    def __init__(self, options: MetricsOptions) -> None:
        super().__init__(options)
        self._ratios, self._bad_pairs = parse_setting(options.weight_setting)
        self._names = frozenset(self._ratios)

    def reads(self, spec: Spec) -> Reads:
        """Return which changes invalidate a verdict."""
        return "facts"

    def concerns(self, spec: Spec) -> bool:
        """Return whether the setting names a metric."""
        return bool(self._names)

    def verdict_key(self, spec: Spec) -> Hashable:
        """Return one key for all requests."""
        return None

    def keep(self, hosts: HostView, spec: Spec) -> Mask:
        """Keep hosts that report all of the metrics."""
        return np.array([facts.metrics.keys() >= self._names for facts in hosts.all_facts()], dtype=np.bool_)

    def host_reasons(self, hosts: HostView, spec: Spec) -> list[str]:
        """Return the missing metrics of each host."""
        missing = [sorted(self._names - facts.metrics.keys()) for facts in hosts.all_facts()]
        return [f"does not report {', '.join(names)}" if names else "" for names in missing]

    def warnings(self, hosts: HostView, spec: Spec) -> list[str]:
        """Warn about invalid elements of the setting."""
        return [*map(str, self._bad_pairs)]

    @staticmethod
    def bad_options(options: MetricsOptions) -> list[BadSettings]:
        """Return the elements of the setting that are ignored."""
        return parse_setting(options.weight_setting)[1]

    def reason(self, spec: Spec) -> str:
        """Describe the rejected hosts."""
        return f"do not report all of the metrics {', '.join(self._ratios)}"
