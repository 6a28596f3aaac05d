"""disk: hosts with enough disk, including overcommit."""

from roost.scheduler.rule_support.overcommit import DiskAmounts


class Disk(DiskAmounts):
    """Keep hosts with enough free disk, by the overcommit of the settings.

    Source:
        nova/scheduler/filters/disk_filter.py of 19.0.0, DiskFilter.
    """

    nova_name = "DiskFilter"
