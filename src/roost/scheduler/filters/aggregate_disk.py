"""aggregate_disk: hosts with enough disk, by the overcommit of their aggregates."""

from roost.scheduler.rule_support.overcommit import AggregateOvercommitFilter, DiskAmounts


class AggregateDisk(AggregateOvercommitFilter, DiskAmounts):
    """Keep hosts with enough free disk; aggregates, else the settings, define the overcommit.

    Source:
        nova/scheduler/filters/disk_filter.py of 21.0.0, AggregateDiskFilter.
    """

    nova_name = "AggregateDiskFilter"
