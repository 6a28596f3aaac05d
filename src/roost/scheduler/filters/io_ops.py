"""io_ops: hosts with few I/O operations in flight."""

from roost.scheduler.rule_support.limits import IoOpsLimit


class IoOps(IoOpsLimit):
    """Keep hosts with fewer I/O operations in flight (such as builds, resizes and snapshots) than the limit.

    Source:
        nova/scheduler/filters/io_ops_filter.py.
    """

    nova_name = "IoOpsFilter"
