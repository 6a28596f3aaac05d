"""The check of a Nova deployment before Roost takes the place of nova-scheduler.

.. code-block:: text

    nova.conf ─▶ check_differences                                   settings
              ─▶ check_broker                                        messages
              ─▶ check_databases ─▶ check_rights ─▶ check_fleet      databases
                                                       └─▶ check_placement
              ─▶ check_neutron                                       neutron, if networks may be routed
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

from msgspec.structs import replace

from roost.compat.ini import read_ini
from roost.errors import BadSettings, RoostError, Unavailable
from roost.model.settings.nova_settings import Nova
from roost.nova.check.check_broker import check_broker
from roost.nova.check.check_databases import check_databases
from roost.nova.check.check_differences import check_differences
from roost.nova.check.check_finding import Finding
from roost.nova.check.check_fleet import check_fleet, read_fleet, unreadable_fleet
from roost.nova.check.check_neutron import check_neutron
from roost.nova.check.check_placement import check_placement, placement_finding
from roost.nova.check.check_rights import check_rights
from roost.nova.check.placement_picture import PlacementPicture
from roost.nova.database.database_options import DatabaseOptions, read_database_options
from roost.nova.database.nova_fleet import FleetChanges
from roost.nova.notifications.notification_options import read_notification_options
from roost.nova.rpc.broker_options import read_broker_options
from roost.ports import Clock

T = TypeVar("T")
# Returns the picture of a Placement for the uuids of aggregates; raises RoostError if it cannot be read.
ReadPlacement = Callable[[Iterable[str]], PlacementPicture]


class DeploymentCheck:
    """Checks broker, databases, Placement and Neutron of a ``nova.conf``.

    Args:
        nova_conf: path of the file.
        settings: section ``nova``.
        has_routed_networks: whether the settings let networks be routed.
        clock: the clock of this machine.
    """

    def __init__(self, nova_conf: Path, settings: Nova, *, clock: Clock, has_routed_networks: bool = False) -> None:
        self._path, self._settings, self._clock = nova_conf, settings, clock
        self._has_routed_networks = has_routed_networks

    def run(self, read_placement: ReadPlacement | None, *, subject: str) -> list[Finding]:
        """Return all findings, in the order of the parts.

        Args:
            read_placement: None: the settings do not say which Placement to use.
            subject: name of the Placement in findings.
        """
        try:
            ini = read_ini(self._path)
        except BadSettings as error:
            return [Finding(level="error", part="settings", found=str(error))]
        found: list[Finding] = list(check_differences(ini, self._settings))
        broker = _attempt(lambda: read_broker_options(ini), found)
        databases = _attempt(lambda: read_database_options(ini), found)
        notifications = _attempt(lambda: read_notification_options(ini), found)
        timeout_s = self._settings.read_timeout_s
        if broker is not None:
            found += check_broker(broker, timeout_s=timeout_s)
        if notifications is not None and notifications.broker != broker:
            found += check_broker(notifications.broker, timeout_s=timeout_s, serves=False)
        fleet = None
        if databases is not None:
            fleet = self._check_databases(replace(databases, timeout_s=timeout_s), found)
        if read_placement is None:
            found.append(placement_finding("warning", "not checked: the settings have errors", "correct these first"))
        else:
            found += _check_placement(fleet, read_placement, subject=subject)
        if self._has_routed_networks:
            found += check_neutron(ini, timeout_s=self._settings.read_timeout_s)
        return found

    def _check_databases(self, options: DatabaseOptions, found: list[Finding]) -> FleetChanges | None:
        findings, cells = check_databases(options, self._clock)
        found += findings
        if cells is None:
            return None
        found += check_rights(options, self._settings, cells)
        try:
            fleet = read_fleet(options, self._clock)
        except (Unavailable, BadSettings) as error:
            found.append(unreadable_fleet(error))
            return None
        known = {each.found for each in found}  # A cell that cannot be read has a finding already.
        cells_found = check_fleet(fleet, options, self._settings, clock=self._clock)
        found += [each for each in cells_found if each.found not in known]
        return fleet


def _attempt(read: Callable[[], T], found: list[Finding]) -> T | None:
    """Return the options; None: they have an error, which is a finding now."""
    try:
        return read()
    except BadSettings as error:
        finding = Finding(level="error", part="settings", found=str(error), advice="correct nova.conf")
        if finding not in found:
            found.append(finding)
        return None


def _check_placement(fleet: FleetChanges | None, read: ReadPlacement, *, subject: str) -> Iterable[Finding]:
    aggregates = () if fleet is None else fleet.aggregates or ()
    try:
        picture = read([each.uuid for each in aggregates])
    except RoostError as error:
        yield placement_finding("error", str(error), "start it, or correct its address and token")
        return
    if fleet is None:
        found = f"{subject} is readable: {len(picture.names):,} root providers, not compared with Nova's databases"
        yield placement_finding("ok", found)
    else:
        yield from check_placement(fleet, picture, subject=subject)
