"""What the service writes to Nova's databases, if the settings allow it: host mappings, and its own service record."""

from collections.abc import Callable

from roost.errors import RoostError
from roost.model.settings.nova_settings import Nova
from roost.nova.database.database_options import DatabaseOptions
from roost.nova.database.discover_hosts import discover_hosts
from roost.nova.database.service_record import ServiceRecord
from roost.observe import log
from roost.ports import Clock

# Seconds between two searches for new hosts.
_DISCOVERY_S = 60.0


class NovaChores:
    """Writes at their intervals.

    Args:
        options: the databases.
        settings: section ``nova``.
        host: name of this scheduler.
        clock: the clock of this machine.

    Raises:
        BadSettings: the service record needs a database without a URL.
    """

    def __init__(self, options: DatabaseOptions, settings: Nova, *, host: str, clock: Clock) -> None:
        self._options = options
        self._clock = clock
        self._discovers = settings.discovers_hosts
        self._discovered_s = -_DISCOVERY_S
        self._record = ServiceRecord(options, host=host, clock=clock) if settings.has_service_record else None

    def work(self) -> None:
        """Write what is due; an error is logged, and the write is tried again at its next interval."""
        if self._discovers and self._clock.elapsed_s() - self._discovered_s >= _DISCOVERY_S:
            self._discovered_s = self._clock.elapsed_s()
            _attempt(lambda: discover_hosts(self._options, self._clock))
        if self._record is not None:
            _attempt(self._record.report_if_due)

    def close(self) -> None:
        """Close the connection of the record."""
        if self._record is not None:
            self._record.close()


def _attempt(write: Callable[[], object]) -> None:
    try:
        write()
    except RoostError as error:
        log.event("nova_write_failed", problem=str(error))
