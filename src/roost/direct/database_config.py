"""Resolves a configuration, of any supported kind, to a database and settings."""

import os
from pathlib import Path
from typing import NamedTuple

from roost.app import database_of_settings, resolve_server_config
from roost.compat.placement_conf import database_url
from roost.errors import BadSettings
from roost.model.settings.placement_settings import Placement as PlacementSettings
from roost.model.settings.roost_settings import Settings
from roost.scheduler.framework.rule_options import read_section

_SQLITE_MAGIC = b"SQLite format 3\0"


class DatabaseConfig(NamedTuple):
    """A database, and the settings of the API on it."""

    url: str
    settings: Settings


def resolve_config(config: object) -> DatabaseConfig:
    """Resolve a configuration to a database and settings.

    Args:
        config: see ``roost.PlacementDirect``.

    Raises:
        BadSettings: the configuration determines no database, a setting is invalid, or a file cannot be read.
    """
    if isinstance(config, Settings):
        return DatabaseConfig(database_of_settings(config, None, os.environ), config)
    if isinstance(config, str | os.PathLike):
        return _resolve_name(os.fspath(config))
    connection = getattr(getattr(config, "placement_database", None), "connection", None)
    if not isinstance(connection, str) or not connection:
        raise BadSettings("config", f"{type(config).__name__} has no placement_database.connection")
    return DatabaseConfig(database_url(connection), _read_options(config))


def _resolve_name(name: str | bytes) -> DatabaseConfig:
    text = os.fsdecode(name)
    if "://" in text:
        return DatabaseConfig(database_url(text), Settings())
    path = Path(text)
    if path.suffix in (".toml", ".conf"):
        is_conf = path.suffix == ".conf"
        server_config = resolve_server_config(
            None if is_conf else path, None, os.environ, conf=path if is_conf else None
        )
        return DatabaseConfig(server_config.url, server_config.settings)
    if path.is_file() and path.stat().st_size and not _is_sqlite(path):
        raise BadSettings(text, "is neither a SQLite database, nor a .toml or .conf file with settings")
    return DatabaseConfig(text, Settings())


def _read_options(config: object) -> Settings:
    """Read the options of the Placement API from a loaded configuration."""
    section, policy = getattr(config, "placement", None), getattr(config, "oslo_policy", None)
    names = PlacementSettings.__struct_fields__
    values = {name: getattr(section, name) for name in names if getattr(section, name, None) is not None}
    file = getattr(policy, "policy_file", None)
    if file and Path(file).is_file():  # The default names a file that may be missing.
        values["policy_file"] = str(file)
    if getattr(policy, "enforce_new_defaults", None) is not None:
        values["enforce_new_defaults"] = getattr(policy, "enforce_new_defaults", False)
    return Settings(placement=read_section("placement", PlacementSettings, values))


def _is_sqlite(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_SQLITE_MAGIC)) == _SQLITE_MAGIC
