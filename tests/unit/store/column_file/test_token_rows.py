"""Tokens of column files in the table of upkeep."""

import sqlite3
from contextlib import closing

import pytest

from roost.store.column_file.token_rows import find_token, put_token


@pytest.fixture
def connection():
    """Yield a database with the table of upkeep."""
    with closing(sqlite3.connect(":memory:")) as found:
        found.execute("CREATE TABLE upkeep (name TEXT PRIMARY KEY, at_s REAL, findings INTEGER, size_bytes INTEGER)")
        found.execute("INSERT INTO upkeep VALUES ('backup', 1.0, 0, 0)")
        yield found


def put(connection, number, *, previous=None):
    put_token(
        lambda text, values: connection.execute(text, values).fetchall(),
        f"{number:032x}",
        at_s=float(number),
        size=9,
        previous=None if previous is None else f"{previous:032x}",
    )


def has(connection, number):
    return bool(connection.execute(find_token(f"{number:032x}")).fetchall())


def test_token_replaces_the_one_before_it(connection):
    put(connection, 1)
    put(connection, 2, previous=1)
    assert [has(connection, number) for number in (1, 2, 3)] == [False, True, False]


def test_oldest_tokens_of_many_machines_go_first(connection):
    for number in range(1, 80):
        put(connection, number)
    assert [number for number in range(1, 80) if has(connection, number)] == list(range(16, 80))
    assert connection.execute("SELECT count(*) FROM upkeep WHERE name = 'backup'").fetchone() == (1,)


def test_token_must_be_hexadecimal():
    with pytest.raises(ValueError, match="invalid literal"):
        find_token("x' OR 1 = 1")
