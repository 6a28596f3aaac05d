"""aggregate_num_instances: hosts with few instances, by the limits of their aggregates."""

from typing import ClassVar

from roost.scheduler.rule_support.limits import BelowAggregateLimit, InstanceLimit, InstancesOptions


class AggregateNumInstances(BelowAggregateLimit, InstanceLimit):
    """Keep hosts with fewer instances than the lowest limit of their aggregates, else of the settings.

    Source:
        nova/scheduler/filters/num_instances_filter.py, AggregateNumInstancesFilter.
    """

    name: ClassVar = "aggregate_num_instances"
    nova_name: ClassVar = "AggregateNumInstancesFilter"
    section: ClassVar = "filter_scheduler"
    options: ClassVar = InstancesOptions
    run_filter_once_per_request: ClassVar = False
    run_on_rebuild: ClassVar = False
    key: ClassVar = "max_instances_per_host"

    def __init__(self, options: InstancesOptions) -> None:
        super().__init__(options.max_instances_per_host)
