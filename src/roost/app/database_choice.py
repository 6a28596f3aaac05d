"""Which settings hold, and which database they mean."""

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from roost.compat.adapter import adapt
from roost.compat.aliases import lend_names
from roost.errors import BadSettings
from roost.model.settings.roost_settings import Settings
from roost.scheduler import registry
from roost.settings import LoadedSettings, data_folder, find_nova_conf, find_settings, load_with_sources
from roost.store.audit import Finding, audit

FILE = "roost.db"  # the database in a data folder


def settings_of(config: Path | None, environ: Mapping[str, str]) -> Settings:
    """Read the settings that are found as ``open_roost`` finds them.

    Raises:
        BadSettings: a setting is unknown or wrong.
    """
    return settings_with_sources(config, environ).settings


def settings_with_sources(
    config: Path | None, environ: Mapping[str, str], *, is_gathering: bool = False
) -> LoadedSettings:
    """Read the same with where each comes from.

    Args:
        config: the settings file; None: found by ``$ROOST_CONFIG`` and the usual places, or defaults.
        environ: the environment; ``$ROOST_NOVA_CONF`` names a ``nova.conf`` that goes before the settings file.
        is_gathering: whether what is wrong is gathered, all of it, in place of raising the first.

    Raises:
        BadSettings: a setting is unknown or wrong, or a file that was asked for is not there.
    """
    # Rules may be written for Nova, and import it.
    lend_names()
    # Unlike ``Path.exists`` it also answers about names that no file can have.
    return load_with_sources(
        find_settings(None if config is None else str(config), environ, os.path.exists),
        nova_conf=find_nova_conf(environ, os.path.exists),
        adapt=adapt,
        is_gathering=is_gathering,
    )


def check_settings(config: Path | None, environ: Mapping[str, str]) -> LoadedSettings:
    """Gather all that is wrong with the settings, and with the rules that they name.

    Raises:
        BadSettings: a file that was asked for is not there.
    """
    loaded = settings_with_sources(config, environ, is_gathering=True)
    if not loaded.problems:
        try:
            registry.build(loaded.settings, adapt=adapt)
        except BadSettings as error:
            return msgspec.structs.replace(loaded, problems=(error,))
    return msgspec.structs.replace(loaded, problems=(*loaded.problems, *_validator_problems()))


def _validator_problems() -> list[BadSettings]:
    """Return what is wrong with validators of extra specs that packages announce; decisions are made without them."""
    from roost.compat.api.validation.extra_specs.validators import NAMESPACE, load_problems

    return [
        BadSettings(f"entry point {NAMESPACE}.{name}", f"cannot be loaded: {why}; its extra specs are not looked at")
        for name, why in load_problems()
    ]


def nova_conf_notes(nova_conf: Path) -> tuple[str, ...]:
    """Say what of a ``nova.conf`` has no effect, a sentence each; of one that cannot be read, nothing."""
    lend_names()
    return load_with_sources(None, nova_conf=nova_conf, adapt=adapt, is_gathering=True).notes


def database_of(config: Path | None, data: Path | None, environ: Mapping[str, str]) -> str:
    """Return the URL or path of the database that commands work on."""
    return database_of_settings(settings_of(config, environ), data, environ)


def database_of_settings(settings: Settings, data: Path | None, environ: Mapping[str, str]) -> str:
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
