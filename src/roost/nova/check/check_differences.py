"""Finds work that nova-scheduler does for the options of a ``nova.conf``, and Roost does not."""

from collections.abc import Iterator

from roost.compat.ini import Ini
from roost.errors import BadFile
from roost.model.settings.nova_settings import Nova
from roost.nova.check.check_finding import Finding

_TRUE = frozenset({"true", "1", "on", "yes"})
# Drivers of notifications that send nothing to other services.
_SILENT_DRIVERS = frozenset({"", "noop", "log", "test"})
_NOTIFICATIONS = (("oslo_messaging_notifications", "driver"), ("DEFAULT", "notification_driver"))


def check_differences(ini: Ini, settings: Nova) -> Iterator[Finding]:
    """Yield a warning for each such option."""
    interval = _value(ini, "scheduler", "discover_hosts_in_cells_interval")
    if interval.isdecimal() and int(interval) > 0 and not settings.discovers_hosts:
        found = f"nova-scheduler maps new hosts to cells every {int(interval)} s, Roost does not"
        yield _warning(found, "set nova.discovers_hosts, or run nova-manage cell_v2 discover_hosts")
    if _value(ini, "scheduler", "query_placement_for_routed_network_aggregates").lower() in _TRUE:
        found = "nova-scheduler reads the segments of routed networks from Neutron, Roost does not"
        yield _warning(found, "keep nova-scheduler if servers use routed networks")
    drivers = {driver.strip() for place in _NOTIFICATIONS for driver in _values(ini, *place)} - _SILENT_DRIVERS
    if drivers:
        found = f"nova-scheduler sends notifications ({', '.join(sorted(drivers))}), Roost does not"
        yield _warning(found, "check whether a service needs scheduler.select_destinations")


def _warning(found: str, advice: str) -> Finding:
    return Finding(level="warning", part="settings", found=found, advice=advice)


def _value(ini: Ini, section: str, option: str) -> str:
    values = _values(ini, section, option)
    return values[-1].strip() if values else ""


def _values(ini: Ini, section: str, option: str) -> list[str]:
    try:
        return ini.get_all(section, option)
    except BadFile:
        return []  # The settings report it.
