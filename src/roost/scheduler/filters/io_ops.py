"""io_ops: hosts with few I/O operations in flight."""

from typing import ClassVar

from roost.scheduler.rule_support.limits import IoOpsLimit, IoOpsOptions


class IoOps(IoOpsLimit):
    """Keep hosts with fewer I/O operations in flight than the limit, such as builds, resizes and snapshots.

    Source:
        nova/scheduler/filters/io_ops_filter.py.
    """

    name: ClassVar = "io_ops"
    nova_name: ClassVar = "IoOpsFilter"
    section: ClassVar = "filter_scheduler"
    options: ClassVar = IoOpsOptions
    run_filter_once_per_request: ClassVar = False
    run_on_rebuild: ClassVar = False

    def __init__(self, options: IoOpsOptions) -> None:
        super().__init__(options.max_io_ops_per_host)
