"""Differences between the clocks of Nova's database servers and the clock of this machine."""

from datetime import datetime

import msgspec
import sqlalchemy

from roost.errors import BadSettings, Unavailable
from roost.nova.database.cell_mappings import read_cell_mappings
from roost.nova.database.database_link import DatabaseLink, seconds_of
from roost.nova.database.database_options import DatabaseOptions
from roost.ports import Clock

_NOW = {
    "mysql": "SELECT UTC_TIMESTAMP(6)",
    "mariadb": "SELECT UTC_TIMESTAMP(6)",
    "postgresql": "SELECT clock_timestamp() AT TIME ZONE 'UTC'",
    "sqlite": "SELECT strftime('%Y-%m-%d %H:%M:%f', 'now')",
}


class ClockSkew(msgspec.Struct, frozen=True, kw_only=True):
    """The clock of one database server."""

    database: str  # such as "the API database"
    skew_s: float | None  # the server's time minus ours; None: it was not read
    problem: str = ""  # why it was not read


def clock_skew(options: DatabaseOptions, clock: Clock) -> tuple[ClockSkew, ...]:
    """Compare the clocks of the API database and of each enabled cell's database with ours.

    Raises:
        Unavailable: the API database cannot be read.
        BadSettings: its URL is invalid, or its driver is not installed.
    """
    api = DatabaseLink(options.api_connection, subject="the API database", timeout_s=options.timeout_s)
    try:
        found = [ClockSkew(database="the API database", skew_s=_skew_s(api, clock))]
        with api.read() as connection:
            mappings = read_cell_mappings(connection, default_url=options.connection)
    finally:
        api.close()
    for mapping in mappings:
        if mapping.cell.is_disabled:
            continue
        link = DatabaseLink(mapping.database_url, subject=mapping.subject, timeout_s=options.timeout_s)
        try:
            found.append(ClockSkew(database=mapping.subject, skew_s=_skew_s(link, clock)))
        except (Unavailable, BadSettings) as error:
            found.append(ClockSkew(database=mapping.subject, skew_s=None, problem=str(error)))
        finally:
            link.close()
    return tuple(found)


def _skew_s(link: DatabaseLink, clock: Clock) -> float:
    with link.read() as connection:
        statement = sqlalchemy.text(_NOW[connection.dialect.name])
        before_s = clock.now_s()
        theirs = connection.execute(statement).scalar_one()
        after_s = clock.now_s()
    moment = datetime.fromisoformat(theirs) if isinstance(theirs, str) else theirs
    seconds = seconds_of(moment)
    assert seconds is not None
    return seconds - (before_s + after_s) / 2
