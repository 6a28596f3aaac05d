"""aggregate_ram: hosts with enough memory, by the overcommit of their aggregates."""

from typing import ClassVar

from roost.scheduler.rule_support.overcommit import AggregateOvercommitFilter, MemoryAmounts, RamOptions


class AggregateRam(AggregateOvercommitFilter, MemoryAmounts):
    """Keep hosts with enough free memory; aggregates, else the settings, define the overcommit.

    Source:
        nova/scheduler/filters/ram_filter.py of 21.0.0, AggregateRamFilter.
    """

    name: ClassVar = "aggregate_ram"
    nova_name: ClassVar = "AggregateRamFilter"
    section: ClassVar = "DEFAULT"
    options: ClassVar = RamOptions
    run_filter_once_per_request: ClassVar = False
    run_on_rebuild: ClassVar = False
    key: ClassVar = "ram_allocation_ratio"

    def __init__(self, options: RamOptions) -> None:
        super().__init__(options.ram_allocation_ratio)
