"""disk: hosts with enough disk, including overcommit."""

from typing import ClassVar

from roost.scheduler.rule_support.overcommit import DiskAmounts, DiskOptions


class Disk(DiskAmounts):
    """Keep hosts with enough free disk, by the overcommit of the settings.

    Source:
        nova/scheduler/filters/disk_filter.py of 19.0.0, DiskFilter.
    """

    name: ClassVar = "disk"
    nova_name: ClassVar = "DiskFilter"
    section: ClassVar = "DEFAULT"
    options: ClassVar = DiskOptions
    run_filter_once_per_request: ClassVar = False
    run_on_rebuild: ClassVar = False

    def __init__(self, options: DiskOptions) -> None:
        super().__init__(options.disk_allocation_ratio)
