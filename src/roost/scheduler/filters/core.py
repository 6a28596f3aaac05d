"""core: hosts with enough virtual CPUs, including overcommit."""

from roost.scheduler.rule_support.overcommit import CoreAmounts


class Core(CoreAmounts):
    """Keep hosts with enough free virtual CPUs, by the overcommit of the settings.

    Source:
        nova/scheduler/filters/core_filter.py of 19.0.0, CoreFilter.
    """

    nova_name = "CoreFilter"
