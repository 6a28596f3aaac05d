"""Databases of a Nova, on every kind of server."""

import uuid

import psycopg
import pytest
import sqlalchemy

from roost.nova.database.database_options import DatabaseOptions
from roost.nova.database.fleet_reader import FleetReader
from tests.support.databases import mariadb
from tests.support.missing_programs import require_module, skip_test
from tests.support.servers.nova_database import NovaDatabase, shared_template

KINDS = ("sqlite", "mariadb", "postgresql")


@pytest.fixture(scope="session")
def schema(tmp_path_factory):
    """Return the schema of the reference nova, or None."""
    return shared_template(tmp_path_factory)


@pytest.fixture(scope="module")
def mariadb_server():
    """Yield the URL of a MariaDB server, one for each test file."""
    require_module("pymysql", extra="mysql")
    if mariadb.SERVE is None or mariadb.INSTALL is None:
        skip_test(mariadb.MISSING)
    with mariadb.server() as url:
        yield url


@pytest.fixture
def new_url(request, tmp_path):
    """Return a function that returns the URL of a new database of a kind."""
    endings = []

    def new_url(kind):
        name = f"nova_{uuid.uuid4().hex}"
        if kind == "sqlite":
            return f"sqlite:///{tmp_path / name}"
        if kind == "postgresql":
            server = request.getfixturevalue("postgres_server")
            with psycopg.connect(server, autocommit=True) as connection:
                connection.execute(f"CREATE DATABASE {name}")
            endings.append((server, name))
            return server.replace("/postgres?", f"/{name}?")
        server = request.getfixturevalue("mariadb_server")
        engine = sqlalchemy.create_engine(server)
        with engine.begin() as connection:
            connection.exec_driver_sql(f"CREATE DATABASE {name} CHARACTER SET utf8mb4")
        engine.dispose()
        return server.replace("/placement?", f"/{name}?")

    yield new_url
    for server, name in endings:
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(params=KINDS)
def kind(request):
    """Return a kind of database; a test may choose one kind."""
    return request.param


@pytest.fixture
def nova(kind, new_url, schema):
    """Yield the API database of a Nova without cells."""
    database = NovaDatabase(new_url(kind), schema=schema)
    yield database
    database.close()


@pytest.fixture
def cell(nova, kind, new_url):
    """Return a cell of this Nova."""
    return nova.add_cell(new_url(kind))


@pytest.fixture
def reader(nova):
    """Yield a reader of this Nova."""
    reader = FleetReader(options_of(nova), nova.clock)
    yield reader
    reader.close()


@pytest.fixture
def options(nova):
    """Return the options to read this Nova."""
    return options_of(nova)


def options_of(nova):
    """Return the options to read a Nova."""
    return DatabaseOptions(api_connection=nova.api_url, timeout_s=5.0)
