"""aggregate_core: hosts with enough virtual CPUs, by the overcommit of their aggregates."""

from typing import ClassVar

from roost.scheduler.rule_support.overcommit import AggregateOvercommitFilter, CoreAmounts, CoreOptions


class AggregateCore(AggregateOvercommitFilter, CoreAmounts):
    """Keep hosts with enough free virtual CPUs; aggregates, else the settings, define the overcommit.

    Source:
        nova/scheduler/filters/core_filter.py of 21.0.0, AggregateCoreFilter.
    """

    name: ClassVar = "aggregate_core"
    nova_name: ClassVar = "AggregateCoreFilter"
    section: ClassVar = "DEFAULT"
    options: ClassVar = CoreOptions
    run_filter_once_per_request: ClassVar = False
    run_on_rebuild: ClassVar = False
    key: ClassVar = "cpu_allocation_ratio"

    def __init__(self, options: CoreOptions) -> None:
        super().__init__(options.cpu_allocation_ratio)
