"""aggregate_disk: hosts with enough disk, by the overcommit of their aggregates."""

from typing import ClassVar

from roost.scheduler.rule_support.overcommit import AggregateOvercommitFilter, DiskAmounts, DiskOptions


class AggregateDisk(AggregateOvercommitFilter, DiskAmounts):
    """Keep hosts with enough free disk; aggregates, else the settings, define the overcommit.

    Source:
        nova/scheduler/filters/disk_filter.py of 21.0.0, AggregateDiskFilter.
    """

    name: ClassVar = "aggregate_disk"
    nova_name: ClassVar = "AggregateDiskFilter"
    section: ClassVar = "DEFAULT"
    options: ClassVar = DiskOptions
    run_filter_once_per_request: ClassVar = False
    run_on_rebuild: ClassVar = False
    key: ClassVar = "disk_allocation_ratio"

    def __init__(self, options: DiskOptions) -> None:
        super().__init__(options.disk_allocation_ratio)
