"""aggregate_multi_tenancy_isolation: hosts whose aggregates are reserved for some projects."""

from collections.abc import Hashable

import numpy as np

from roost.engine.columns.types import Mask
from roost.scheduler.framework.base_rule import BaseFilter
from roost.scheduler.framework.host_view import HostView
from roost.scheduler.framework.plugin import NoOptions, Reads
from roost.scheduler.framework.spec import Spec
from roost.scheduler.rule_support.aggregate_metadata import split_values

_KEY = "filter_tenant_id"


class AggregateMultiTenancyIsolation(BaseFilter[NoOptions]):
    """Keep hosts whose aggregates name the project, and hosts whose aggregates name no project.

    All metadata keys with the prefix ``filter_tenant_id`` count together, because the length of one value is limited.

    Source:
        nova/scheduler/filters/aggregate_multitenancy_isolation.py.
    """

    nova_name = "AggregateMultiTenancyIsolation"
    run_filter_once_per_request = True

    def reads(self, spec: Spec) -> Reads:
        """Return which changes invalidate a verdict."""
        return "facts"

    def verdict_key(self, spec: Spec) -> Hashable:
        """Return the verdict key: the project."""
        return spec.request.project_id

    def keep(self, hosts: HostView, spec: Spec) -> Mask:
        """Keep hosts open to all projects, or to this one."""
        is_dedicated, is_own = np.zeros((2, len(hosts)), dtype=np.bool_)
        for metadata, inside in hosts.aggregate_members():
            project_ids = {
                name for key, value in metadata.items() if key.startswith(_KEY) for name in split_values(value)
            }
            if project_ids:
                is_dedicated |= inside
            if spec.request.project_id in project_ids:
                is_own |= inside
        return is_own | ~is_dedicated

    def reason(self, spec: Spec) -> str:
        """Describe the rejected hosts."""
        return f"are in aggregates for other projects than {spec.request.project_id or 'none'}"
