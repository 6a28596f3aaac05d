"""num_instances: hosts with few instances."""

from typing import ClassVar

from roost.scheduler.rule_support.limits import InstanceLimit, InstancesOptions


class NumInstances(InstanceLimit):
    """Keep hosts with fewer instances than the limit.

    Source:
        nova/scheduler/filters/num_instances_filter.py.
    """

    name: ClassVar = "num_instances"
    nova_name: ClassVar = "NumInstancesFilter"
    section: ClassVar = "filter_scheduler"
    options: ClassVar = InstancesOptions
    run_filter_once_per_request: ClassVar = False
    run_on_rebuild: ClassVar = False

    def __init__(self, options: InstancesOptions) -> None:
        super().__init__(options.max_instances_per_host)
