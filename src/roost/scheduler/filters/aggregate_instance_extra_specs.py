"""aggregate_instance_extra_specs: hosts whose aggregates match the flavor's extra specs."""

from collections.abc import Hashable, Iterator
from functools import partial

import numpy as np

from roost.engine.columns.types import Mask
from roost.model.flavor import Flavor
from roost.scheduler.framework.base_rule import BaseFilter
from roost.scheduler.framework.host_view import HostView
from roost.scheduler.framework.plugin import NoOptions, Reads
from roost.scheduler.framework.spec import Spec
from roost.scheduler.rule_support.aggregate_metadata import match_aggregates
from roost.scheduler.rule_support.operators import impossible_reason, matches

_SCOPE = "aggregate_instance_extra_specs"


class AggregateInstanceExtraSpecs(BaseFilter[NoOptions]):
    """Keep hosts if, for each extra spec, one of their aggregates has a matching value.

    The filter reads extra specs in the scope ``aggregate_instance_extra_specs`` and those without a scope, which
    ``compute_capabilities`` reads, too. This filter rejects hosts without an aggregate.

    Source:
        nova/scheduler/filters/aggregate_instance_extra_specs.py.
    """

    nova_name = "AggregateInstanceExtraSpecsFilter"
    run_filter_once_per_request = True

    def reads(self, spec: Spec) -> Reads:
        """Return which changes invalidate a verdict."""
        return "facts"

    def concerns(self, spec: Spec) -> bool:
        """Return whether the flavor has extra specs for this filter."""
        return any(True for _ in _requirements(spec.flavor))

    def verdict_key(self, spec: Spec) -> Hashable:
        """Return the verdict key: the extra specs for this filter."""
        return tuple(sorted(_requirements(spec.flavor)))

    def keep(self, hosts: HostView, spec: Spec) -> Mask:
        """Keep hosts whose aggregates match every extra spec."""
        verdicts: Mask = np.ones(len(hosts), dtype=np.bool_)
        for key, requirement in _requirements(spec.flavor):
            _, has_value = match_aggregates(hosts, key, partial(_matches, requirement=requirement))
            verdicts &= has_value
        return verdicts

    def warnings(self, hosts: HostView, spec: Spec) -> list[str]:
        """Warn about extra specs without any possible match."""
        read = {key: requirement for key, requirement in spec.flavor.extra_specs.items() if _is_read(key)}
        problems = [(key, requirement, impossible_reason(requirement)) for key, requirement in read.items()]
        return [
            f"extra spec {key}={requirement!r} rejects all hosts: {reason}"
            for key, requirement, reason in problems
            if reason
        ]

    def reason(self, spec: Spec) -> str:
        """Describe the rejected hosts."""
        requirements = "; ".join(f"{key} {requirement}" for key, requirement in _requirements(spec.flavor))
        return f"are in no aggregate with: {requirements}"


def _requirements(flavor: Flavor) -> Iterator[tuple[str, str]]:
    for key, requirement in flavor.extra_specs.items():
        if _is_read(key):
            yield key.removeprefix(f"{_SCOPE}:"), requirement


def _is_read(key: str) -> bool:
    scope, colon, _ = key.partition(":")
    return not colon or scope == _SCOPE


def _matches(value: str, *, requirement: str) -> bool:
    return matches(value, requirement)
