"""What Nova has in ``nova.servicegroup``: whether a service is up."""

import time
from typing import Any

from roost.compat.config_view import down_time_s
from roost.compat.objects.current_fleet import decision_time_s
from roost.compat.objects.host_records import read_moment


class API:
    """Says which services are up, by the settings that CONF shows."""

    def service_is_up(self, member: Any) -> bool:
        """Say whether a service reported lately and is not forced down."""
        get = member.get if hasattr(member, "get") else lambda name: getattr(member, name, None)
        if get("forced_down"):
            return False
        seen_s = read_moment(get("last_seen_up") or get("created_at"))
        now_s = decision_time_s()
        return seen_s is None or abs((time.time() if now_s is None else now_s) - seen_s) <= down_time_s()

    def get_updated_time(self, member: Any) -> Any:
        """Return when a service last reported."""
        return member["last_seen_up"] if hasattr(member, "__getitem__") else member.last_seen_up
