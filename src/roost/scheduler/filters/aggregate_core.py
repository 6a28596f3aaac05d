"""aggregate_core: hosts with enough virtual CPUs, by the overcommit that aggregates set."""

from typing import ClassVar

from roost.scheduler.rule_support.overcommit import AggregateOvercommitFilter, CoreAmounts, CoreOptions


class AggregateCore(AggregateOvercommitFilter, CoreAmounts):
    """Keep hosts with virtual CPUs left for the instance, overcommit as aggregates or the settings say.

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
