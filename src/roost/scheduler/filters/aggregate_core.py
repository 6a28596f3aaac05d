"""aggregate_core: hosts with enough virtual CPUs, by the overcommit of their aggregates."""

from roost.scheduler.rule_support.overcommit import AggregateOvercommitFilter, CoreAmounts


class AggregateCore(AggregateOvercommitFilter, CoreAmounts):
    """Keep hosts with enough free virtual CPUs; aggregates, else the settings, define the overcommit.

    Source:
        nova/scheduler/filters/core_filter.py of 21.0.0, AggregateCoreFilter.
    """

    nova_name = "AggregateCoreFilter"
