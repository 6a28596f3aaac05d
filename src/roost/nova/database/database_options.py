"""Connections and times of Nova's databases, from nova.conf."""

import msgspec

from roost.compat.ini import Ini, read_seconds
from roost.errors import BadSettings, quote_value


class DatabaseOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of Nova's databases. Its text form has no URLs, because they contain passwords.

    Source:
        nova/conf/database.py, nova/conf/service.py.
    """

    api_connection: str  # [api_database] connection
    connection: str = ""  # [database] connection; empty: not set
    transport_url: str = ""  # [DEFAULT] transport_url; empty: not set
    service_down_time_s: float = 60.0  # a service that has not reported for longer is down
    report_interval_s: float = 10.0  # time between two reports of a service
    timeout_s: float = 10.0  # limit of a connection attempt, of each answer, and of the wait for a cell

    def __repr__(self) -> str:
        """Return the times only."""
        return (
            f"DatabaseOptions(service_down_time_s={self.service_down_time_s:g}, "
            f"report_interval_s={self.report_interval_s:g}, timeout_s={self.timeout_s:g})"
        )


def read_database_options(ini: Ini) -> DatabaseOptions:
    """Read the options of a nova.conf.

    Raises:
        BadSettings: ``[api_database] connection`` is not set, a time is not a positive number, or a value
            refers to a missing option.
    """
    api_connection = ini.get("api_database", "connection") or ""
    if not api_connection:
        raise BadSettings(f"{ini.path}: [api_database] connection", "is not set: write the URL of Nova's API database")
    return DatabaseOptions(
        api_connection=api_connection,
        connection=ini.get("database", "connection") or "",
        transport_url=ini.get("DEFAULT", "transport_url") or "",
        service_down_time_s=_seconds(ini, "service_down_time", 60.0),
        report_interval_s=_seconds(ini, "report_interval", 10.0),
    )


def _seconds(ini: Ini, option: str, default: float) -> float:
    text = ini.get("DEFAULT", option)
    if text is None:
        return default
    try:
        return read_seconds(text)
    except ValueError as error:
        raise BadSettings(f"{ini.path}: [DEFAULT] {option}", f"{error}, got {quote_value(text)}") from None
