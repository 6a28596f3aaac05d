"""Finds the settings, and the database that they select."""

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from roost.compat.adapter import adapt
from roost.compat.aliases import install_aliases
from roost.errors import BadSettings
from roost.model.settings.roost_settings import Settings
from roost.model.settings.setting_rows import SettingRow, hide_secrets
from roost.scheduler import registry
from roost.settings import (
    LoadedSettings,
    data_folder,
    find_nova_conf,
    find_settings,
    load_with_sources,
    schema,
    values_of,
)
from roost.store.audit import Finding, audit
from roost.store.backends import is_shared

FILE = "roost.db"  # the database in a data folder


def settings_of(config: Path | None, environ: Mapping[str, str]) -> Settings:
    """Read the settings; see ``settings_with_sources``.

    Raises:
        BadSettings: a setting is unknown or wrong.
    """
    return settings_with_sources(config, environ).settings


def settings_with_sources(
    config: Path | None, environ: Mapping[str, str], *, is_lenient: bool = False
) -> LoadedSettings:
    """Read the settings, with their sources.

    Args:
        config: the settings file; None: from ``$ROOST_CONFIG`` or the usual places, else defaults.
        environ: the environment; ``$ROOST_NOVA_CONF`` is a ``nova.conf`` that overrides the settings file.
        is_lenient: whether to return the errors instead of raising them.

    Raises:
        BadSettings: a setting is unknown or wrong, or a requested file does not exist. ``others`` has all further
            errors.
    """
    # Rules written for Nova import its modules.
    install_aliases()
    # Unlike ``Path.exists``, ``os.path.exists`` does not raise for invalid names.
    loaded = load_with_sources(
        find_settings(None if config is None else str(config), environ, os.path.exists),
        nova_conf=find_nova_conf(environ, os.path.exists),
        adapt=adapt,
        is_lenient=True,
    )
    if loaded.problems and not is_lenient:
        first, *others = loaded.problems
        first.others = tuple(others)
        raise first
    return loaded


def check_settings(config: Path | None, environ: Mapping[str, str]) -> LoadedSettings:
    """Collect all errors in the settings and in the rules that they enable.

    Raises:
        BadSettings: a requested file does not exist.
    """
    loaded = settings_with_sources(config, environ, is_lenient=True)
    if not loaded.problems:
        try:
            registry.build(loaded.settings, adapt=adapt)
        except BadSettings as error:
            return msgspec.structs.replace(loaded, problems=(error,))
    return msgspec.structs.replace(loaded, problems=(*loaded.problems, *_validator_problems()))


def _validator_problems() -> list[BadSettings]:
    """Return the load errors of installed extra-spec validators. Decisions skip validators with load errors."""
    from roost.compat.api.validation.extra_specs.validators import NAMESPACE, load_problems

    return [
        BadSettings(f"entry point {NAMESPACE}.{name}", f"cannot be loaded: {why}; its extra specs are not checked")
        for name, why in load_problems()
    ]


def setting_rows(settings: Settings, sources: Mapping[tuple[str, str], str]) -> list[SettingRow]:
    """Return all settings as rows for people, without secrets: some hundredths of a second of work.

    Args:
        sources: source of each setting with another value than its default, by section and key.
    """
    values, rows = values_of(settings), []
    for each in schema(settings=settings, adapt=adapt):
        name = each.section, each.key
        rows.append(
            SettingRow(
                section=each.section,
                key=each.key,
                value=hide_secrets(*name, values.get(name, each.default)),
                default=msgspec.to_builtins(each.default),
                source=sources.get(name, "default"),
                kind=each.kind,
                description=each.description,
            )
        )
    return rows


def nova_conf_notes(nova_conf: Path) -> tuple[str, ...]:
    """Describe the options without effect in a ``nova.conf``, one sentence each. Empty for an unreadable file."""
    install_aliases()
    return load_with_sources(None, nova_conf=nova_conf, adapt=adapt, is_lenient=True).notes


def database_of(config: Path | None, data: Path | None, environ: Mapping[str, str]) -> str:
    """Return the URL or path of the database for a command."""
    return database_of_settings(settings_of(config, environ), data, environ)


def database_of_settings(settings: Settings, data: Path | None, environ: Mapping[str, str]) -> str:
    """Return the URL or path of the database that settings select."""
    if settings.store.url:
        return settings.store.url
    return str(data_folder(None if data is None else str(data), environ, is_root=os.geteuid() == 0) / FILE)


def database_name(url: str) -> str:
    """Return the name of a database for people: the path of a file, or a URL without its password.

    >>> database_name("sqlite:///roost.db"), database_name("mysql://roost:secret@db/roost")
    ('roost.db', 'mysql://roost:***@db/roost')
    """
    return str(hide_secrets("store", "url", url)) if is_shared(url) else url.removeprefix("sqlite:///")


def audit_database(config: Path | None, data: Path | None, environ: Mapping[str, str]) -> list[Finding]:
    """Audit the database of a command, by SQL queries on its tables."""
    return audit(database_of(config, data, environ))


def audit_path(data: Path) -> list[Finding]:
    """Audit the database in a data folder."""
    return audit(str(data / FILE))
