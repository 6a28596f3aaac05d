"""Which database a configuration names, whatever kind of configuration it is."""

import configparser
import os
from collections.abc import Sequence
from pathlib import Path

from roost.app import database_of, database_with
from roost.errors import BadSettings, first_line
from roost.model.settings import Settings

_SQLITE_BEGINS = b"SQLite format 3\0"


def database_in(config: object) -> str:
    """Return the URL or path of the database.

    Args:
        config: see ``roost.PlacementDirect``.

    Raises:
        BadSettings: none can be told from it.
    """
    if isinstance(config, Settings):
        return database_with(config, None, os.environ)
    if isinstance(config, str | os.PathLike):
        return _named(os.fspath(config))
    connection = getattr(getattr(config, "placement_database", None), "connection", None)
    if isinstance(connection, str) and connection:
        return database_url(connection)
    raise BadSettings("config", f"{type(config).__name__} has no placement_database.connection")


def database_of_files(paths: Sequence[Path]) -> str:
    """Return the database of some ``placement.conf``, of which later ones go before.

    Raises:
        BadSettings: a file cannot be read, or none names a database.
    """
    return database_url(connection_of_files(paths))


def connection_of_files(paths: Sequence[Path]) -> str:
    """Return the connection as some ``placement.conf`` spell it, of which later ones go before.

    Raises:
        BadSettings: a file cannot be read, or none names a database.
    """
    connection = _parsed(paths).get("placement_database", "connection", fallback=None)
    if not connection:
        place = str(paths[-1]) if paths else "placement.conf"
        raise BadSettings(place, "placement_database.connection is not set")
    return connection


def policy_file_of(paths: Sequence[Path]) -> Path | None:
    """Return the policy file that some ``placement.conf`` name; None: there is none."""
    if not paths:
        return None
    named = _parsed(paths).get("oslo_policy", "policy_file", fallback=None) or "policy.yaml"
    path = paths[-1].parent / named
    return path if path.is_file() else None


def _parsed(paths: Sequence[Path]) -> configparser.RawConfigParser:
    parser = configparser.RawConfigParser(strict=False, allow_no_value=True)
    for path in paths:
        try:
            parser.read_string(path.read_text(encoding="utf-8"), str(path))
        except OSError as error:
            raise BadSettings(str(path), f"cannot be read: {error.strerror}") from None
        except (configparser.Error, UnicodeDecodeError) as error:
            raise BadSettings(str(path), f"is no configuration: {first_line(error)}") from None
    return parser


def database_url(connection: str) -> str:
    """Return a connection as SQLAlchemy spells it as a URL of ours.

    >>> database_url("postgresql+psycopg2://roost@db/placement")
    'postgresql://roost@db/placement'
    """
    scheme, separator, rest = connection.strip().partition("://")
    return scheme.partition("+")[0] + separator + rest


def _named(name: str | bytes) -> str:
    text = os.fsdecode(name)
    if "://" in text:
        return database_url(text)
    path = Path(text)
    if path.suffix == ".toml":
        return database_of(path, None, os.environ)
    if path.suffix == ".conf":
        return database_of_files([path])
    if path.is_file() and path.stat().st_size and not _is_sqlite(path):
        raise BadSettings(text, "is neither a SQLite database, nor a .toml or .conf file with settings")
    return text


def _is_sqlite(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_SQLITE_BEGINS)) == _SQLITE_BEGINS
