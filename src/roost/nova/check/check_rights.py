"""Checks the right to write in Nova's databases, for settings that need it. No statement changes a row."""

from collections.abc import Iterable, Iterator

from sqlalchemy import Connection, false, insert, select, update

from roost.errors import BadSettings, Unavailable
from roost.model.settings.nova_settings import Nova
from roost.nova.check.check_databases import database_finding
from roost.nova.check.check_finding import Finding
from roost.nova.database.cell_mappings import HOST_MAPPINGS, CellMapping
from roost.nova.database.compute_nodes import COMPUTE_NODES
from roost.nova.database.database_link import DatabaseLink
from roost.nova.database.database_options import DatabaseOptions
from roost.nova.database.service_rows import SERVICES

_RECORD_DATABASE = "the database of [database] connection"


def check_rights(options: DatabaseOptions, settings: Nova, cells: Iterable[CellMapping]) -> Iterator[Finding]:
    """Yield a finding for each table that the settings let Roost write.

    A statement that matches no row needs the same rights as one that writes.
    """
    if settings.discovers_hosts:
        api = _Target(options.api_connection, "the API database", options.timeout_s)
        yield api.check("host_mappings", "nova.discovers_hosts", may_insert=True, may_update=False)
        for mapping in cells:
            if not mapping.is_template:
                target = _Target(mapping.database_url, mapping.subject, options.timeout_s)
                yield target.check("compute_nodes", "nova.discovers_hosts", may_insert=False, may_update=True)
    if settings.has_service_record and not options.connection:
        found = "[database] connection is not set: nova.has_service_record needs it"
        yield database_finding("error", found, "set it in nova.conf, or turn nova.has_service_record off")
    elif settings.has_service_record:
        target = _Target(options.connection, _RECORD_DATABASE, options.timeout_s)
        yield target.check("services", "nova.has_service_record", may_insert=True, may_update=True)


class _Target:
    """A database that Roost may have to write."""

    def __init__(self, url: str, subject: str, timeout_s: float) -> None:
        self._url, self._subject, self._timeout_s = url, subject, timeout_s

    def check(self, table: str, setting: str, *, may_insert: bool, may_update: bool) -> Finding:
        """Return whether the rights suffice for a setting."""
        rights = " and ".join(right for right, needs in (("INSERT", may_insert), ("UPDATE", may_update)) if needs)
        link = DatabaseLink(self._url, subject=self._subject, timeout_s=self._timeout_s)
        try:
            with link.write() as connection:
                _try_writes(connection, table, may_insert=may_insert, may_update=may_update)
                connection.rollback()
        except (Unavailable, BadSettings) as error:
            advice = f"GRANT {rights} on {table} to the user, or turn {setting} off"
            return database_finding("error", f"{setting}: table {table}: {error}", advice)
        finally:
            link.close()
        return database_finding("ok", f"{setting}: {rights} on {table} of {self._subject} is allowed")


def _try_writes(connection: Connection, name: str, *, may_insert: bool, may_update: bool) -> None:
    table = {each.name: each for each in (HOST_MAPPINGS, COMPUTE_NODES, SERVICES)}[name]
    columns = [each for each in table.c if each.name not in {"id", "deleted_at"}]
    if may_insert:
        nothing = select(*columns).where(false())
        connection.execute(insert(table).from_select([each.name for each in columns], nothing))
    if may_update:
        changed = "mapped" if table is COMPUTE_NODES else "report_count"
        connection.execute(update(table).where(false()).values({changed: table.c[changed]}))
