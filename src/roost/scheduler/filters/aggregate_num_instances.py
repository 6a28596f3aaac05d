"""aggregate_num_instances: hosts with few instances, by limits that aggregates set."""

from typing import ClassVar

from roost.scheduler.limits import BelowLimitOfAggregates, InstancesOptions, OfInstances
from roost.scheduler.rules import Reads
from roost.scheduler.spec import Spec


class AggregateNumInstances(BelowLimitOfAggregates, OfInstances):
    """Keep hosts with fewer instances than the least limit of their aggregates, or of the settings.

    Source:
        nova/scheduler/filters/num_instances_filter.py, AggregateNumInstancesFilter.
    """

    name: ClassVar = "aggregate_num_instances"
    nova_name: ClassVar = "AggregateNumInstancesFilter"
    section: ClassVar = "filter_scheduler"
    options: ClassVar = InstancesOptions
    run_filter_once_per_request: ClassVar = False
    run_on_rebuild: ClassVar = False
    column: ClassVar = "num_instances"
    noun: ClassVar = "instances"
    key: ClassVar = "max_instances_per_host"

    def __init__(self, options: InstancesOptions) -> None:
        super().__init__(options.max_instances_per_host)

    def reads(self, spec: Spec) -> Reads:
        """Say when a verdict has to be made again."""
        return "use"
