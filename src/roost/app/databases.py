"""Which settings hold, and which database they mean."""

import os
from collections.abc import Mapping
from pathlib import Path

from roost.compat.adapter import adapt
from roost.compat.aliases import lend_names
from roost.model.settings import Settings
from roost.settings import data_folder, find_settings, load_settings
from roost.store.audit import Finding, audit

FILE = "roost.db"  # the database in a data folder


def settings_of(config: Path | None, environ: Mapping[str, str]) -> Settings:
    """Read the settings that are found as ``open_roost`` finds them.

    Raises:
        BadSettings: a setting is unknown or wrong.
    """
    # Rules may be written for Nova, and import it.
    lend_names()
    # Unlike ``Path.exists`` it also answers about names that no file can have.
    return load_settings(find_settings(None if config is None else str(config), environ, os.path.exists), adapt=adapt)


def database_of(config: Path | None, data: Path | None, environ: Mapping[str, str]) -> str:
    """Return the URL or path of the database that commands work on."""
    return database_with(settings_of(config, environ), data, environ)


def database_with(settings: Settings, data: Path | None, environ: Mapping[str, str]) -> str:
    """Return the URL or path of the database that settings mean."""
    if settings.store.url:
        return settings.store.url
    return str(data_folder(None if data is None else str(data), environ, is_root=os.geteuid() == 0) / FILE)


def audit_database(config: Path | None, data: Path | None, environ: Mapping[str, str]) -> list[Finding]:
    """Check a database by itself, reading only its tables; return what is wrong with it."""
    return audit(database_of(config, data, environ))


def audit_path(data: Path) -> list[Finding]:
    """Check the database in a data folder."""
    return audit(str(data / FILE))
