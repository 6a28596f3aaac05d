"""Host metrics: the setting that names them, and their columns."""

from collections.abc import Iterable
from typing import Annotated

import msgspec
import numpy as np

from roost.engine.columns.types import Scores
from roost.errors import BadSettings
from roost.scheduler.framework.host_view import HostView
from roost.scheduler.rule_support.ratios import parse_ratios

# Metrics of the monitors in Nova's compute agent; hosts may report others.
NOVA_METRICS = frozenset(
    {
        "cpu.frequency",
        "cpu.user.time",
        "cpu.kernel.time",
        "cpu.idle.time",
        "cpu.iowait.time",
        "cpu.user.percent",
        "cpu.kernel.percent",
        "cpu.idle.percent",
        "cpu.iowait.percent",
        "cpu.percent",
        "numa.membw.max",
        "numa.membw.current",
    }
)
_SETTING = "metrics.weight_setting"
# The type of the option, shared by all rules with it.
WeightSetting = Annotated[tuple[str, ...], msgspec.Meta(description="Metrics and their ratios, each name=ratio.")]


def parse_setting(pairs: Iterable[str]) -> tuple[dict[str, float], list[BadSettings]]:
    """Return the ratio of each metric in ``[metrics] weight_setting``, and its invalid elements.

    >>> parse_setting(["cpu.percent=-1.0", "cpu.frequency"])[0]
    {'cpu.percent': -1.0}
    """
    return parse_ratios(pairs, setting=_SETTING)


def metric(hosts: HostView, name: str) -> Scores:
    """Return one metric of each host: float64, read-only, NaN unless the host reports a finite number."""

    def make(all_hosts: HostView) -> Scores:
        values = np.array([facts.metrics.get(name, np.nan) for facts in all_hosts.all_facts()], dtype=np.float64)
        values[~np.isfinite(values)] = np.nan
        return values

    return hosts.memoize(("metric", name), make)


def unknown_metrics(hosts: HostView, names: Iterable[str]) -> list[str]:
    """Warn about metrics that no host reports and no monitor of Nova defines."""
    unknown = [name for name in names if name not in NOVA_METRICS and bool(np.isnan(metric(hosts, name)).all())]
    return [f"{_SETTING}: no host reports {name!r}, and Nova's monitors do not define it" for name in unknown]
