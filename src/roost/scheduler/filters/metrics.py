"""metrics: hosts that report what is to be weighed."""

from collections.abc import Hashable
from typing import ClassVar

import msgspec
import numpy as np

from roost.engine.columns.types import Mask
from roost.errors import BadSettings
from roost.scheduler.framework.host_view import HostView
from roost.scheduler.framework.plugin import Reads
from roost.scheduler.framework.spec import Spec
from roost.scheduler.rule_support.host_metrics import WeightSetting, parse_setting


class MetricsOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of ``metrics``."""

    weight_setting: WeightSetting = ()


class Metrics:
    """Keep hosts that report every metric of the weigher's setting.

    Source:
        nova/scheduler/filters/metrics_filter.py.
    """

    name: ClassVar = "metrics"
    nova_name: ClassVar = "MetricsFilter"
    section: ClassVar = "metrics"
    options: ClassVar = MetricsOptions
    run_filter_once_per_request: ClassVar = False
    run_on_rebuild: ClassVar = False

    def __init__(self, options: MetricsOptions) -> None:
        self._ratios, self._bad_pairs = parse_setting(options.weight_setting)
        self._names = frozenset(self._ratios)

    def reads(self, spec: Spec) -> Reads:
        """Say when a verdict has to be made again."""
        return "facts"

    def concerns(self, spec: Spec) -> bool:
        """Say whether any host can be refused: only if a metric is named."""
        return bool(self._names)

    def verdict_key(self, spec: Spec) -> Hashable:
        """Return what of the request a verdict depends on: nothing."""
        return None

    def keep(self, hosts: HostView, spec: Spec) -> Mask:
        """Keep hosts that report all of the metrics."""
        return np.array([facts.metrics.keys() >= self._names for facts in hosts.all_facts()], dtype=np.bool_)

    def host_reasons(self, hosts: HostView, spec: Spec) -> list[str]:
        """Say which metrics each host does not report."""
        missing = [sorted(self._names - facts.metrics.keys()) for facts in hosts.all_facts()]
        return [f"does not report {', '.join(names)}" if names else "" for names in missing]

    def warnings(self, hosts: HostView, spec: Spec) -> list[str]:
        """Say what of the setting cannot be read."""
        return [*map(str, self._bad_pairs)]

    @staticmethod
    def bad_options(options: MetricsOptions) -> list[BadSettings]:
        """Say which elements of the setting are dropped."""
        return parse_setting(options.weight_setting)[1]

    def reason(self, spec: Spec) -> str:
        """Say what refused hosts do not do."""
        return f"do not report all of the metrics {', '.join(self._ratios)}"
