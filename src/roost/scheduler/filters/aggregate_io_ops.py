"""aggregate_io_ops: hosts with few I/O operations in flight, by the limits of their aggregates."""

from roost.scheduler.rule_support.limits import BelowAggregateLimit, IoOpsLimit


class AggregateIoOps(IoOpsLimit, BelowAggregateLimit):
    """Keep hosts with fewer I/O operations in flight than the lowest limit of their aggregates, else of the settings.

    Source:
        nova/scheduler/filters/io_ops_filter.py, AggregateIoOpsFilter.
    """

    nova_name = "AggregateIoOpsFilter"
