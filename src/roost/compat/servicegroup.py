"""Counterpart of ``nova.servicegroup``: liveness of services."""

import time
from typing import Any

from roost.compat.config_view import down_time_s
from roost.compat.objects.current_fleet import decision_time_s
from roost.compat.objects.host_records import read_moment


class API:
    """Liveness of services, by the settings in CONF."""

    def service_is_up(self, member: Any) -> bool:
        """Return whether a service reported in time and is not forced down."""
        get = member.get if hasattr(member, "get") else lambda name: getattr(member, name, None)
        if get("forced_down"):
            return False
        seen_s = read_moment(get("last_seen_up") or get("created_at"))
        now_s = decision_time_s()
        return seen_s is None or abs((time.time() if now_s is None else now_s) - seen_s) <= down_time_s()

    def get_updated_time(self, member: Any) -> Any:
        """Return the time of a service's last report."""
        return member["last_seen_up"] if hasattr(member, "__getitem__") else member.last_seen_up
