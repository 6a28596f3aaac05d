"""aggregate_num_instances: hosts with few instances, by the limits of their aggregates."""

from roost.scheduler.rule_support.limits import BelowAggregateLimit, InstanceLimit


class AggregateNumInstances(BelowAggregateLimit, InstanceLimit):
    """Keep hosts with fewer instances than the lowest limit of their aggregates, else of the settings.

    Source:
        nova/scheduler/filters/num_instances_filter.py, AggregateNumInstancesFilter.
    """

    nova_name = "AggregateNumInstancesFilter"
