"""aggregate_multi_tenancy_isolation: hosts that aggregates keep for some projects."""

from collections.abc import Hashable
from typing import ClassVar

import msgspec
import numpy as np

from roost.engine.columns.types import Mask
from roost.scheduler.framework.host_view import HostView
from roost.scheduler.framework.plugin import NoOptions, Reads
from roost.scheduler.framework.spec import Spec
from roost.scheduler.rule_support.aggregate_metadata import split_values

_KEY = "filter_tenant_id"


class AggregateMultiTenancyIsolation:
    """Keep hosts whose aggregates name the project, and hosts whose aggregates name none.

    All metadata keys that begin with ``filter_tenant_id`` count together, since one value has only so much room.

    Source:
        nova/scheduler/filters/aggregate_multitenancy_isolation.py.
    """

    name: ClassVar = "aggregate_multi_tenancy_isolation"
    nova_name: ClassVar = "AggregateMultiTenancyIsolation"
    section: ClassVar = "filter_scheduler"
    options: ClassVar[type[msgspec.Struct]] = NoOptions
    run_filter_once_per_request: ClassVar = True
    run_on_rebuild: ClassVar = False

    def __init__(self, options: NoOptions) -> None:
        self._options = options

    def reads(self, spec: Spec) -> Reads:
        """Say when a verdict has to be made again."""
        return "facts"

    def concerns(self, spec: Spec) -> bool:
        """Say whether any host can be refused: for every request."""
        return True

    def verdict_key(self, spec: Spec) -> Hashable:
        """Return what of the request a verdict depends on: the project."""
        return spec.request.project_id

    def keep(self, hosts: HostView, spec: Spec) -> Mask:
        """Keep hosts that are for everybody, or for this project."""
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
        """Say what refused hosts are."""
        return f"are in aggregates for other projects than {spec.request.project_id or 'none'}"
