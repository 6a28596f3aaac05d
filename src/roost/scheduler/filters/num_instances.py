"""num_instances: hosts with few instances."""

from roost.scheduler.rule_support.limits import InstanceLimit


class NumInstances(InstanceLimit):
    """Keep hosts with fewer instances than the limit.

    Source:
        nova/scheduler/filters/num_instances_filter.py.
    """

    nova_name = "NumInstancesFilter"
