"""A role without rights on its PostgreSQL database."""

import psycopg
import pytest

from roost.errors import StoreBroken
from roost.model.settings.roost_settings import Store as StoreSettings
from roost.store.postgresql.store import PostgresStore


def test_role_that_does_not_own_the_database_gets_advice(postgres_server):
    def execute(text, database=""):
        with psycopg.connect(f"{postgres_server}{database}", autocommit=True) as connection:
            connection.execute(text)

    execute("CREATE ROLE guest LOGIN")
    execute("CREATE DATABASE unowned")
    try:
        execute("REVOKE CREATE ON SCHEMA public FROM public", "&dbname=unowned")  # as since PostgreSQL 15
        url = f"{postgres_server.replace('roost@', 'guest@')}&dbname=unowned"
        with pytest.raises(StoreBroken, match=r"permission denied .*; make the role in store\.url the owner"):
            PostgresStore(url, settings=StoreSettings())
    finally:
        execute("DROP DATABASE unowned WITH (FORCE)")
        execute("DROP ROLE guest")
