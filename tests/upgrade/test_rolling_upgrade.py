"""Processes of the program before and of this one serve one PostgreSQL database, in both orders."""

from contextlib import ExitStack

import psycopg
import pytest

from tests.support.databases import postgres
from tests.upgrade.rolling_upgrade import ORDERS, Run

pytestmark = pytest.mark.long

LOAD_S = 15.0


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
