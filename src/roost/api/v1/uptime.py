"""Whether hosts are up, as things are now."""

from roost.api.v1.call import Call
from roost.model.host import HostFacts, is_up
from roost.scheduler.filters.compute import Compute, ComputeOptions


class Uptime:
    """Says which hosts are up, by the clock and the settings of the filter ``compute``."""

    def __init__(self, call: Call) -> None:
        table = call.product.settings.tables.get(Compute.section, {})
        self._down_time_s = float(table.get("service_down_time", ComputeOptions().service_down_time))
        self._now_s = call.current.state.now_s

    def is_up(self, facts: HostFacts) -> bool:
        """Say whether a host is not forced down, and reported lately or never."""
        return is_up(facts, now_s=self._now_s, down_time_s=self._down_time_s)
