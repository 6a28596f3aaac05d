"""The row of this scheduler in Nova's list of services, which ``openstack compute service list`` shows. It writes."""

import uuid
from datetime import datetime

from sqlalchemy import Connection, insert, update
from sqlalchemy.exc import IntegrityError

from roost.errors import BadSettings
from roost.nova.database.database_link import DatabaseLink, moment_of
from roost.nova.database.database_options import DatabaseOptions
from roost.nova.database.service_rows import SERVICES
from roost.ports import Clock

# That of Nova 34.0.0. Nova's checks of the lowest version look at nova-compute only.
NOVA_SERVICE_VERSION = 74
_BINARY, _TOPIC = "nova-scheduler", "scheduler"
_COLUMNS = SERVICES.c


class ServiceRecord:
    """Keeps the row of a scheduler up to date.

    Args:
        options: ``connection`` names the database, that of this process in nova.conf.
        host: name of this scheduler, ``[DEFAULT] host`` in nova.conf.
        clock: the clock of this machine.
        version: version of the service in the row.

    Raises:
        BadSettings: ``[database] connection`` is not set.

    Source:
        nova/service.py, _create_service_ref; nova/servicegroup/drivers/db.py, DbDriver._report_state.
    """

    def __init__(
        self, options: DatabaseOptions, *, host: str, clock: Clock, version: int = NOVA_SERVICE_VERSION
    ) -> None:
        if not options.connection:
            raise BadSettings("[database] connection", "is not set: the row of the service needs it")
        self._link = DatabaseLink(
            options.connection, subject="the database of [database] connection", timeout_s=options.timeout_s
        )
        self._host, self._clock, self._version = host, clock, version
        self._interval_s = options.report_interval_s
        self._tried_at_s: float | None = None

    def report_if_due(self) -> bool:
        """Write the row if the interval since the last attempt has passed; return whether it was written.

        Raises:
            Unavailable, BadSettings: as of ``report``.
        """
        last_s, now_s = self._tried_at_s, self._clock.now_s()
        if last_s is not None and 0 <= now_s - last_s < self._interval_s:
            return False
        self._tried_at_s = now_s
        self.report()
        return True

    def report(self) -> None:
        """Write the row: a new one, or the next report.

        Raises:
            Unavailable: the database does not answer, or refuses; the next report may succeed.
            BadSettings: its URL is invalid, or its driver is not installed.
        """
        now = moment_of(self._clock.now_s())
        with self._link.write() as connection:
            if not self._update(connection, now):
                try:
                    with connection.begin_nested():
                        self._insert(connection, now)
                except IntegrityError:  # A process with the same name was faster.
                    self._update(connection, now)

    def close(self) -> None:
        """Close the connection."""
        self._link.close()

    def _update(self, connection: Connection, now: datetime) -> bool:
        where = (_COLUMNS.host == self._host, _COLUMNS.binary == _BINARY, _COLUMNS.deleted == 0)
        values = {
            "report_count": _COLUMNS.report_count + 1,
            "last_seen_up": now,
            "updated_at": now,
            "version": self._version,
        }
        return connection.execute(update(SERVICES).where(*where).values(values)).rowcount > 0

    def _insert(self, connection: Connection, now: datetime) -> None:
        values = {
            "uuid": str(uuid.uuid4()),
            "host": self._host,
            "binary": _BINARY,
            "topic": _TOPIC,
            "report_count": 1,
            "disabled": False,
            "forced_down": False,
            "last_seen_up": now,
            "version": self._version,
            "deleted": 0,
            "created_at": now,
        }
        connection.execute(insert(SERVICES).values(values))
