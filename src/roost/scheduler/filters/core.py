"""core: hosts with enough virtual CPUs, including overcommit."""

from typing import ClassVar

from roost.scheduler.rule_support.overcommit import CoreAmounts, CoreOptions


class Core(CoreAmounts):
    """Keep hosts with enough free virtual CPUs, by the overcommit of the settings.

    Source:
        nova/scheduler/filters/core_filter.py of 19.0.0, CoreFilter.
    """

    name: ClassVar = "core"
    nova_name: ClassVar = "CoreFilter"
    section: ClassVar = "DEFAULT"
    options: ClassVar = CoreOptions
    run_filter_once_per_request: ClassVar = False
    run_on_rebuild: ClassVar = False

    def __init__(self, options: CoreOptions) -> None:
        super().__init__(options.cpu_allocation_ratio)
