"""The right to read and to write, with users of MariaDB and PostgreSQL."""

import pytest
import sqlalchemy
from msgspec.structs import replace
from sqlalchemy.engine import make_url

from roost.compat.upstream.sql_drivers import driver_url
from roost.machine import SystemClock
from roost.model.settings.nova_settings import Nova
from roost.nova.check.check_databases import check_databases
from roost.nova.check.check_rights import check_rights
from tests.support.servers.nova_database import COMPUTE_NODES, HOST_MAPPINGS, SERVICES

PASSWORD = "s3cret"
WRITES = Nova(discovers_hosts=True, has_service_record=True)
READ = ("cell_mappings", "host_mappings", "aggregates", "aggregate_hosts", "aggregate_metadata")


@pytest.fixture(params=["mariadb"])
def kind(request):
    return request.param


class User:
    """A user of the database server, and the URLs of its connections."""

    def __init__(self, admin_url, name):
        self.name = name
        self._engine = sqlalchemy.create_engine(driver_url(admin_url))
        self._execute(f"CREATE USER {name}@localhost IDENTIFIED BY '{PASSWORD}'")

    def grant(self, rights, url, table):
        """Grant rights on a table of the database of a URL."""
        self._execute(f"GRANT {rights} ON {make_url(url).database}.{table} TO {self.name}@localhost")

    def url(self, url):
        """Return a URL with this user."""
        return make_url(url).set(username=self.name, password=PASSWORD).render_as_string(hide_password=False)

    def drop(self):
        """Drop the user."""
        self._execute(f"DROP USER {self.name}@localhost")
        self._engine.dispose()

    def _execute(self, statement):
        with self._engine.begin() as connection:
            connection.exec_driver_sql(statement)


@pytest.fixture
def user(nova):
    user = User(nova.api_url, "roost_check")
    yield user
    user.drop()


@pytest.fixture
def limited(nova, cell, user, options):
    """Return the options of a user that may read everything but the instances."""
    for table in READ:
        user.grant("SELECT", nova.api_url, table)
    for table in ("services", "compute_nodes"):
        user.grant("SELECT", nova.cells[cell], table)
    nova.set_cell(cell, database_connection=user.url(nova.cells[cell]))
    nova.add_host(cell, "cmp1")
    return replace(options, api_connection=user.url(nova.api_url), connection=user.url(nova.cells[cell]))


def test_table_without_the_right_to_read(cell, limited):
    findings, cells = check_databases(limited, SystemClock())
    (error,) = [each for each in findings if each.level == "error"]
    assert error.found.startswith("table instances: the database of cell cell1 cannot be read: SELECT command denied")
    assert error.advice == "GRANT SELECT on instances to the user"
    assert PASSWORD not in str(findings)
    assert [each.uuid for each in cells] == [cell]


def test_settings_that_write_need_rights(limited):
    _, cells = check_databases(limited, SystemClock())
    assert list(check_rights(limited, Nova(), cells)) == []
    found = list(check_rights(limited, WRITES, cells))
    assert [each.level for each in found] == ["error"] * 3
    assert [each.advice.partition(" to ")[0] for each in found] == [
        "GRANT INSERT on host_mappings",
        "GRANT UPDATE on compute_nodes",
        "GRANT INSERT and UPDATE on services",
    ]
    assert PASSWORD not in str(found)


def test_sufficient_rights_are_ok_and_nothing_is_written(nova, cell, user, limited):
    user.grant("INSERT", nova.api_url, "host_mappings")
    user.grant("UPDATE", nova.cells[cell], "compute_nodes")
    user.grant("INSERT, UPDATE", nova.cells[cell], "services")
    tables = [(nova.api, HOST_MAPPINGS), (lambda query: nova.cell(cell, query), COMPUTE_NODES)]
    tables += [(tables[1][0], SERVICES)]
    before = [read(sqlalchemy.select(table)) for read, table in tables]
    _, cells = check_databases(limited, SystemClock())
    assert [(each.level, each.found.removesuffix(" is allowed")) for each in check_rights(limited, WRITES, cells)] == [
        ("ok", "nova.discovers_hosts: INSERT on host_mappings of the API database"),
        ("ok", "nova.discovers_hosts: UPDATE on compute_nodes of the database of cell cell1"),
        ("ok", "nova.has_service_record: INSERT and UPDATE on services of the database of [database] connection"),
    ]
    assert [read(sqlalchemy.select(table)) for read, table in tables] == before


def test_service_record_without_a_database(options):
    (found,) = check_rights(options, Nova(has_service_record=True), ())
    assert (found.level, found.found) == (
        "error",
        "[database] connection is not set: nova.has_service_record needs it",
    )
