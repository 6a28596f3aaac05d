"""ram: hosts with enough memory, including overcommit."""

from roost.scheduler.rule_support.overcommit import MemoryAmounts


class Ram(MemoryAmounts):
    """Keep hosts with enough free memory, by the overcommit of the settings.

    Source:
        nova/scheduler/filters/ram_filter.py of 19.0.0, RamFilter.
    """

    nova_name = "RamFilter"
