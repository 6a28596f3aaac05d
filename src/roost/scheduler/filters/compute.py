"""compute: hosts with an enabled service that is up."""

import math
from collections.abc import Hashable
from typing import Annotated

import msgspec
import numpy as np

from roost.engine.columns.types import Mask
from roost.model.host import HostFacts, is_up
from roost.scheduler.framework.base_rule import BaseFilter
from roost.scheduler.framework.host_view import HostView
from roost.scheduler.framework.plugin import Reads
from roost.scheduler.framework.spec import Spec


class ComputeOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of ``compute``."""

    service_down_time: Annotated[
        int, msgspec.Meta(ge=0, description="Seconds without a report after which a host counts as down.")
    ] = 60


class Compute(BaseFilter[ComputeOptions]):
    """Keep hosts whose service is enabled, not forced down, and reported recently or never.

    A host without any report counts as up. A report time in the future counts like a past time at the same distance.

    Source:
        nova/scheduler/filters/compute_filter.py and nova/servicegroup/drivers/db.py, is_up.
    """

    nova_name = "ComputeFilter"
    section = "DEFAULT"
    options = ComputeOptions
    run_filter_once_per_request = True

    def __init__(self, options: ComputeOptions) -> None:
        super().__init__(options)
        self._down_time_s = options.service_down_time

    def reads(self, spec: Spec) -> Reads:
        """Return "facts"; ``holds_until_s`` covers changes by time alone."""
        return "facts"

    def verdict_key(self, spec: Spec) -> Hashable:
        """Return one key for all requests."""
        return None

    def keep(self, hosts: HostView, spec: Spec) -> Mask:
        """Keep hosts that are enabled and up."""
        now_s, down_time_s = spec.now_s, self._down_time_s
        return np.array(
            [
                not facts.is_disabled and is_up(facts, now_s=now_s, down_time_s=down_time_s)
                for facts in hosts.all_facts()
            ],
            dtype=np.bool_,
        )

    def host_reasons(self, hosts: HostView, spec: Spec) -> list[str]:
        """Return whether each host is disabled, forced down or silent."""
        return [_describe_state(facts, spec.now_s) for facts in hosts.all_facts()]

    def holds_until_s(self, hosts: HostView, spec: Spec) -> float:
        """Return the last moment at which all hosts have their present states, if their facts do not change."""
        reports = [facts.reported_at_s for facts in hosts.all_facts() if facts.reported_at_s is not None]
        if not reports:
            return math.inf
        reported_at_s = np.array(reports, dtype=np.float64)
        last_up = reported_at_s + self._down_time_s
        last_down = np.nextafter(reported_at_s - self._down_time_s, -math.inf)
        moments = np.concatenate((last_up, last_down))
        return float(min(moments[moments >= spec.now_s], default=math.inf))

    def reason(self, spec: Spec) -> str:
        """Describe the rejected hosts."""
        return "are disabled or down"


def _describe_state(facts: HostFacts, now_s: float) -> str:
    if facts.is_disabled:
        return f"is disabled: {facts.disabled_reason}" if facts.disabled_reason else "is disabled"
    if facts.is_forced_down:
        return "is forced down"
    return (
        "" if facts.reported_at_s is None else f"is down: its last report was {now_s - facts.reported_at_s:,.0f} s ago"
    )
