"""Mapping of new hosts to their cells, as nova-manage cell_v2 discover_hosts does it. This module writes.

It is only for deployments in which no nova-scheduler and no operator does it.
"""

from datetime import datetime

from sqlalchemy import Connection, insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from roost.errors import BadSettings, Unavailable
from roost.nova.database.cell_mappings import HOST_MAPPINGS, CellMapping, read_cell_mappings
from roost.nova.database.compute_nodes import COMPUTE_NODES
from roost.nova.database.database_link import DatabaseLink, moment_of
from roost.nova.database.database_options import DatabaseOptions
from roost.observe import log
from roost.ports import Clock

_NODES = COMPUTE_NODES.c
_IDS_AT_ONCE = 500


def discover_hosts(options: DatabaseOptions, clock: Clock) -> tuple[str, ...]:
    """Map the hosts of compute nodes that are not mapped yet; two processes may do it at the same time.

    A cell that cannot be read is logged, and does not affect the others.

    Returns:
        the hosts that this call has mapped.

    Raises:
        Unavailable: the API database cannot be read or written.
        BadSettings: its URL is invalid, or its driver is not installed.

    Source:
        nova/objects/host_mapping.py, discover_hosts. There ``mapped`` stays 0 for further nodes of a mapped host.
    """
    api = DatabaseLink(options.api_connection, subject="the API database", timeout_s=options.timeout_s)
    found: list[str] = []
    try:
        with api.read() as connection:
            mappings = read_cell_mappings(connection, default_url=options.connection)
        for mapping in mappings:
            if mapping.is_template:
                continue  # The reader of the fleet reports it.
            link = DatabaseLink(mapping.database_url, subject=mapping.subject, timeout_s=options.timeout_s)
            try:
                found += _discover_cell(api, link, mapping=mapping, now=moment_of(clock.now_s()))
            except _CellUnavailable as error:
                log.event("hosts_not_discovered", cell=mapping.cell.name or mapping.uuid, problem=str(error))
            finally:
                link.close()
    finally:
        api.close()
    return tuple(found)


class _CellUnavailable(Exception):  # never leaves this module
    """The database of a cell cannot be read or written."""


def _discover_cell(api: DatabaseLink, link: DatabaseLink, *, mapping: CellMapping, now: datetime) -> list[str]:
    try:
        with link.read() as connection:
            unmapped = _read_unmapped(connection)
    except (Unavailable, BadSettings) as error:
        raise _CellUnavailable(str(error)) from None
    if not unmapped:
        return []
    with api.write() as connection:
        names = sorted(set(unmapped.values()))
        added = [host for host in names if _map_host(connection, host, cell_id=mapping.id, now=now)]
        mapped = _hosts_of(connection, mapping.id, set(unmapped.values()))
    for host in added:
        log.event("host_mapped", cell=mapping.cell.name or mapping.uuid, host=host)
    numbers = [number for number, host in unmapped.items() if host in mapped]
    try:
        with link.write() as connection:
            for start in range(0, len(numbers), _IDS_AT_ONCE):
                part = _NODES.id.in_(numbers[start : start + _IDS_AT_ONCE])
                connection.execute(update(COMPUTE_NODES).where(part, _NODES.deleted == 0).values(mapped=1))
    except (Unavailable, BadSettings) as error:
        log.event("hosts_not_discovered", cell=mapping.cell.name or mapping.uuid, problem=str(error))
    return added


def _read_unmapped(connection: Connection) -> dict[int, str]:
    conditions = (_NODES.deleted == 0, or_(_NODES.mapped == 0, _NODES.mapped.is_(None)), _NODES.host.is_not(None))
    return {row.id: row.host for row in connection.execute(select(_NODES.id, _NODES.host).where(*conditions))}


def _map_host(connection: Connection, host: str, *, cell_id: int, now: datetime) -> bool:
    """Map a host unless it is mapped; return whether this call has done it."""
    columns = HOST_MAPPINGS.c
    if connection.execute(select(columns.id).where(columns.host == host)).first() is not None:
        return False
    try:
        with connection.begin_nested():
            connection.execute(insert(HOST_MAPPINGS).values(host=host, cell_id=cell_id, created_at=now))
    except IntegrityError:
        return False  # Another process was faster.
    return True


def _hosts_of(connection: Connection, cell_id: int, hosts: set[str]) -> set[str]:
    columns = HOST_MAPPINGS.c
    found: set[str] = set()
    names = sorted(hosts)
    for start in range(0, len(names), _IDS_AT_ONCE):
        part = columns.host.in_(names[start : start + _IDS_AT_ONCE])
        found.update(connection.execute(select(columns.host).where(part, columns.cell_id == cell_id)).scalars())
    return found
