"""Finds work that nova-scheduler does for the options of a ``nova.conf``, and Roost does not."""

from collections.abc import Iterator

from roost.compat.ini import Ini
from roost.errors import BadSettings
from roost.model.settings.nova_settings import Nova
from roost.nova.check.check_finding import Finding
from roost.nova.notifications.notification_options import find_foreign


def check_differences(ini: Ini, settings: Nova) -> Iterator[Finding]:
    """Yield a warning for each such option."""
    interval = _value(ini, "scheduler", "discover_hosts_in_cells_interval")
    if interval.isdecimal() and int(interval) > 0 and not settings.discovers_hosts:
        found = f"nova-scheduler maps new hosts to cells every {int(interval)} s, Roost does not"
        yield _warning(found, "set nova.discovers_hosts, or run nova-manage cell_v2 discover_hosts")
    for means in _foreign(ini):
        found = f"nova-scheduler sends notifications with {means}, Roost does not"
        yield _warning(found, "check whether a service needs scheduler.select_destinations")


def _foreign(ini: Ini) -> list[str]:
    try:
        return find_foreign(ini)
    except BadSettings:
        return []  # The settings report it.


def _warning(found: str, advice: str) -> Finding:
    return Finding(level="warning", part="settings", found=found, advice=advice)


def _value(ini: Ini, section: str, option: str) -> str:
    values = _values(ini, section, option)
    return values[-1].strip() if values else ""


def _values(ini: Ini, section: str, option: str) -> list[str]:
    try:
        return ini.get_all(section, option)
    except BadSettings:
        return []  # The settings report it.
