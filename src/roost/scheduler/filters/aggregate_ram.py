"""aggregate_ram: hosts with enough memory, by the overcommit of their aggregates."""

from roost.scheduler.rule_support.overcommit import AggregateOvercommitFilter, MemoryAmounts


class AggregateRam(AggregateOvercommitFilter, MemoryAmounts):
    """Keep hosts with enough free memory; aggregates, else the settings, define the overcommit.

    Source:
        nova/scheduler/filters/ram_filter.py of 21.0.0, AggregateRamFilter.
    """

    nova_name = "AggregateRamFilter"
