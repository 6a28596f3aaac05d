"""aggregate_type_affinity: hosts whose aggregates are reserved for some flavors."""

from collections.abc import Hashable

from roost.engine.columns.types import Mask
from roost.scheduler.framework.base_rule import BaseFilter
from roost.scheduler.framework.host_view import HostView
from roost.scheduler.framework.plugin import NoOptions, Reads
from roost.scheduler.framework.spec import Spec
from roost.scheduler.rule_support.aggregate_metadata import match_aggregates


class AggregateTypeAffinity(BaseFilter[NoOptions]):
    """Keep hosts whose aggregates name the flavor under ``instance_type``, and hosts whose aggregates name no flavor.

    Source:
        nova/scheduler/filters/type_filter.py.
    """

    nova_name = "AggregateTypeAffinityFilter"
    run_filter_once_per_request = True

    def reads(self, spec: Spec) -> Reads:
        """Return which changes invalidate a verdict."""
        return "facts"

    def verdict_key(self, spec: Spec) -> Hashable:
        """Return the verdict key: the name of the flavor."""
        return spec.flavor.name

    def keep(self, hosts: HostView, spec: Spec) -> Mask:
        """Keep hosts open to all flavors, or to this one."""
        has_key, has_value = match_aggregates(hosts, "instance_type", spec.flavor.name.__eq__)
        return has_value | ~has_key

    def reason(self, spec: Spec) -> str:
        """Describe the rejected hosts."""
        return f"are in aggregates for other flavors than {spec.flavor.name}"
