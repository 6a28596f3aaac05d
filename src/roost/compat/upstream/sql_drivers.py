"""Drivers and connections for SQL databases of OpenStack: MySQL, MariaDB, PostgreSQL and SQLite."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from roost.errors import extra_hint

# The drivers that Roost's extras install; each replaces the driver in the URL.
_DRIVERS = {
    "postgresql": "postgresql+psycopg",
    "postgres": "postgresql+psycopg",
    "mysql": "mysql+pymysql",
    "mariadb": "mysql+pymysql",
}
# One name for each kind, and the port that its URLs may omit.
_KINDS = {"postgres": "postgresql", "mariadb": "mysql"}
_PORTS = {"postgresql": ":5432", "mysql": ":3306"}
_EXTRAS = {"psycopg": "postgresql", "pymysql": "mysql"}


def is_sql(url: str) -> bool:
    """Return whether a URL names an SQL database."""
    return database_kind(url) in {*_DRIVERS, "sqlite"}


def database_kind(url: str) -> str:
    """Return the kind of the database in a URL, without its driver.

    >>> database_kind("mysql+mysqldb://placement@db/placement")
    'mysql'
    """
    return url.partition("://")[0].partition("+")[0]


def driver_url(url: str) -> str:
    """Return the URL of a database with the driver that Roost's extras install.

    >>> driver_url("mysql+mysqldb://placement@db/placement")
    'mysql+pymysql://placement@db/placement'
    """
    kind = database_kind(url)
    return f"{_DRIVERS.get(kind, kind)}://{url.partition('://')[2]}"


def source_key(url: str) -> str:
    """Return the place of a source, equal for all its URLs: without account, driver, parameters and default port.

    >>> source_key("mysql+pymysql://placement:secret@db:3306/placement?charset=utf8")
    'mysql://db/placement'
    >>> source_key("https://placement.example.org/")
    'https://placement.example.org'
    """
    kind = database_kind(url)
    kind = _KINDS.get(kind, kind)
    place, slash, path = url.partition("://")[2].partition("/")
    host = place.rpartition("@")[2].removesuffix(_PORTS.get(kind, "/"))
    return f"{kind}://{host}{slash}{path.partition('?')[0]}".removesuffix("/")


def describe_missing_driver(url: str, error: ModuleNotFoundError) -> str:
    """Describe how to install the missing driver of a database."""
    return f"reading {database_kind(url)} needs {error.name}: {extra_hint(_EXTRAS.get(error.name or '', ''))}"


def sqlite_path(url: str) -> Path:
    """Return the path of the file in the URL of an SQLite database.

    >>> sqlite_path("sqlite:////srv/nova.sqlite?timeout=5").as_posix()
    '/srv/nova.sqlite'
    """
    return Path(url.partition("://")[2].removeprefix("/").partition("?")[0])


def sqlite_creator(
    path: Path, mode: Literal["ro", "rw"], *, timeout_s: float = 5.0
) -> Callable[[], sqlite3.Connection]:
    """Return a function that connects to an existing SQLite file; its transactions begin explicitly.

    Args:
        timeout_s: limit of the wait for another writer, seconds.
    """
    uri = f"{path.absolute().as_uri()}?mode={mode}"

    def connect() -> sqlite3.Connection:
        return sqlite3.connect(uri, uri=True, isolation_level=None, timeout=timeout_s, check_same_thread=False)

    return connect
