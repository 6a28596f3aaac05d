"""aggregate_io_ops: hosts with few I/O operations in flight, by the limits of their aggregates."""

from typing import ClassVar

from roost.scheduler.rule_support.limits import BelowAggregateLimit, IoOpsLimit, IoOpsOptions


class AggregateIoOps(IoOpsLimit, BelowAggregateLimit):
    """Keep hosts with fewer I/O operations in flight than the lowest limit of their aggregates, else of the settings.

    Source:
        nova/scheduler/filters/io_ops_filter.py, AggregateIoOpsFilter.
    """

    name: ClassVar = "aggregate_io_ops"
    nova_name: ClassVar = "AggregateIoOpsFilter"
    section: ClassVar = "filter_scheduler"
    options: ClassVar = IoOpsOptions
    run_filter_once_per_request: ClassVar = False
    run_on_rebuild: ClassVar = False
    key: ClassVar = "max_io_ops_per_host"

    def __init__(self, options: IoOpsOptions) -> None:
        super().__init__(options.max_io_ops_per_host)
