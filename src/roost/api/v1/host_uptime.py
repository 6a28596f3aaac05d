"""Whether hosts are up at present."""

from roost.api.v1.call import Call
from roost.model.host import HostFacts, is_up
from roost.model.settings.roost_settings import Settings
from roost.scheduler.filters.compute import Compute, ComputeOptions


class Uptime:
    """Decides which hosts are up, by the clock and the settings of the filter ``compute``."""

    def __init__(self, call: Call) -> None:
        self._down_time_s = down_time_of(call.product.settings)
        self._now_s = call.current.state.now_s

    def is_up(self, facts: HostFacts) -> bool:
        """Return whether a host is up: not forced down, and its last report, if any, is recent."""
        return is_up(facts, now_s=self._now_s, down_time_s=self._down_time_s)


def down_time_of(settings: Settings) -> float:
    """Return the seconds without a report after which a host is down."""
    table = settings.tables.get(Compute.section, {})
    return float(table.get("service_down_time", ComputeOptions().service_down_time))
