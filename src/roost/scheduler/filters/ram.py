"""ram: hosts with enough memory, including overcommit."""

from typing import ClassVar

from roost.scheduler.rule_support.overcommit import MemoryAmounts, RamOptions


class Ram(MemoryAmounts):
    """Keep hosts with enough free memory, by the overcommit of the settings.

    Source:
        nova/scheduler/filters/ram_filter.py of 19.0.0, RamFilter.
    """

    name: ClassVar = "ram"
    nova_name: ClassVar = "RamFilter"
    section: ClassVar = "DEFAULT"
    options: ClassVar = RamOptions
    run_filter_once_per_request: ClassVar = False
    run_on_rebuild: ClassVar = False

    def __init__(self, options: RamOptions) -> None:
        super().__init__(options.ram_allocation_ratio)
