"""Services nova-compute in the database of a cell, and whether they are alive."""

from datetime import datetime
from typing import Any

import msgspec
from sqlalchemy import Boolean, Connection, DateTime, Integer, String, column, or_, select, table

from roost.nova.database.database_link import seconds_of

SERVICES = table(
    "services",
    column("id", Integer),
    column("uuid", String),
    column("host", String),
    column("binary", String),
    column("topic", String),
    column("report_count", Integer),
    column("disabled", Boolean),
    column("disabled_reason", String),
    column("forced_down", Boolean),
    column("last_seen_up", DateTime),
    column("version", Integer),
    column("deleted", Integer),
    column("deleted_at", DateTime),
    column("created_at", DateTime),
    column("updated_at", DateTime),
)
_COLUMNS = SERVICES.c
_READ = (
    _COLUMNS.id,
    _COLUMNS.host,
    _COLUMNS.disabled,
    _COLUMNS.disabled_reason,
    _COLUMNS.forced_down,
    _COLUMNS.last_seen_up,
    _COLUMNS.created_at,
    _COLUMNS.version,
    _COLUMNS.deleted,
)


class ServiceRow(msgspec.Struct, frozen=True, kw_only=True):
    """A service nova-compute."""

    id: int
    host: str
    is_disabled: bool
    disabled_reason: str
    is_forced_down: bool
    seen_at_s: float  # its last report, else its creation; 0: neither is known
    version: int


def read_services(connection: Connection, *, since: datetime | None) -> list[ServiceRow | int]:
    """Read the services that may have changed.

    Args:
        since: None: return all.

    Returns:
        each service; the id alone if the row is deleted.
    """
    query = select(*_READ).where(_COLUMNS.binary == "nova-compute")
    if since is None:
        query = query.where(_COLUMNS.deleted == 0)
    else:
        times = (_COLUMNS.updated_at, _COLUMNS.last_seen_up, _COLUMNS.created_at, _COLUMNS.deleted_at)
        query = query.where(or_(*(each >= since for each in times)))
    return [_service_of(*row) for row in connection.execute(query)]


def down_since(service: ServiceRow, *, now_s: float, down_time_s: float) -> float | None:
    """Return the last report of a dead service; None: it is alive.

    A report in the future counts like a past one at the same distance; for a dead service it is returned as that past
    time. So a dead service stays dead as time goes by.

    Source:
        nova/servicegroup/drivers/db.py, DbDriver.is_up.
    """
    distance_s = abs(now_s - service.seen_at_s)
    return None if distance_s <= down_time_s else now_s - distance_s


def _service_of(*row: Any) -> ServiceRow | int:
    number, host, disabled, reason, forced_down, seen, created, version, deleted = row
    if deleted:
        return int(number)
    return ServiceRow(
        id=number,
        host=host or "",
        is_disabled=bool(disabled),
        disabled_reason=reason or "",
        is_forced_down=bool(forced_down),
        seen_at_s=seconds_of(seen or created) or 0.0,
        version=version or 0,
    )
