"""Processes of the program before and of this one serve one PostgreSQL database, in both orders."""

from contextlib import ExitStack

import psycopg
import pytest

from tests.support.databases import postgres
from tests.support.missing_programs import skip_test
from tests.upgrade import older_program
from tests.upgrade.rolling_upgrade import ORDERS, Run

pytestmark = pytest.mark.long

LOAD_S = 15.0


@pytest.fixture(scope="session")
def older(tmp_path_factory):
    """The packages of the program before."""
    if not older_program.is_available():
        skip_test(f"this clone has no commit {older_program.COMMIT}")
    return older_program.build_older(tmp_path_factory.mktemp("older"))


@pytest.mark.parametrize("order", ORDERS)
def test_processes_of_two_versions_serve_one_database(order, older, postgres_server, tmp_path):
    with postgres.fresh_database(postgres_server) as url, ExitStack() as stack:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("DROP SCHEMA public CASCADE")
            connection.execute("CREATE SCHEMA public")
        parts = ORDERS[order](Run(url, older, tmp_path, stack), LOAD_S)
    assert len(parts) == {"upgrade": 4, "return": 3}[order]
    for part in parts:
        assert part.problems == [], part
        assert part.statuses.get(201, 0) > 10, part
