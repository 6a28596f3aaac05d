"""Checks Nova's databases: connections, the tables and columns that Roost reads, and clocks."""

from collections.abc import Iterator

from sqlalchemy import select
from sqlalchemy.sql import TableClause

from roost.errors import BadSettings, Unavailable
from roost.nova.check.check_finding import Finding, Level, count_of
from roost.nova.database.aggregate_rows import AGGREGATE_HOSTS, AGGREGATE_METADATA, AGGREGATES
from roost.nova.database.cell_mappings import CELL_MAPPINGS, HOST_MAPPINGS, CellMapping, read_cell_mappings
from roost.nova.database.clock_skew import ClockSkew, clock_skew
from roost.nova.database.compute_nodes import COMPUTE_NODES
from roost.nova.database.database_link import DatabaseLink
from roost.nova.database.database_options import DatabaseOptions
from roost.nova.database.instance_places import INSTANCES
from roost.nova.database.service_rows import SERVICES
from roost.ports import Clock

_API_TABLES = (CELL_MAPPINGS, HOST_MAPPINGS, AGGREGATES, AGGREGATE_HOSTS, AGGREGATE_METADATA)
_CELL_TABLES = (SERVICES, COMPUTE_NODES, INSTANCES)
# Differences below this are those of a slow network and of whole seconds.
_SKEW_MIN_S = 2.0


def database_finding(level: Level, found: str, advice: str = "") -> Finding:
    """Return a finding about Nova's databases."""
    return Finding(level=level, part="databases", found=found, advice=advice)


def check_databases(options: DatabaseOptions, clock: Clock) -> tuple[list[Finding], tuple[CellMapping, ...] | None]:
    """Connect to all databases, read a row of each table, and compare the clocks.

    Returns:
        the findings, and the enabled cells; None instead of the cells: the API database cannot be read completely.
    """
    api = DatabaseLink(options.api_connection, subject="the API database", timeout_s=options.timeout_s)
    try:
        found = list(_check_tables(api, _API_TABLES, subject="the API database", sync="api_db sync"))
        if any(each.level == "error" for each in found):
            return found, None
        with api.read() as connection:
            mappings = read_cell_mappings(connection, default_url=options.connection)
    except (Unavailable, BadSettings) as error:  # It was readable a moment ago.
        return [database_finding("error", str(error))], None
    finally:
        api.close()
    enabled = tuple(each for each in mappings if not each.cell.is_disabled)
    for mapping in enabled:
        found += _check_cell(mapping, options)
    if not enabled:
        advice = "correct [api_database] connection, or create a cell: nova-manage cell_v2 create_cell"
        found.append(database_finding("error", "no enabled cell is mapped: no host is known", advice))
    found += _check_clocks(options, clock)
    return found, enabled


def _check_cell(mapping: CellMapping, options: DatabaseOptions) -> Iterator[Finding]:
    if mapping.is_template:
        found = f"{mapping.subject} has a template as its URL, which [database] connection cannot fill"
        yield database_finding("error", found, "set [database] connection as for nova-scheduler")
        return
    link = DatabaseLink(mapping.database_url, subject=mapping.subject, timeout_s=options.timeout_s)
    try:
        yield from _check_tables(link, _CELL_TABLES, subject=mapping.subject, sync="db sync")
    finally:
        link.close()


def _check_tables(link: DatabaseLink, tables: tuple[TableClause, ...], *, subject: str, sync: str) -> Iterator[Finding]:
    """Read one row of each table, with all columns; each in a transaction of its own, because an error ends it."""
    try:
        with link.read():
            pass
    except (Unavailable, BadSettings) as error:
        yield database_finding("error", str(error), "check the URL, the server, and the rights of the user")
        return
    bad = 0
    for table in tables:
        try:
            with link.read() as connection:
                connection.execute(select(*table.c).limit(1)).first()
        except Unavailable as error:
            bad += 1
            yield database_finding("error", f"table {table.name}: {error}", _table_advice(str(error), table.name, sync))
    if not bad:
        yield database_finding("ok", f"{subject} is readable: {count_of(tables, 'table')}")


def _table_advice(problem: str, table: str, sync: str) -> str:
    if "denied" in problem.lower():
        return f"GRANT SELECT on {table} to the user"
    return f"correct the URL, or update the schema: nova-manage {sync}"


def _check_clocks(options: DatabaseOptions, clock: Clock) -> Iterator[Finding]:
    try:
        skews = clock_skew(options, clock)
    except (Unavailable, BadSettings) as error:
        yield database_finding("error", str(error))
        return
    known = [each for each in skews if each.skew_s is not None]  # Others are reported as unreadable already.
    late = [finding for each in known for finding in _check_skew(each, options)]
    yield from late
    if known and not late:
        found = f"{count_of(known, 'clock')} of databases agree with this machine"
        yield database_finding("ok", found)


def _check_skew(skew: ClockSkew, options: DatabaseOptions) -> Iterator[Finding]:
    seconds = skew.skew_s or 0.0
    if abs(seconds) < _SKEW_MIN_S:
        return
    # The last report of a living service is up to one interval old.
    limit_s = max(options.service_down_time_s - options.report_interval_s, 0.0)
    direction = "ahead of" if seconds > 0 else "behind"
    found = f"the clock of {skew.database} is {abs(seconds):,.0f} s {direction} the clock of this machine"
    is_fatal = abs(seconds) > limit_s
    if is_fatal:
        found += f"; services count as down after {options.service_down_time_s:g} s"
    yield database_finding("error" if is_fatal else "warning", found, "synchronize the clocks, as with NTP")
